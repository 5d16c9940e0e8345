//! Collects output bytes: one open chunk that text is appended to, and finished chunks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The approximate length of a chunk: long enough that a system call per chunk is cheap, short enough to stay
/// in the processor's cache.
pub(super) const CHUNK: usize = 64 * 1024;

/// Room for the row that crosses `CHUNK`.
const ROW_SLACK: usize = 4 * 1024;

/// From this length on, a finished buffer is passed on as it is; below, copying it is cheaper than a separate
/// chunk.
const LARGE_BUFFER: usize = 16 * 1024;

/// A finished buffer longer than twice this is split, so that a slow reader does not keep all of it in
/// memory.
const LONGEST_CHUNK: usize = 256 * 1024;

/// How many buffers are kept for reuse.
const SPARE_BUFFERS: usize = 16;

/// The output of an encoder.
#[derive(Debug, Default)]
pub struct Chunks {
    open: Vec<u8>,
    ready: VecDeque<Bytes>,
    spare: Arc<Spare>,
}

/// Buffers whose chunk was sent. They come back from the sending thread: memory freed there and allocated
/// here would be mapped anew, page by page.
#[derive(Debug, Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

/// A chunk being sent, whose buffer comes back.
struct Lent {
    buffer: Vec<u8>,
    from: Arc<Spare>,
}

impl Spare {
    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Vec<u8>> {
        self.buffers().pop()
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut spare = self.from.buffers();
        if spare.len() < SPARE_BUFFERS {
            spare.push(buffer);
        }
    }
}

impl Chunks {
    /// The open chunk.
    pub(super) fn open(&mut self) -> &mut Vec<u8> {
        if self.open.capacity() == 0 {
            self.open = self.spare.take().unwrap_or_default();
            self.open.reserve(CHUNK + ROW_SLACK);
        }
        &mut self.open
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ready.is_empty()
    }

    /// Whether [`Chunks::push`] copies bytes of this length.
    pub(super) const fn copies(length: usize) -> bool {
        length < LARGE_BUFFER
    }

    pub(super) fn push_copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            if self.open.capacity() == 0 {
                // Often only a few bytes are copied between two buffers that are not.
                self.open.reserve_exact(ROW_SLACK.max(bytes.len()));
            }
            self.open.extend_from_slice(bytes);
        }
        if self.open.len() >= CHUNK {
            self.seal();
        }
    }

    /// Appends a finished buffer; large ones are not copied.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if Self::copies(bytes.len()) {
            return self.push_copy(&bytes);
        }
        self.seal();
        let mut rest = bytes;
        while rest.len() > 2 * LONGEST_CHUNK {
            self.ready.push_back(rest.split_to(LONGEST_CHUNK));
        }
        self.ready.push_back(rest);
    }

    /// Takes the next chunk of full length, or with `all` also the open one.
    pub fn take(&mut self, all: bool) -> Option<Bytes> {
        if self.ready.is_empty() && (all || self.open.len() >= CHUNK) {
            self.seal();
        }
        self.ready.pop_front()
    }

    fn seal(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let buffer = std::mem::take(&mut self.open);
        self.ready.push_back(if buffer.capacity() < CHUNK {
            Bytes::from(buffer)
        } else {
            let from = Arc::clone(&self.spare);
            Bytes::from_owner(Lent { buffer, from })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_large_buffers_are_not_copied() {
        let mut chunks = Chunks::default();
        chunks.open().extend_from_slice(b"head");
        let large = Bytes::from(vec![7; 3 * LONGEST_CHUNK]);
        let address = large.as_ptr();
        chunks.push(large);
        chunks.push(Bytes::from_static(b"tail"));

        let head = chunks.take(false).unwrap();
        assert_eq!(head, b"head"[..]);
        let first = chunks.take(false).unwrap();
        assert_eq!((first.len(), first.as_ptr()), (LONGEST_CHUNK, address));
        assert_eq!(chunks.take(false).unwrap().len(), 2 * LONGEST_CHUNK);
        assert_eq!(chunks.take(false), None);
        assert_eq!(chunks.take(true).unwrap(), b"tail"[..]);
        assert!(chunks.is_empty());
    }
}
