//! Text of several columns in one temporary file, appended in turns and read back column by column.
//!
//! The file has no name, so it is gone with the answer or with the process. It is made when first needed, in
//! the directory that the operating system has for such files.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::path::Path;

#[derive(Debug)]
pub(super) struct Spool {
    file: Option<File>,
    length: u64,
    /// What of the file belongs to each column, in order.
    pieces: Vec<VecDeque<Piece>>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    length: u64,
}

impl Spool {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            file: None,
            length: 0,
            pieces: vec![VecDeque::new(); columns],
        }
    }

    pub(super) fn append(&mut self, column: usize, text: &[u8]) -> Result<(), Error> {
        let Some(pieces) = self.pieces.get_mut(column) else {
            return Ok(());
        };
        if text.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => nameless_file(&std::env::temp_dir())?,
        };
        file.write_all(text)?;
        self.file = Some(file);
        pieces.push_back(Piece {
            start: self.length,
            length: text.len() as u64,
        });
        self.length += text.len() as u64;
        Ok(())
    }

    /// Moves at most `limit` bytes of what is left of a column to `out`. Returns false when nothing is left.
    pub(super) fn read(&mut self, column: usize, limit: usize, out: &mut Vec<u8>) -> Result<bool, Error> {
        let (Some(file), Some(pieces)) = (&mut self.file, self.pieces.get_mut(column)) else {
            return Ok(false);
        };
        let Some(piece) = pieces.front_mut() else {
            return Ok(false);
        };
        let part = piece.length.min(limit as u64);
        file.seek(SeekFrom::Start(piece.start))?;
        let before = out.len();
        file.take(part).read_to_end(out)?;
        if out.len() - before != part as usize {
            return Err(Error::other("the temporary file became shorter"));
        }
        piece.start += part;
        piece.length -= part;
        if piece.length == 0 {
            pieces.pop_front();
        }
        Ok(true)
    }
}

/// A file that only its handle leads to.
fn nameless_file(directory: &Path) -> Result<File, Error> {
    let path = directory.join(format!("almanac-{}", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_reads_back_in_order() {
        let mut spool = Spool::new(2);
        for part in 0..10_u8 {
            spool.append(0, &[part; 10]).unwrap();
            spool.append(1, &[100 + part; 7]).unwrap();
            spool.append(1, &[]).unwrap();
        }
        for (column, base, length) in [(0, 0, 10), (1, 100, 7)] {
            let mut read = Vec::new();
            while spool.read(column, 4, &mut read).unwrap() {}
            let expected: Vec<u8> = (0..10).flat_map(|part| vec![base + part; length]).collect();
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn the_file_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = nameless_file(directory.path()).unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
