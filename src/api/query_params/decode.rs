//! Percent-decoding, and nothing else.

use std::borrow::Cow;

/// The decoded text; `None` if it is not UTF-8. A `%` without two hexadecimal digits after it stands for
/// itself, as in browsers.
pub(super) fn decoded(encoded: &str) -> Option<Cow<'_, str>> {
    if !encoded.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Some(Cow::Borrowed(encoded));
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
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn byte(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let value = char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?;
    u8::try_from(value).ok()
}
