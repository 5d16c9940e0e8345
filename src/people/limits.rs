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
    "a person may keep {limit} documents of the kind `{}`{}; this is the operator's setting \
     ALMANAC_LIMIT_{}S",
    kind.as_str(),
    deleted_ones(*kind),
    kind.as_str().to_ascii_uppercase()
)]
pub struct LimitReached {
    pub kind: DocumentKind,
    pub limit: u64,
}

/// What a limit says of deleted documents, if these are kept and count.
const fn deleted_ones(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Annotation | DocumentKind::Reflection => ", deleted ones that are kept included",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_speaks_of_deleted_ones_where_these_count() {
        let text = |kind| LimitReached { kind, limit: 3 }.to_string();
        assert_eq!(
            text(DocumentKind::Annotation),
            "a person may keep 3 documents of the kind `annotation`, deleted ones that are kept included; \
             this is the operator's setting ALMANAC_LIMIT_ANNOTATIONS"
        );
        assert_eq!(
            text(DocumentKind::Tag),
            "a person may keep 3 documents of the kind `tag`; this is the operator's setting \
             ALMANAC_LIMIT_TAGS"
        );
    }
}
