//! Decodes names and values of a query, and nothing else.

use std::borrow::Cow;
use std::string::FromUtf8Error;

use percent_encoding::percent_decode_str;

/// The decoded text, or the bytes if it is not UTF-8. A `+` is a blank, and a `%` without two hexadecimal
/// digits after it stands for itself, as in browsers.
pub(super) fn decoded(encoded: &str) -> Result<Cow<'_, str>, Vec<u8>> {
    if !encoded.contains(['%', '+']) {
        return Ok(Cow::Borrowed(encoded));
    }
    let spaced = encoded.replace('+', " ");
    String::from_utf8(percent_decode_str(&spaced).collect())
        .map(Cow::Owned)
        .map_err(FromUtf8Error::into_bytes)
}
