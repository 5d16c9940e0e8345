//! The names of the jobs.

/// A job. Nodes of different releases share the leases, so no name may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    Flush,
    Compact,
    Collect,
    Orphans,
    Manifests,
    HeedErasures,
    /// Finds out which erasures are to be continued.
    FindErasures,
    Erase,
    Purge,
    Scrub,
    Count,
}

impl Job {
    /// What its lease, its notes and the log call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Compact => "compact",
            Self::Collect => "collect",
            Self::Orphans => "orphans",
            Self::Manifests => "manifests",
            Self::HeedErasures => "heed erasures",
            Self::FindErasures => "find erasures",
            Self::Erase => "erase",
            Self::Purge => "purge",
            Self::Scrub => "scrub",
            Self::Count => "count",
        }
    }
}
