//! What floats can hold.

/// Every whole number of a smaller magnitude is exact.
pub const EXACT_INTEGERS_BELOW: u64 = 1 << 53;
/// The same bound as a float.
pub const EXACT_BELOW: f64 = EXACT_INTEGERS_BELOW as f64;
