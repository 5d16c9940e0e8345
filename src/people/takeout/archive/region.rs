//! A range of bytes of a file: lets a member of an archive be read without the rest.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A range of bytes of a file.
#[derive(Clone)]
pub(in crate::people::takeout) struct Region {
    file: Arc<File>,
    from: u64,
    until: u64,
}

impl Region {
    /// All of a file.
    pub(in crate::people::takeout) fn of_file(file: File) -> io::Result<Self> {
        Ok(Self {
            until: file.metadata()?.len(),
            file: Arc::new(file),
            from: 0,
        })
    }

    /// `count` bytes of the same file from `from` on.
    pub(super) fn part(&self, from: u64, count: u64) -> Self {
        Self {
            file: Arc::clone(&self.file),
            from,
            until: from.saturating_add(count),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.until - self.from
    }

    /// Up to `count` of its bytes from `at` on, as many as exist.
    pub(in crate::people::takeout) fn bytes(&self, at: u64, count: usize) -> io::Result<Bytes> {
        let from = self.from.saturating_add(at).min(self.until);
        let count = (self.until - from).min(count as u64) as usize;
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes.into())
    }

    fn after(&self, at: u64) -> Self {
        Self {
            from: self.from.saturating_add(at).min(self.until),
            ..self.clone()
        }
    }
}

impl Read for Region {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.len().min(buffer.len() as u64) as usize;
        let Some(wanted) = buffer.get_mut(..count) else {
            return Ok(0);
        };
        let read = self.file.read_at(wanted, self.from)?;
        self.from += read as u64;
        Ok(read)
    }
}

impl Length for Region {
    fn len(&self) -> u64 {
        self.len()
    }
}

impl ChunkReader for Region {
    type T = BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.after(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.bytes(start, length)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF("a member ends too early".to_owned()));
        }
        Ok(bytes)
    }
}
