//! Limits on how much of each kind one person may keep. Set by the operator; plain data, resolved once at
//! start.

use crate::catalog::documents::DocumentKind;

/// The most of each kind that one person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonLimits {
    /// Deleted ones count, since they are kept.
    pub annotations: u64,
    pub tags: u64,
    /// Deleted ones count, since they are kept.
    pub reflections: u64,
    pub shares: u64,
    /// Own groups; the same limit applies to memberships.
    pub groups: u64,
    /// Own data types, including archived ones.
    pub definitions: u64,
    /// Sources that records name.
    pub sources: u64,
    /// Idempotency keys within a week.
    pub keys: u64,
    /// API sessions. Ended ones are removed when their place is needed.
    pub sessions: u64,
    /// Files, counting each version, including deleted ones.
    pub files: u64,
    /// Exports in any state, until they expire.
    pub exports: u64,
    /// Frames, until they expire.
    pub frames: u64,
    /// The most bytes of one file.
    pub file_bytes: u64,
    /// The most bytes of all files together.
    pub all_file_bytes: u64,
}

#[cfg(test)]
impl PersonLimits {
    /// More of everything than any test creates.
    pub const GENEROUS: Self = Self {
        annotations: 1_000,
        tags: 1_000,
        reflections: 1_000,
        shares: 1_000,
        groups: 1_000,
        definitions: 1_000,
        sources: 1_000,
        keys: 1_000,
        sessions: 1_000,
        files: 1_000,
        exports: 1_000,
        frames: 1_000,
        file_bytes: 1 << 30,
        all_file_bytes: 1 << 30,
    };
}

/// A person has reached the limit of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a person may have {}{}; this is the operator's setting {}",
    counted(*limit, named(*kind)),
    what_counts(*kind),
    setting(*kind)
)]
pub struct LimitReached {
    pub kind: DocumentKind,
    pub limit: u64,
}

/// So many of something: `1 tag`, `2 tags`.
#[must_use]
pub fn counted(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    }
}

/// What people call one document of a kind.
const fn named(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Session => "open session",
        DocumentKind::Share => "data share",
        kind => kind.as_str(),
    }
}

/// Which documents of a kind count, where that is not said by their name.
const fn what_counts(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Annotation | DocumentKind::Reflection => ", deleted ones that are kept included",
        DocumentKind::File => ", each version counted",
        DocumentKind::Membership => " in groups",
        _ => "",
    }
}

/// The setting by which the operator limits documents of a kind.
const fn setting(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Annotation => "ALMANAC_LIMIT_ANNOTATIONS",
        DocumentKind::Tag => "ALMANAC_LIMIT_TAGS",
        DocumentKind::Reflection => "ALMANAC_LIMIT_REFLECTIONS",
        DocumentKind::Session => "ALMANAC_LIMIT_SESSIONS",
        DocumentKind::File | DocumentKind::FileContent | DocumentKind::FileUsage => "ALMANAC_LIMIT_FILES",
        DocumentKind::Share => "ALMANAC_LIMIT_SHARES",
        DocumentKind::Group | DocumentKind::Membership => "ALMANAC_LIMIT_GROUPS",
        DocumentKind::Export => "ALMANAC_LIMIT_EXPORTS",
        DocumentKind::Frame => "ALMANAC_LIMIT_FRAMES",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_how_many_of_what_in_words() {
        let text = |kind, limit| LimitReached { kind, limit }.to_string();
        for (kind, limit, told) in [
            (
                DocumentKind::Annotation,
                3,
                "a person may have 3 annotations, deleted ones that are kept included; this is the \
                 operator's setting ALMANAC_LIMIT_ANNOTATIONS",
            ),
            (
                DocumentKind::Export,
                1,
                "a person may have 1 export; this is the operator's setting ALMANAC_LIMIT_EXPORTS",
            ),
            (
                DocumentKind::Share,
                0,
                "a person may have 0 data shares; this is the operator's setting ALMANAC_LIMIT_SHARES",
            ),
            (
                DocumentKind::Membership,
                2,
                "a person may have 2 memberships in groups; this is the operator's setting \
                 ALMANAC_LIMIT_GROUPS",
            ),
        ] {
            assert_eq!(text(kind, limit), told);
        }
    }
}
