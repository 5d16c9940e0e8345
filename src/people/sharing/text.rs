//! Texts of shares and groups, held to what can be kept of them.

use crate::model::faults::{Fault, LocPart};

/// Characters of a name or an address.
pub(super) const LONGEST_LINE: usize = 2_048;
/// Characters of a description.
pub(super) const LONGEST_PROSE: usize = 65_536;

/// Why a text cannot be kept, if it cannot.
pub(super) fn fault_of(loc: &[LocPart], text: &str, most: usize) -> Option<Fault> {
    let fault = |kind, message: String| Some(Fault::new(loc.to_vec(), kind, message));
    if text.contains('\0') {
        return fault("value_error", "the character U+0000 cannot be stored".to_owned());
    }
    if text.chars().nth(most).is_some() {
        return fault("string_too_long", format!("expected at most {most} characters"));
    }
    None
}

/// Notes what is wrong with a member of the body that must say something.
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

/// Notes what is wrong with a member of the body that may be anything.
pub(super) fn check_prose(faults: &mut Vec<Fault>, member: &str, text: Option<&str>) {
    let loc = ["body".into(), member.into()];
    faults.extend(text.and_then(|text| fault_of(&loc, text, LONGEST_PROSE)));
}
