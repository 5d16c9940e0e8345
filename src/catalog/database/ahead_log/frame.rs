//! One frame of SQLite's write-ahead log: what it says of itself, and what its checksum continues.

pub(super) const FRAME_HEADER: usize = 24;
/// The bytes of the header that are summed; the page is summed after them.
const SUMMED: usize = 8;

/// A frame: its header and a page.
pub(super) struct Frame<'a> {
    bytes: &'a [u8],
    /// How the log begins.
    magic: u32,
}

impl<'a> Frame<'a> {
    pub(super) const fn new(bytes: &'a [u8], magic: u32) -> Self {
        Self { bytes, magic }
    }

    /// What all frames of one round of the log share.
    pub(super) fn mark(&self) -> (u32, u32) {
        marked(self.bytes, 8)
    }

    /// The number of its page, from 1.
    pub(super) fn page(&self) -> u32 {
        word(self.bytes, 0)
    }

    /// The size of the database in the last frame of a transaction; 0 in every other.
    pub(super) fn size(&self) -> u32 {
        word(self.bytes, 4)
    }

    /// The checksum that was written into it.
    pub(super) fn stored(&self) -> Sum {
        Sum::read(self.bytes, 16)
    }

    /// The checksum that it should have behind a frame with the checksum `before`.
    pub(super) fn summed(&self, before: Sum) -> Sum {
        self.summed_with(before, self.size())
    }

    /// The same, if its size were another.
    pub(super) fn summed_with(&self, before: Sum, size: u32) -> Sum {
        let mut header = [0; SUMMED];
        header.copy_from_slice(&self.bytes[..SUMMED]);
        header[4..].copy_from_slice(&size.to_be_bytes());
        before
            .and(&header, self.magic)
            .and(&self.bytes[FRAME_HEADER..], self.magic)
    }

    /// Whether it would have its checksum if one bit of what is summed were another.
    pub(super) fn is_one_bit_off(&self, before: Sum) -> bool {
        let off = self.stored().less(self.summed(before));
        let header = pairs(&self.bytes[..SUMMED], self.magic);
        let page = pairs(&self.bytes[FRAME_HEADER..], self.magic);
        // By what a word of the last pair changes the sum if it is greater by one. Every pair behind it adds
        // the two halves of the change to each other, as it does with those of the sum.
        let mut weights = [Sum(1, 1), Sum(0, 1)];
        for pair in header.chain(page).rev() {
            for (word, weight) in pair.into_iter().zip(weights) {
                let explains = |bit: u32| {
                    let change = if word & bit == 0 { bit } else { bit.wrapping_neg() };
                    weight.times(change) == off
                };
                if (0..u32::BITS).any(|place| explains(1 << place)) {
                    return true;
                }
            }
            weights = weights.map(|weight| weight.and_pair([0, 0]));
        }
        false
    }
}

/// The two words at a place of the header of a log or of a frame that mark a round of the log.
pub(super) fn marked(bytes: &[u8], at: usize) -> (u32, u32) {
    (word(bytes, at), word(bytes, at + 4))
}

/// A number of the log, which is big-endian.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

/// The words that are summed, two by two. The last bit of `magic` gives their byte order.
fn pairs(bytes: &[u8], magic: u32) -> impl DoubleEndedIterator<Item = [u32; 2]> {
    let read = if magic & 1 == 1 {
        u32::from_be_bytes
    } else {
        u32::from_le_bytes
    };
    let (words, _rest) = bytes.as_chunks::<4>();
    let (pairs, _rest) = words.as_chunks::<2>();
    pairs.iter().map(move |pair| pair.map(read))
}

/// The checksum of everything up to some point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum(u32, u32);

impl Sum {
    /// The checksum at a place of the header of a log or of a frame.
    pub(super) fn read(bytes: &[u8], at: usize) -> Self {
        Self(word(bytes, at), word(bytes, at + 4))
    }

    /// The same extended by `bytes`.
    pub(super) fn and(self, bytes: &[u8], magic: u32) -> Self {
        pairs(bytes, magic).fold(self, Self::and_pair)
    }

    const fn and_pair(self, [one, other]: [u32; 2]) -> Self {
        let first = self.0.wrapping_add(one).wrapping_add(self.1);
        Self(first, self.1.wrapping_add(other).wrapping_add(first))
    }

    const fn less(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0), self.1.wrapping_sub(other.1))
    }

    const fn times(self, factor: u32) -> Self {
        Self(self.0.wrapping_mul(factor), self.1.wrapping_mul(factor))
    }
}
