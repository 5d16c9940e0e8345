//! Converts ids to text, fast enough for columns of millions of them.

use arrow::array::{Array as _, FixedSizeBinaryArray, StringArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::error::ArrowError;

/// The number of characters of an id.
const LENGTH: usize = 36;

/// Writes the usual text of an id: `67e55044-10b1-426f-9247-bb680e5fe0c8`.
///
/// It is written in place, not assembled elsewhere first: reading as a whole what was just written in parts
/// has to wait.
pub fn write_hyphenated(id: [u8; 16], out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'-'; LENGTH]);
    if let Some(text) = out.last_chunk_mut::<LENGTH>() {
        write_digits(id, text);
    }
}

/// A column of ids, of 16 bytes each, as text.
pub fn texts(ids: &FixedSizeBinaryArray) -> Result<StringArray, ArrowError> {
    let (bytes, _) = ids.value_data().as_chunks::<16>();
    let each = LENGTH as i32;
    let rows = i32::try_from(bytes.len())
        .ok()
        .filter(|rows| rows.checked_mul(each).is_some())
        .ok_or_else(|| ArrowError::OffsetOverflowError(bytes.len() * LENGTH))?;
    let mut text = vec![b'-'; bytes.len() * LENGTH];
    for (text, id) in text.as_chunks_mut::<LENGTH>().0.iter_mut().zip(bytes) {
        write_digits(*id, text);
    }
    // No end exceeds the last, which was checked above; a check of each would take most of the time.
    let ends = (0..rows.wrapping_add(1)).map(|row| row.wrapping_mul(each));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends.collect::<Vec<i32>>()));
    StringArray::try_new(offsets, text.into(), ids.nulls().cloned())
}

/// Writes the digits of an id between the hyphens of a text.
///
/// In a loop over words: what the compiler makes of bytes one by one, or of `map` on arrays, hangs on what
/// else it has in hand, and may take four times as long.
#[inline]
fn write_digits(id: [u8; 16], text: &mut [u8; LENGTH]) {
    let mut place = |at: usize, digits: &[u8]| text[at..at + digits.len()].copy_from_slice(digits);
    let mut words = [[0; 8]; 4];
    for (digits, bytes) in words.iter_mut().zip(id.as_chunks::<4>().0) {
        *digits = digits_of(*bytes);
    }
    let [a, b, c, d] = words;
    place(0, &a);
    place(9, &b[..4]);
    place(14, &b[4..]);
    place(19, &c[..4]);
    place(24, &c[4..]);
    place(28, &d);
}

/// Four bytes as hexadecimal digits, all eight at once: each digit gets a byte of its own, and what turns it
/// into a character is added.
#[inline]
fn digits_of(bytes: [u8; 4]) -> [u8; 8] {
    let word = u64::from(u32::from_le_bytes(bytes));
    let halves = (word | (word << 16)) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | (halves << 8)) & 0x00ff_00ff_00ff_00ff;
    let digits = ((bytes >> 4) & 0x000f_000f_000f_000f) | ((bytes & 0x000f_000f_000f_000f) << 8);
    let letters = (digits.wrapping_add(0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    let from_nine_to_a = u64::from(b'a' - b'9' - 1);
    digits
        .wrapping_add(0x3030_3030_3030_3030)
        .wrapping_add(letters.wrapping_mul(from_nine_to_a))
        .to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_written_as_everybody_writes_them(id in any::<[u8; 16]>()) {
            let usual = uuid::Uuid::from_bytes(id).hyphenated().to_string();
            let mut text = b"before".to_vec();
            write_hyphenated(id, &mut text);
            prop_assert_eq!(String::from_utf8(text).unwrap(), format!("before{usual}"));
        }

        #[test]
        fn a_part_of_a_column_is_the_texts_of_its_ids(
            ids in prop::collection::vec(any::<[u8; 16]>(), 1..20),
            from in 0_usize..20,
        ) {
            let from = from.min(ids.len());
            let column = FixedSizeBinaryArray::try_from_iter(ids.iter()).unwrap();
            let texts = texts(&column.slice(from, ids.len() - from)).unwrap();
            let usual = ids.iter().skip(from).map(|id| Some(uuid::Uuid::from_bytes(*id).to_string()));
            prop_assert_eq!(texts, usual.collect::<StringArray>());
        }
    }
}
