//! Whether rows that are cut tell how long they were. Knows no rows.

/// Whether the length of rows before the cut matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::query) enum OriginalLength {
    /// It does not matter.
    Dropped,
    /// A column marks rows that were amounts over a very long time: those rank last, cut or not, so that
    /// owner and reader see the same winner.
    Marked,
}
