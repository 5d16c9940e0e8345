//! The form of a sealed object: a heading, then blocks, each under authenticated encryption.
//!
//! The heading names the form and holds a salt. The key of the object is derived from the salt, the path and
//! the person's key. Blocks are numbered, so that none can replace another or move to another object. The
//! checksums above notice a missing end, since they know the length of the object.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

/// The size of a block before it is sealed.
pub(super) const BLOCK: u64 = 64 << 10;
/// How much a block grows by.
const TAG: u64 = 16;
pub(super) const SALT: usize = 16;
const FORM: [u8; 8] = *b"almseal1";
/// The size of the heading.
pub(super) const HEADING: u64 = (FORM.len() + SALT) as u64;

/// The bytes with which an object begins.
pub(super) fn heading(salt: [u8; SALT]) -> Vec<u8> {
    [&FORM[..], &salt[..]].concat()
}

/// The salt in a heading.
pub(super) fn salt_of(heading: &[u8]) -> Option<&[u8]> {
    heading.strip_prefix(&FORM).filter(|salt| salt.len() == SALT)
}

/// The content length of an object of `sealed` bytes.
pub(super) fn opened_length(sealed: u64) -> u64 {
    let content = sealed.saturating_sub(HEADING);
    content.saturating_sub(content.div_ceil(BLOCK + TAG) * TAG)
}

/// Whether an object of `sealed` bytes, its heading included, ends where a block may end.
pub(super) fn is_whole(sealed: u64) -> bool {
    let last = sealed.saturating_sub(HEADING) % (BLOCK + TAG);
    last == 0 || last > TAG
}

/// The blocks that contain `range`, which is not empty, and where they are in a sealed object of `sealed`
/// bytes.
pub(super) fn blocks_of(range: &Range<u64>, sealed: u64) -> (u64, Range<u64>) {
    let (first, last) = (range.start / BLOCK, (range.end - 1) / BLOCK);
    let from = HEADING + first * (BLOCK + TAG);
    let until = (HEADING + (last + 1) * (BLOCK + TAG)).min(sealed);
    (first, from..until)
}

/// Seals content that arrives in chunks.
pub(super) struct Sealer {
    key: LessSafeKey,
    next: u64,
    waiting: BytesMut,
}

impl Sealer {
    pub(super) fn new(key: LessSafeKey) -> Self {
        Self {
            key,
            next: 0,
            waiting: BytesMut::new(),
        }
    }

    /// Appends to `out` the blocks that `content` completes.
    pub(super) fn push(&mut self, content: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.waiting.extend_from_slice(content);
        while self.waiting.len() as u64 >= BLOCK {
            let block = self.waiting.split_to(BLOCK as usize);
            self.seal(&block, out)?;
        }
        Some(())
    }

    /// Appends the last block.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let block = self.waiting.split();
        if block.is_empty() {
            Some(())
        } else {
            self.seal(&block, out)
        }
    }

    fn seal(&mut self, block: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let from = out.len();
        out.extend_from_slice(block);
        let content = out.get_mut(from..)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(self.next), Aad::empty(), content)
            .ok()?;
        out.extend_from_slice(tag.as_ref());
        self.next += 1;
        Some(())
    }
}

/// The bytes of `range`. `sealed` is exactly the blocks that contain it, the first of which is number
/// `first`. `None` if a block is not what was sealed.
pub(super) fn open(key: &LessSafeKey, first: u64, range: &Range<u64>, sealed: Bytes) -> Option<Bytes> {
    let mut content = sealed
        .try_into_mut()
        .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    let (whole, mut opened) = ((BLOCK + TAG) as usize, 0);
    for number in 0..content.len().div_ceil(whole) {
        let from = number * whole;
        let block = content.get_mut(from..)?;
        let length = block.len().min(whole);
        let length = key
            .open_in_place(
                nonce(first + number as u64),
                Aad::empty(),
                block.get_mut(..length)?,
            )
            .ok()?
            .len();
        content.copy_within(from..from + length, opened);
        opened += length;
    }
    let from = (range.start - first * BLOCK) as usize;
    let until = from + (range.end - range.start) as usize;
    (until <= opened).then(|| content.freeze().slice(from..until))
}

/// Opens blocks that arrive in chunks, and keeps the requested bytes.
pub(super) struct Opener {
    key: LessSafeKey,
    next: u64,
    waiting: BytesMut,
    /// How many bytes come before the requested ones.
    skip: u64,
    /// How many of the requested bytes have not come yet.
    left: u64,
}

impl Opener {
    /// An opener for `range`, whose first block is number `first`.
    pub(super) fn new(key: LessSafeKey, first: u64, range: &Range<u64>) -> Self {
        Self {
            key,
            next: first,
            waiting: BytesMut::new(),
            skip: range.start - first * BLOCK,
            left: range.end - range.start,
        }
    }

    /// Takes more of the object; returns what can be opened now. `None` if a block is not what was sealed.
    pub(super) fn push(&mut self, sealed: &[u8]) -> Option<Bytes> {
        self.waiting.extend_from_slice(sealed);
        let mut out = BytesMut::new();
        while self.waiting.len() as u64 >= BLOCK + TAG {
            let block = self.waiting.split_to((BLOCK + TAG) as usize);
            self.open(block, &mut out)?;
        }
        Some(out.freeze())
    }

    /// The rest at the end. `None` if something is missing.
    pub(super) fn finish(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        let block = self.waiting.split();
        if !block.is_empty() {
            self.open(block, &mut out)?;
        }
        (self.left == 0).then(|| out.freeze())
    }

    fn open(&mut self, mut block: BytesMut, out: &mut BytesMut) -> Option<()> {
        let opened = self
            .key
            .open_in_place(nonce(self.next), Aad::empty(), &mut block)
            .ok()?;
        self.next += 1;
        let from = self.skip.min(opened.len() as u64);
        self.skip -= from;
        let length = self.left.min(opened.len() as u64 - from);
        self.left -= length;
        out.extend_from_slice(opened.get(from as usize..(from + length) as usize)?);
        Some(())
    }
}

/// Each block of an object has its own nonce, and each object its own key.
fn nonce(block: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&block.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}
