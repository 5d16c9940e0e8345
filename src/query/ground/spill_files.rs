//! Temporary files for what has no room in memory: answers that wait for their end, and bodies that are
//! arriving. They are in the spill directory of running questions and count towards the same limit.
//!
//! Each is deleted when its holder is dropped, or with the process. Knows bytes; knows nothing of what they
//! are.

use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::{SpillFile, SpillWriter};

/// What DataFusion says when its own files would be larger than the limit. It says so in words only.
const PAST_THE_LIMIT: &str = "has exceeded the allowable limit";

/// An error of a running question. If it is that there may not be more on disk, it is told as a full disk is.
pub(super) fn told_as_full(error: DataFusionError) -> DataFusionError {
    let first: &(dyn std::error::Error + 'static) = &error;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    let is_past_limit = causes.any(|error| {
        let on_disk = error.downcast_ref::<Error>();
        on_disk.is_some_and(|error| error.to_string().contains(PAST_THE_LIMIT))
    });
    if !is_past_limit {
        return error;
    }
    DataFusionError::IoError(Error::new(ErrorKind::StorageFull, error.to_string()))
}

/// Makes such files. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SpillFiles {
    /// `None` uses the system's temporary directory: tools and tests have no engine.
    disk: Option<Arc<DiskManager>>,
}

/// A file that grows at its end and is read anywhere.
pub struct Spilled {
    /// Counts what is written.
    writer: Box<dyn SpillWriter>,
    reader: File,
    disk: Arc<DiskManager>,
    _kept: Arc<dyn SpillFile>,
}

impl SpillFiles {
    pub(in crate::query) const fn within(disk: Arc<DiskManager>) -> Self {
        Self { disk: Some(disk) }
    }

    pub fn create(&self) -> Result<Spilled, Error> {
        let disk = match &self.disk {
            Some(disk) => Arc::clone(disk),
            None => Arc::new(DiskManager::builder().build().map_err(Error::other)?),
        };
        let kept = disk
            .create_tmp_file("keeping what has no room in memory")
            .map_err(Error::other)?;
        let path = kept
            .path()
            .ok_or_else(|| Error::other("a file that is kept for a moment has no path"))?;
        Ok(Spilled {
            reader: File::open(path)?,
            writer: kept.open_writer().map_err(Error::other)?,
            disk,
            _kept: kept,
        })
    }
}

impl Spilled {
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // DataFusion's own error is only text, so room is checked beforehand.
        let room = self
            .disk
            .max_temp_directory_size()
            .saturating_sub(self.disk.used_disk_space());
        if bytes.len() as u64 > room {
            return Err(Error::new(
                ErrorKind::StorageFull,
                "what is kept in files for a moment uses all the disk that it may",
            ));
        }
        self.writer.write_all(bytes)
    }

    /// Fills `bytes` from offset `place`.
    pub fn read(&self, place: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact_at(bytes, place)
    }
}

impl fmt::Debug for Spilled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Spilled").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::error::ArrowError;

    use super::*;

    #[test]
    fn what_is_written_counts_and_is_given_back() {
        let disk = DiskManager::builder()
            .with_max_temp_directory_size(1000)
            .build()
            .unwrap();
        let files = SpillFiles::within(Arc::new(disk));
        let disk = files.disk.clone().unwrap();
        let mut first = files.create().unwrap();
        first.append(&[7; 600]).unwrap();
        let mut second = files.create().unwrap();
        let error = second.append(&[8; 600]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let mut read = [0; 10];
        first.read(590, &mut read).unwrap();
        assert_eq!((read, disk.used_disk_space()), ([7; 10], 600));
        drop(first);
        assert_eq!(disk.used_disk_space(), 0);
        second.append(&[8; 600]).unwrap();
    }

    #[test]
    fn rows_past_the_limit_are_told_as_a_full_disk() {
        let disk = DiskManager::builder().with_max_temp_directory_size(1000);
        let file = Arc::new(disk.build().unwrap()).create_tmp_file("rows").unwrap();
        let error = file.open_writer().unwrap().write_all(&[7; 2000]).unwrap_err();
        let error = DataFusionError::from(ArrowError::from(error)).context("while sorting");
        let told = told_as_full(error);
        let DataFusionError::IoError(told) = told else {
            panic!("{told}");
        };
        assert_eq!(told.kind(), ErrorKind::StorageFull);
        let other = DataFusionError::Internal(PAST_THE_LIMIT.to_owned());
        assert!(matches!(told_as_full(other), DataFusionError::Internal(_)));
    }
}
