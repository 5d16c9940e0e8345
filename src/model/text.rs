//! What a line of text and a name may be. Both are kept in Unicode's composed form (NFC), so that names that
//! look the same are the same.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// Why a text cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("expected at least one character")]
    Empty,
    #[error("expected at most {most} characters, found {found}")]
    TooLong { most: usize, found: usize },
    #[error("control characters are not allowed")]
    Control,
    #[error("the character U+0000 cannot be stored")]
    Nul,
    #[error("blanks at the start or end are not allowed")]
    Blanks,
}

/// The text in Unicode's composed form.
#[must_use]
pub fn composed(text: &str) -> Cow<'_, str> {
    if is_nfc(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// A line of text without surrounding blanks, of at most `most` characters.
pub fn name(text: &str, most: usize) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.trim().len() != text.len() {
        return Err(TextError::Blanks);
    }
    line(text, most)
}

/// A line of text, which may be empty.
pub fn line(text: &str, most: usize) -> Result<String, TextError> {
    within(text, most)?;
    if text.chars().any(char::is_control) {
        return Err(TextError::Control);
    }
    Ok(composed(text).into_owned())
}

/// Whether a text has at most `most` characters.
pub fn within(text: &str, most: usize) -> Result<(), TextError> {
    // A character has at least one byte, so texts of at most `most` bytes need not be counted.
    let found = if text.len() <= most {
        0
    } else {
        text.chars().count()
    };
    if found > most {
        return Err(TextError::TooLong { most, found });
    }
    Ok(())
}
