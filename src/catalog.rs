//! The SQL catalogue: the only truth about what exists. (room being built)

pub mod records;
