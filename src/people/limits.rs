//! How much a person may keep.

/// What one person may have of each thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonLimits {
    /// Files, each version counted, deleted ones too.
    pub files: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub all_file_bytes: u64,
}
