//! The forms that a blob of the tail may have. Its first byte names one, so that others can be added.

/// Rows as an Arrow IPC stream, compressed with ZSTD.
pub(super) const ZSTD_ARROW_STREAM: u8 = 1;
/// A blob of another form, encrypted with the key of its person.
pub(super) const SEALED: u8 = 2;
/// Rows as an Arrow IPC stream, compressed with Snappy.
pub(super) const SNAPPY_ARROW_STREAM: u8 = 3;
