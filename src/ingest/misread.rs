//! Describes a text that should be a record and is not: what was found, where, and what to send.
//!
//! Pure. Knows JSON and places; knows no type.

use super::body::RecordPosition;
use super::json::{Mistake, MistakeKind};
use crate::model::faults::{Fault, LocPart};

/// The fault for `json`, in which this mistake was found.
pub(super) fn fault(place: RecordPosition, json: &[u8], mistake: Mistake) -> Fault {
    let mut loc = place.loc();
    let message = match json.trim_ascii().first() {
        None => "nothing was sent; send a record as a JSON object, like {\"start_date\": …}".to_owned(),
        Some(b'{') => {
            loc.extend(mistake.field.clone().map(LocPart::Name));
            of_object(place, mistake)
        }
        Some(b'[') => match place {
            RecordPosition::Whole => {
                "found an array where one record was expected; send its elements one a line, as \
                             application/x-jsonl"
                    .to_owned()
            }
            RecordPosition::Line(_) => {
                "found an array where a record was expected; send its elements one a line, without \
                               brackets and commas"
                    .to_owned()
            }
        },
        Some(first) => format!("expected a JSON object, found {}", kind_of(*first)),
    };
    Fault::new(loc, "json", message)
}

fn of_object(place: RecordPosition, mistake: Mistake) -> String {
    match (mistake.kind, place) {
        (MistakeKind::MoreFollows { at }, RecordPosition::Whole) => format!(
            "the record ends before byte {at}, where something else begins; several records are sent one a \
             line, as application/x-jsonl"
        ),
        (MistakeKind::MoreFollows { at }, RecordPosition::Line(_)) => format!(
            "the record ends before byte {at} of the line, where something else begins; send each record on \
             a line of its own"
        ),
        (MistakeKind::BreaksOff { at }, RecordPosition::Whole) => {
            format!("malformed JSON: the text breaks off at byte {at}, within the record; send all of it")
        }
        (MistakeKind::BreaksOff { at }, RecordPosition::Line(_)) => format!(
            "malformed JSON: the line breaks off at byte {at}, within its record; a record stands on one \
             line, and one over several lines is sent as application/json"
        ),
        (MistakeKind::Malformed | MistakeKind::TooLarge, _) => mistake.message,
    }
}

const fn kind_of(first: u8) -> &'static str {
    match first {
        b'"' => "a string",
        b'0'..=b'9' | b'-' => "a number",
        _ => "something that is not an object",
    }
}
