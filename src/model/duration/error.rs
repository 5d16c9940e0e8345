//! Why a text is not a duration, worded so that the next attempt succeeds.

/// What is wrong with the text of a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("an empty duration; write one like 15m, 1d, 1mo or PT2H")]
    Empty,
    #[error(
        "{text:?} is not a duration; write whole numbers with the units ns, us, ms, s, m, h, d, w, mo, q, y, \
         such as 1h30m, or ISO 8601 such as PT1H30M"
    )]
    Malformed { text: String },
    #[error(
        "{text:?} has the unknown unit {unit:?}; units are ns, us, ms, s, m, h, d, w, mo, q, y, in lower case"
    )]
    UnknownUnit { text: String, unit: String },
    #[error(
        "{text:?} has a fraction; only seconds in ISO 8601, such as PT0.5S, and plain numbers of seconds may \
         have one"
    )]
    Fraction { text: String },
    #[error("{text:?} has no length; a duration is longer than zero")]
    Zero { text: String },
    #[error(
        "{text:?} is negative; a duration is longer than zero, and only an offset may begin with a minus sign"
    )]
    Negative { text: String },
    #[error(
        "{text:?} is not a plain number of seconds; write digits with at most one decimal point, such as 60 \
         or \
         0.5"
    )]
    NotPlain { text: String },
    #[error(
        "{text:?} mixes units that begin at different places; use one family: months (mo, q, y), weeks (w), \
         days (d), or fixed lengths (ns to h)"
    )]
    Mixed { text: String },
    #[error("{text:?} has no offset after its separator; leave the separator out, or write one like 1d@12h")]
    EmptyOffset { text: String },
    #[error("{text:?} has more than one offset; write at most one, like 1d@12h")]
    TwoOffsets { text: String },
    #[error("{text:?} is finer than a microsecond, the finest time there is here")]
    TooFine { text: String },
    #[error("{text:?} is too long; a period is at most 10000 years")]
    TooLong { text: String },
    #[error("{text:?} has no fixed length; months, quarters and years differ, so use units from ns to w")]
    NoFixedLength { text: String },
}

pub(super) fn too_long(text: &str) -> DurationError {
    DurationError::TooLong { text: shown(text) }
}

/// The text as an error repeats it, cut to a limited length.
pub(super) fn shown(text: &str) -> String {
    const ENOUGH: usize = 40;
    let mut shown: String = text.chars().take(ENOUGH).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
