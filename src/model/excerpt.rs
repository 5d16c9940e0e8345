//! What an answer repeats of what was sent: short texts as they are, and of long ones a part. No answer grows
//! with what it complains about.
//!
//! Pure functions over text.

use std::borrow::Cow;

/// Texts of more characters than this are not repeated as a whole.
const LONGEST_TEXT: usize = 200;
/// Messages of more bytes than this lose their middle. A list of what there is can come near it.
const LONGEST_MESSAGE: usize = 2000;
/// Stands for what is left out.
const ELLIPSIS: char = '…';

/// Whether a text is repeated as a whole.
#[must_use]
pub fn is_short(text: &str) -> bool {
    end_of_beginning(text).is_none()
}

/// The text, or the beginning of a long one.
#[must_use]
pub fn beginning(text: &str) -> Cow<'_, str> {
    let Some(end) = end_of_beginning(text) else {
        return Cow::Borrowed(text);
    };
    let mut beginning = text.get(..end).unwrap_or_default().to_owned();
    beginning.push(ELLIPSIS);
    Cow::Owned(beginning)
}

fn end_of_beginning(text: &str) -> Option<usize> {
    text.char_indices().nth(LONGEST_TEXT).map(|(end, _)| end)
}

/// The message, without its middle if it is long: it begins with what is wrong, and ends with what to send.
#[must_use]
pub fn without_middle(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let half = LONGEST_MESSAGE / 2;
    let until = message.floor_char_boundary(half);
    let from = message.ceil_char_boundary(message.len() - half);
    let (beginning, end) = (message.get(..until), message.get(from..));
    format!(
        "{}{ELLIPSIS}{}",
        beginning.unwrap_or_default(),
        end.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for letter in ["x", "ä", "語", "🎈"] {
            let longest = letter.repeat(LONGEST_TEXT);
            assert!(is_short(&longest));
            assert_eq!(beginning(&longest), longest);
            let longer = letter.repeat(LONGEST_TEXT + 1);
            assert!(!is_short(&longer));
            assert_eq!(beginning(&longer), format!("{longest}…"));
        }
        assert_eq!(beginning(""), "");
    }

    #[test]
    fn a_long_message_keeps_both_ends() {
        let longest = "x".repeat(LONGEST_MESSAGE);
        assert_eq!(without_middle(longest.clone()), longest);
        for letter in ["x", "ä", "語", "🎈"] {
            let sent = letter.repeat(LONGEST_MESSAGE);
            let told = without_middle(format!("unknown \"{sent}\"; send another"));
            assert!(told.starts_with("unknown \"") && told.ends_with("\"; send another"));
            assert!(told.contains('…') && told.len() <= LONGEST_MESSAGE + '…'.len_utf8());
        }
    }
}
