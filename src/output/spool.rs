//! Keeps the text of several columns in one temporary file, appended in turns and read back column by column.
//!
//! The file is created when first needed, beside those of running questions and within their common limit,
//! and is deleted with the answer.

use std::collections::VecDeque;
use std::io::Error;

use crate::query::spill_files::{SpillFiles, Spilled};

#[derive(Debug)]
pub(super) struct Spool {
    files: SpillFiles,
    file: Option<Spilled>,
    length: u64,
    /// The extents of the file that belong to each column, in order.
    extents: Vec<VecDeque<Extent>>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    length: u64,
}

impl Spool {
    pub(super) fn new(files: SpillFiles, columns: usize) -> Self {
        Self {
            files,
            file: None,
            length: 0,
            extents: vec![VecDeque::new(); columns],
        }
    }

    pub(super) fn append(&mut self, column: usize, text: &[u8]) -> Result<(), Error> {
        let Some(extents) = self.extents.get_mut(column) else {
            return Ok(());
        };
        if text.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.files.create()?,
        };
        file.append(text)?;
        self.file = Some(file);
        extents.push_back(Extent {
            start: self.length,
            length: text.len() as u64,
        });
        self.length += text.len() as u64;
        Ok(())
    }

    /// Moves at most `limit` bytes of a column's remaining text to `out`. Returns false when nothing is left.
    pub(super) fn read(&mut self, column: usize, limit: usize, out: &mut Vec<u8>) -> Result<bool, Error> {
        let (Some(file), Some(extents)) = (&self.file, self.extents.get_mut(column)) else {
            return Ok(false);
        };
        let Some(extent) = extents.front_mut() else {
            return Ok(false);
        };
        let part = extent.length.min(limit as u64);
        let before = out.len();
        out.resize(before + part as usize, 0);
        file.read(extent.start, out.get_mut(before..).unwrap_or_default())?;
        extent.start += part;
        extent.length -= part;
        if extent.length == 0 {
            extents.pop_front();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_reads_back_in_order() {
        let mut spool = Spool::new(SpillFiles::default(), 2);
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
}
