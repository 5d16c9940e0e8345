//! Writes text inside JSON and CSV; characters to escape or quote are found eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A word with the high bit set in each byte equal to `byte`. Bytes above the lowest hit may be wrong, so it
/// only shows whether there is one.
const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * byte as u64);
    difference.wrapping_sub(ONES) & !difference & HIGH
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const fn needs_quotes(byte: u8) -> bool {
    matches!(byte, b',' | b'"' | b'\n' | b'\r')
}

fn any(text: &[u8], in_word: impl Fn(u64) -> bool, in_byte: impl Fn(u8) -> bool) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    words.iter().any(|word| in_word(u64::from_le_bytes(*word))) || rest.iter().any(|byte| in_byte(*byte))
}

fn has_escapes(text: &[u8]) -> bool {
    let in_word = |word: u64| {
        (word.wrapping_sub(ONES * 0x20) & !word & HIGH) | equal(word, b'"') | equal(word, b'\\') != 0
    };
    any(text, in_word, needs_escape)
}

/// Whether a CSV field must be quoted to be read back. An empty one must, to be distinguished from null.
pub(super) fn must_be_quoted(text: &[u8]) -> bool {
    let in_word =
        |word: u64| equal(word, b',') | equal(word, b'"') | equal(word, b'\n') | equal(word, b'\r') != 0;
    text.is_empty() || any(text, in_word, needs_quotes)
}

/// Writes `text` as a JSON string.
pub(super) fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    if has_escapes(bytes) {
        write_escaped(bytes, out);
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

#[cold]
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte if byte < 0x20 => {
                out.extend_from_slice(b"\\u00");
                write_hex(&[byte], out);
            }
            byte => out.push(byte),
        }
    }
}

/// Writes `text` as a CSV field in quotes.
pub(super) fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    // Reserves room for a quote before each byte, so that no growth interrupts the copying.
    out.reserve(2 * text.len() + 1);
    let mut parts = text.split(|byte| *byte == b'"');
    if let Some(first) = parts.next() {
        out.extend_from_slice(first);
    }
    for part in parts {
        out.extend_from_slice(b"\"\"");
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

/// Writes `text` as a CSV field, quoted if necessary.
pub(super) fn write_field(text: &[u8], out: &mut Vec<u8>) {
    if must_be_quoted(text) {
        write_quoted(text, out);
    } else {
        out.extend_from_slice(text);
    }
}

pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn json_strings_are_what_serde_writes(
            text in "(?s)[\\x00-\\x7f\u{80}\u{7fff}\u{1f600}\"\\\\\\PC]{0,40}"
        ) {
            let mut out = Vec::new();
            write_json_string(&text, &mut out);
            let back: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn a_field_is_quoted_exactly_when_it_must_be(text in "(?s)[a-z,\"\n\r ]{0,20}") {
            let expected = text.is_empty() || text.contains([',', '"', '\n', '\r']);
            prop_assert_eq!(must_be_quoted(text.as_bytes()), expected);
            let mut out = Vec::new();
            write_field(text.as_bytes(), &mut out);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(out.as_slice());
            let record = reader.records().next().unwrap().unwrap();
            prop_assert_eq!(record.get(0), Some(text.as_str()));
        }
    }

    #[test]
    fn a_clean_neighbour_of_a_control_byte_is_found() {
        assert!(has_escapes(b"abcdefg\x1f"));
        assert!(!has_escapes("abcdefg h\u{e9}ll\u{f6}".as_bytes()));
        assert!(has_escapes(b"\"bcdefgh"));
    }
}
