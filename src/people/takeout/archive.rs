//! Opens an archive on this machine to read it back.
//!
//! Nothing is trusted before the whole archive has been verified against the digest at its end: an archive in
//! which a bit differs, or whose end is missing, is refused as a whole. Members are then read in place.
//! Blocks, so it runs where blocking is allowed. Knows the form of an archive; knows nothing of what becomes
//! of its content.

mod region;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use bytes::Bytes;
use flate2::read::DeflateDecoder;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::format::{ArchiveContents, FORMAT, FORMAT_VERSION, MANIFEST};
use super::zip::{
    CENTRAL_HEADER, COMMENT, COMMENT_BYTES, END, END_64, END_BYTES, LOCAL_HEADER, LOCATOR_64, Packing, WIDE,
    WIDE_EXTRA,
};
use crate::model::hexadecimal::hexadecimal;

pub(super) use region::Region;

/// How many bytes are read and digested at once.
const STEP: usize = 1 << 20;
/// The longest directory accepted.
const MOST_DIRECTORY: u64 = 1 << 30;
/// The longest element of a list, and the longest manifest, accepted.
const MOST_TEXT: u64 = 256 << 20;
/// The longest of all other objects: far more than the interface takes for one.
const MOST_OBJECT: u64 = 16 << 20;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{path} cannot be read: {error}")]
    Unreadable { path: String, error: io::Error },
    /// Bytes differ from those that were written, or some are missing.
    #[error("the archive is damaged or incomplete: {0}; fetch it again")]
    Damaged(String),
    #[error("{0}")]
    Foreign(String),
}

/// A verified archive.
pub struct Archive {
    members: Members,
    pub(super) manifest: ArchiveContents,
}

/// The content of an archive, by name.
struct Members {
    whole: Region,
    members: BTreeMap<String, Member>,
}

/// Where the bytes of a member lie.
#[derive(Clone, Copy, Debug)]
struct Member {
    packing: Packing,
    from: u64,
    packed: u64,
    bytes: u64,
}

impl Archive {
    /// Opens the archive at `path` and verifies all of it.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let unreadable = |error: io::Error| ArchiveError::Unreadable {
            path: path.display().to_string(),
            error,
        };
        let whole = File::open(path).and_then(Region::of_file).map_err(unreadable)?;
        let end = verified(&whole).map_err(unreadable)??;
        let members = directory(&whole, end).ok_or_else(|| damaged("its directory cannot be read"))?;
        let members = Members { whole, members };
        let archive = Self {
            manifest: members.object(MANIFEST, MOST_TEXT)?,
            members,
        };
        archive.judge()?;
        Ok(archive)
    }

    /// A member that is a single element.
    pub(super) fn object<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArchiveError> {
        self.members.object(name, MOST_OBJECT)
    }

    /// The elements of a list, one by one.
    pub(super) fn list<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = Result<T, ArchiveError>> + use<T>, ArchiveError> {
        let mut lines = BufReader::new(self.members.reader(name)?);
        let name = name.to_owned();
        let wrong = move |error: &dyn std::fmt::Display| damaged(&format!("{name}: {error}"));
        let mut line = String::new();
        let mut numbers = 1_u64..;
        Ok(std::iter::from_fn(move || {
            loop {
                line.clear();
                match (&mut lines).take(MOST_TEXT).read_line(&mut line) {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some(Err(wrong(&error))),
                }
                let number = numbers.next().unwrap_or(u64::MAX);
                let element = line.trim_end();
                let element = element.strip_suffix(',').unwrap_or(element);
                match element {
                    // A list begins and ends once; any other line contains an element. So a list costs no
                    // more than its elements, however long it is.
                    "[" if number == 1 => {}
                    "]" => return ends(&mut lines).map_or_else(|error| Some(Err(wrong(&error))), |()| None),
                    "" | "[" => return Some(Err(wrong(&format!("line {number} holds no element")))),
                    _ => return Some(serde_json::from_str(element).map_err(|error| wrong(&error))),
                }
            }
        }))
    }

    /// The bytes of a member, however it is packed.
    #[cfg(test)]
    pub(super) fn unpacked(&self, name: &str) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        let read = self.members.reader(name)?.read_to_end(&mut bytes);
        read.map_err(|error| damaged(&error.to_string()))?;
        Ok(bytes)
    }

    /// The bytes of a member that is stored uncompressed; `None` if there is no such member.
    pub(super) fn region(&self, name: &str) -> Result<Option<Region>, ArchiveError> {
        let Some(member) = self.members.members.get(name) else {
            return Ok(None);
        };
        if member.packing != Packing::Stored || member.bytes != member.packed {
            return Err(foreign(&format!(
                "{name} is packed in another way than it was written"
            )));
        }
        Ok(Some(self.members.packed(member)))
    }

    /// Whether the manifest describes this archive, in a version that is understood.
    fn judge(&self) -> Result<(), ArchiveError> {
        let manifest = &self.manifest;
        if manifest.format != FORMAT {
            return Err(foreign("it is no archive of a person"));
        }
        if manifest.format_version != FORMAT_VERSION {
            return Err(foreign(&format!(
                "it was written in version {} of the format, and this release reads version \
                 {FORMAT_VERSION}: use the release that wrote it, or a newer one",
                manifest.format_version
            )));
        }
        let known: BTreeSet<&str> = manifest
            .members
            .iter()
            .map(|entry| entry.name.as_str())
            .chain([MANIFEST])
            .collect();
        let members = &self.members.members;
        let there: BTreeSet<&str> = members.keys().map(String::as_str).collect();
        let is_as_long =
            |name: &str, bytes: u64| members.get(name).is_some_and(|member| member.bytes == bytes);
        if known != there
            || !manifest
                .members
                .iter()
                .all(|entry| is_as_long(&entry.name, entry.bytes))
        {
            return Err(damaged("its manifest does not match its members"));
        }
        Ok(())
    }
}

