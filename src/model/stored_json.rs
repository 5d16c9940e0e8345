//! Reads JSON that this program stored.
//!
//! Errors go to the log, and others than the person whom the text is about read the log. So an error says
//! where reading ended, and never what stands there.

use serde::Deserialize;
use serde_json::error::Category;

/// Stored JSON is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wrong} (line {line}, column {column})")]
pub struct Unreadable {
    wrong: &'static str,
    line: usize,
    column: usize,
}

/// The value stored in `text`.
pub fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable {
        wrong: match error.classify() {
            Category::Syntax => "it is not JSON",
            Category::Eof => "it ends too early",
            Category::Data => "it is JSON of another shape",
            Category::Io => "it could not be read",
        },
        line: error.line(),
        column: error.column(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_never_what() {
        let text = r#"{"age": "seventy"}"#;
        let error = read::<std::collections::BTreeMap<String, u8>>(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is JSON of another shape (line 1, column 17)"
        );
        assert!(
            read::<Vec<u8>>("[1,")
                .unwrap_err()
                .to_string()
                .contains("too early")
        );
        assert_eq!(read::<Vec<u8>>("[1, 2]"), Ok(vec![1, 2]));
    }
}
