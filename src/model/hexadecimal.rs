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
