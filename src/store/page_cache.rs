//! Reads what the operating system has in memory, on the calling thread.
//!
//! A read that must wait for a disk runs on a thread that may wait, which costs two changes of threads. Most
//! reads are of what was read or written a while ago, which is only copied; Linux tells the two apart. Knows
//! nothing of objects.

use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

/// Ranges of a file, if all of them can be read without waiting. `None` says nothing else, not even whether
/// the file exists.
#[cfg(target_os = "linux")]
pub(super) fn read(path: &Path, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

    let how = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat2(CWD, path, how, Mode::empty(), ResolveFlags::CACHED).ok()?;
    ranges.iter().map(|range| read_range(&file, range)).collect()
}

#[cfg(target_os = "linux")]
fn read_range(file: &rustix::fd::OwnedFd, range: &Range<u64>) -> Option<Bytes> {
    use std::io::IoSliceMut;

    use rustix::io::{ReadWriteFlags, preadv2};

    let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    let mut content = vec![0; length];
    let mut read = 0;
    while let Some(rest) = content.get_mut(read..).filter(|rest| !rest.is_empty()) {
        let offset = range.start + read as u64;
        // The end of the file, or of what is in memory.
        match preadv2(file, &mut [IoSliceMut::new(rest)], offset, ReadWriteFlags::NOWAIT) {
            Ok(0) | Err(_) => return None,
            Ok(more) => read += more,
        }
    }
    Some(content.into())
}

/// Other systems cannot tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn read(_path: &Path, _ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_file_holds_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("object");
        let content: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        // Not every file system can tell. One that can has all of what was just written.
        let can_tell = read(&path, &[0..1, 1..2]).is_some();
        for asked in [vec![0..1, 1..300_000], vec![7..8, 100_000..250_001, 5..5]] {
            let held = asked.iter().map(|range| {
                let (start, end) = (range.start as usize, range.end as usize);
                Bytes::copy_from_slice(&content[start..end])
            });
            let held: Vec<Bytes> = held.collect();
            assert_eq!(read(&path, &asked), can_tell.then_some(held));
        }
        assert_eq!(read(&path, &[0..1, 299_999..300_001]), None, "beyond the end");
        assert_eq!(read(&directory.path().join("other"), &[0..1, 1..2]), None);
    }
}
