//! Bytes as hexadecimal text, as checksums, signatures and stored rows are shown.

/// Two digits for each byte.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| {
        DIGITS
            .get(usize::from(value & 15))
            .map_or('0', |digit| char::from(*digit))
    };
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

/// The bytes that `text` writes with two digits each, in either case. `None` for anything else: a sign, which
/// parsers of numbers accept, is no digit.
#[must_use]
pub fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(value(high)? << 4 | value(low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_as_it_is_written_and_in_capitals() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let text = hexadecimal(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"), "{text}");
        assert_eq!(from_hexadecimal(&text), Some(bytes.clone()));
        assert_eq!(from_hexadecimal(&text.to_uppercase()), Some(bytes));
        assert_eq!(from_hexadecimal(""), Some(Vec::new()));
    }

    #[test]
    fn what_is_not_two_digits_for_each_byte_is_not_read() {
        for text in ["+f", "-1", "0f+f", "f", "0f0", "0x", " f", "g0", "é", "ａ"] {
            assert_eq!(from_hexadecimal(text), None, "{text:?}");
        }
    }
}