impl Members {
    fn object<T: DeserializeOwned>(&self, name: &str, most: u64) -> Result<T, ArchiveError> {
        let mut text = String::new();
        if self.members.get(name).is_some_and(|member| member.bytes > most) {
            return Err(damaged(&format!("{name} has more than {most} bytes")));
        }
        let read = self.reader(name)?.take(most).read_to_string(&mut text);
        read.map_err(|error| damaged(&format!("{name}: {error}")))?;
        serde_json::from_str(&text).map_err(|error| damaged(&format!("{name}: {error}")))
    }

    fn packed(&self, member: &Member) -> Region {
        self.whole.part(member.from, member.packed)
    }

    fn reader(&self, name: &str) -> Result<Box<dyn Read + Send>, ArchiveError> {
        let member = self
            .members
            .get(name)
            .ok_or_else(|| damaged(&format!("{name} is missing")))?;
        let packed = self.packed(member);
        Ok(match member.packing {
            Packing::Stored => Box::new(packed),
            Packing::Deflated => Box::new(DeflateDecoder::new(packed).take(member.bytes)),
        })
    }
}

/// Fails if anything follows.
fn ends(rest: &mut impl Read) -> io::Result<()> {
    match rest.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("something follows the list")),
    }
}

/// The position of the directory's end, if `whole` matches its digest.
fn verified(whole: &Region) -> io::Result<Result<u64, ArchiveError>> {
    let Some(covered) = whole.len().checked_sub(COMMENT_BYTES as u64) else {
        return Ok(Err(damaged("it is too short")));
    };
    let Some(end) = covered.checked_sub(END_BYTES as u64) else {
        return Ok(Err(damaged("it is too short")));
    };
    let said = whole.bytes(covered, COMMENT_BYTES)?;
    let Some(said) = said.strip_prefix(COMMENT.as_bytes()) else {
        return Ok(Err(damaged(
            "it does not end with its digest, as every intact archive does",
        )));
    };
    let mut digest = Sha256::new();
    let mut at = 0;
    while at < covered {
        let step = (covered - at).min(STEP as u64) as usize;
        digest.update(whole.bytes(at, step)?);
        at += step as u64;
    }
    if hexadecimal(&digest.finalize()).as_bytes() != said {
        return Ok(Err(damaged("its bytes are not those of its digest")));
    }
    Ok(Ok(end))
}

