//! Percent-decoding, and nothing else.

use std::borrow::Cow;
use std::string::FromUtf8Error;

/// The decoded text, or the bytes if it is not UTF-8. A `%` without two hexadecimal digits after it stands
/// for itself, as in browsers.
pub(super) fn decoded(encoded: &str) -> Result<Cow<'_, str>, Vec<u8>> {
    if !encoded.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Ok(Cow::Borrowed(encoded));
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => match behind
                .split_at_checked(2)
                .and_then(|(digits, after)| Some((byte(digits)?, after)))
            {
                Some((byte, after)) => {
                    bytes.push(byte);
                    rest = after;
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(FromUtf8Error::into_bytes)
}

fn byte(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let value = char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?;
    u8::try_from(value).ok()
}
