//! How long the results of functions may become, and what that depends on. Knows functions by their names;
//! sees neither arguments nor results.

use datafusion::common::{Result, exec_err};

/// The most bytes in one result for one batch of rows.
pub(super) const LARGEST_RESULT: usize = 4 << 20;

/// Fails if a function would make so many bytes that they are too many.
pub(super) fn refuse_large(function: &str, bytes: usize) -> Result<()> {
    if bytes <= LARGEST_RESULT {
        return Ok(());
    }
    exec_err!("{function} would make more than {LARGEST_RESULT} bytes at once; give it less")
}

/// How the size of a result, or the time that it takes, follows from the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    Sum,
    Product,
    /// With the first between each two of the others.
    Joined,
    /// The items of the first as texts, with the others between each two of them or in their places.
    JoinedItems,
    /// As times in the format that the second is.
    Written,
    /// With the third in the place of one item of each list.
    Replacement,
    /// With the third in the place of each item of each list.
    Replacements,
    /// All as long as the longest list.
    Zipped,
    /// To a number of characters.
    Padding,
    /// By a number of times.
    Repetition,
    /// The limit is on the time, not on the length of the result.
    Comparisons,
}

impl Growth {
    /// `None` for functions that need no limit.
    pub(super) fn of(function: &str) -> Option<Self> {
        Some(match function {
            // The result holds all of the arguments, for each row.
            "encode" | "concat" | "make_array" | "struct" | "named_struct" | "array_concat"
            | "array_append" | "array_prepend" | "array_union" | "map" | "overlay" => Self::Sum,
            // The result may hold one argument for each part of the first.
            "replace" | "regexp_replace" | "translate" => Self::Product,
            "concat_ws" => Self::Joined,
            "array_to_string" => Self::JoinedItems,
            "to_char" => Self::Written,
            "array_replace" => Self::Replacement,
            "array_replace_n" | "array_replace_all" => Self::Replacements,
            "arrays_zip" => Self::Zipped,
            // As many characters as the second argument says.
            "lpad" | "rpad" => Self::Padding,
            "repeat" => Self::Repetition,
            // Each part of the first argument is compared with each part of the second.
            "array_has_all" | "array_has_any" | "btrim" | "ltrim" | "rtrim" | "strpos" => Self::Comparisons,
            _ => return None,
        })
    }
}