/// The members by name, or `None` if this is not an archive that Almanac wrote.
fn directory(whole: &Region, end: u64) -> Option<BTreeMap<String, Member>> {
    let mut fields = Fields::at(whole, end, END_BYTES)?;
    fields.expect(END)?;
    fields.skip(6)?;
    let mut count = u64::from(fields.next_16()?);
    let mut bytes = u64::from(fields.next_32()?);
    let mut begins = u64::from(fields.next_32()?);
    let mut ends = end;
    if let Some(mut locator) = end.checked_sub(20).and_then(|at| Fields::at(whole, at, 20))
        && locator.expect(LOCATOR_64).is_some()
    {
        locator.skip(4)?;
        ends = locator.next_64()?;
        let mut wide = Fields::at(whole, ends, 56)?;
        wide.expect(END_64)?;
        wide.skip(28)?;
        count = wide.next_64()?;
        bytes = wide.next_64()?;
        begins = wide.next_64()?;
    }
    if begins.checked_add(bytes)? != ends || bytes > MOST_DIRECTORY {
        return None;
    }
    let mut entries = Fields::at(whole, begins, usize::try_from(bytes).ok()?)?;
    let mut members = BTreeMap::new();
    for _ in 0..count {
        let (name, member) = entry(whole, &mut entries)?;
        if member.from.checked_add(member.packed)? > begins || members.insert(name, member).is_some() {
            return None;
        }
    }
    Some(members)
}

fn entry(whole: &Region, entries: &mut Fields) -> Option<(String, Member)> {
    entries.expect(CENTRAL_HEADER)?;
    entries.skip(6)?;
    let packing = match entries.next_16()? {
        0 => Packing::Stored,
        8 => Packing::Deflated,
        _ => return None,
    };
    entries.skip(8)?;
    let mut packed = u64::from(entries.next_32()?);
    let mut bytes = u64::from(entries.next_32()?);
    let (name, extra) = (entries.next_16()?, entries.next_16()?);
    entries.skip(10)?;
    let mut offset = u64::from(entries.next_32()?);
    let name = String::from_utf8(entries.next(usize::from(name))?.to_vec()).ok()?;
    let mut extra = Fields(entries.next(usize::from(extra))?);
    while !extra.0.is_empty() {
        let (kind, length) = (extra.next_16()?, extra.next_16()?);
        let mut values = Fields(extra.next(usize::from(length))?);
        if kind == WIDE_EXTRA {
            for value in [&mut bytes, &mut packed, &mut offset] {
                if *value == u64::from(WIDE) {
                    *value = values.next_64()?;
                }
            }
        }
    }
    let mut head = Fields::at(whole, offset, 30)?;
    head.expect(LOCAL_HEADER)?;
    head.skip(22)?;
    let (name_bytes, extra_bytes) = (head.next_16()?, head.next_16()?);
    let from = offset.checked_add(30 + u64::from(name_bytes) + u64::from(extra_bytes))?;
    let member = Member {
        packing,
        from,
        packed,
        bytes,
    };
    Some((name, member))
}

/// Consecutive little-endian numbers.
struct Fields(Bytes);

impl Fields {
    fn at(whole: &Region, at: u64, count: usize) -> Option<Self> {
        let bytes = whole.bytes(at, count).ok()?;
        (bytes.len() == count).then_some(Self(bytes))
    }

    fn next(&mut self, count: usize) -> Option<Bytes> {
        (count <= self.0.len()).then(|| self.0.split_to(count))
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.next(count).map(drop)
    }

    fn expect(&mut self, signature: u32) -> Option<()> {
        (self.next_32()? == signature).then_some(())
    }

    fn next_16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.next(2)?.as_ref().try_into().ok()?))
    }

    fn next_32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.next(4)?.as_ref().try_into().ok()?))
    }

    fn next_64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.next(8)?.as_ref().try_into().ok()?))
    }
}

fn damaged(what: &str) -> ArchiveError {
    ArchiveError::Damaged(what.to_owned())
}

fn foreign(what: &str) -> ArchiveError {
    ArchiveError::Foreign(format!("the archive cannot be read: {what}"))
}
