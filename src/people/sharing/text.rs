//! Checks whether the texts and windows of shares and groups can be stored.

use std::collections::BTreeSet;

use crate::model::faults::{Fault, LocPart};
use crate::model::nul::has_nul;
use crate::model::time::Instant;

/// The most characters of a name or an address.
pub(super) const LONGEST_LINE: usize = 2_048;
/// The most characters of a description.
pub(super) const LONGEST_PROSE: usize = 65_536;

/// The reason that a text cannot be stored, if there is one.
pub(super) fn fault_of(loc: &[LocPart], text: &str, most: usize) -> Option<Fault> {
    let fault = |kind, message: String| Some(Fault::new(loc.to_vec(), kind, message));
    if has_nul(text) {
        return fault("value_error", "the character U+0000 cannot be stored".to_owned());
    }
    if text.chars().nth(most).is_some() {
        return fault("string_too_long", format!("expected at most {most} characters"));
    }
    None
}

/// Adds a fault if a required text of the body is empty or invalid.
pub(super) fn check_name(faults: &mut Vec<Fault>, member: &str, text: &str) {
    let loc = ["body".into(), member.into()];
    if text.trim().is_empty() {
        faults.push(Fault::new(
            loc,
            "string_too_short",
            "expected at least one character",
        ));
    } else {
        faults.extend(fault_of(&loc, text, LONGEST_LINE));
    }
}

/// Adds a fault if an optional text of the body is invalid.
pub(super) fn check_prose(faults: &mut Vec<Fault>, member: &str, text: Option<&str>) {
    let loc = ["body".into(), member.into()];
    faults.extend(text.and_then(|text| fault_of(&loc, text, LONGEST_PROSE)));
}

/// The texts without those that were named before, in the order in which they are named.
pub(super) fn each_once_in_order(mut texts: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

/// Adds a fault if no time lies in the window of the body.
pub(super) fn check_window(faults: &mut Vec<Fault>, start: Option<Instant>, end: Option<Instant>) {
    if let (Some(start), Some(end)) = (start, end)
        && start >= end
    {
        let message = "the window is empty or inverted: time_start must be before time_end";
        faults.push(Fault::new(["body", "time_end"], "value_error", message));
    }
}
