//! What floats can hold.

/// Every whole number of a smaller magnitude is exact: 2⁵³.
pub const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;
