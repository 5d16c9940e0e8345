//! Manifests: what the catalogue knows of a person, as one object beside their data, so that the store alone
//! is enough.
//!
//! One is written after each flush, before replaced objects are deleted, and now and then where anything else
//! changed. Its lines are JSON: first a heading, then rows of the catalogue with the names of their tables,
//! last a checksum of everything before. Compressed with Zstandard. The last two of a person are kept. Their
//! numbers grow and mean nothing else; a writer that was overtaken finds its number taken and writes none.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};

use bytes::Bytes;
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zstd::stream::{read::Decoder, write::Encoder};

use super::stores::UpkeepStores;
use crate::catalog::estates::{EstatePage, EstateReader, EstateWriter, KnownManifest};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;

/// The folder of all manifests.
pub use crate::store::sealing::PEOPLE_FOLDER;
/// How many manifests of a person are kept.
const KEPT: usize = 2;
/// How often a manifest is tried again that others overtook.
const ATTEMPTS: usize = 8;
const FORMAT: u32 = 1;
/// Decent compression; they are written often.
const LEVEL: i32 = 3;
/// How many compressed bytes are sent together.
const SENT_AT_ONCE: usize = 1 << 20;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heading {
    pub format: u32,
    pub person: PersonId,
    /// When its content was read, by the database's clock, in microseconds.
    pub read_at: i64,
    /// The columns of each table.
    columns: Vec<(String, Vec<String>)>,
}

impl Heading {
    #[must_use]
    pub const fn moment(&self) -> Instant {
        Instant::from_micros(self.read_at)
    }
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
struct Ending {
    rows: u64,
    checksum: u32,
}

/// A line in between.
#[derive(Debug, Serialize, Deserialize)]
struct Row(String, Vec<Value>);

/// The path of a manifest.
#[must_use]
pub fn manifest_path(person: PersonId, number: i64) -> String {
    format!("{PEOPLE_FOLDER}/{person}/{number:012}.json.zst")
}

/// The person and number of a manifest. `None`: the path is not one of a manifest.
#[must_use]
pub fn parse_manifest_path(path: &str) -> Option<(PersonId, i64)> {
    let mut parts = path.strip_prefix(PEOPLE_FOLDER)?.strip_prefix('/')?.split('/');
    let person = parts.next()?.parse().ok()?;
    let number = parts.next()?.strip_suffix(".json.zst")?.parse().ok()?;
    (manifest_path(person, number) == path).then_some((person, number))
}

/// The numbers of a person's manifests, newest first.
pub async fn numbers(objects: &ObjectStorage, person: PersonId) -> Result<Vec<i64>, StoreError> {
    let mut listed = objects.list(&format!("{PEOPLE_FOLDER}/{person}"))?;
    let mut numbers = Vec::new();
    while let Some(object) = listed.try_next().await? {
        if let Some((_, number)) = parse_manifest_path(&object.path) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    Ok(numbers)
}

/// Writes a manifest of a person, unless the newest one is up to date. `false`: nothing was written.
pub async fn write_manifest(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let known = stores.catalog.known_manifest(person).await?;
    if let Some(known) = known
        && stores.catalog.estate_state(person).await? == Some(known.state)
    {
        return Ok(false);
    }
    write_changed(stores, person).await
}

/// Writes a manifest of a person whether or not anything has changed, for callers who know that it has.
/// `false`: others wrote one meanwhile, or there is no such person.
pub async fn write_changed(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    Ok(write_next(stores, person, KEPT - 1).await? == Written::Done)
}

/// Writes a manifest of a person in any case, and keeps none of the older ones. If others were faster, what
/// they wrote may have been read earlier, so it goes too.
pub async fn replace_manifests(stores: &UpkeepStores, person: PersonId) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS {
        if write_next(stores, person, 0).await? != Written::Overtaken {
            return Ok(());
        }
    }
    Err(StoreError::Unavailable {
        detail: "others keep writing down the same person".to_owned(),
    })
}

/// The result of writing a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Done,
    /// Somebody else wrote one with its number.
    Overtaken,
    /// There is no such person.
    Nobody,
}

/// Writes the next manifest of a person, and keeps the last `kept` of the older ones.
async fn write_next(stores: &UpkeepStores, person: PersonId, kept: usize) -> Result<Written, StoreError> {
    // Before anything is read: a writer that reads a later state takes a higher number, or the same one
    // first.
    let before = numbers(stores.objects(), person).await?;
    let Some(mut estate) = stores.catalog.read_estate(person).await? else {
        return Ok(Written::Nobody);
    };
    let number = before.first().map_or(1, |newest| newest + 1);
    let path = manifest_path(person, number);
    let mut upload = stores.objects().upload(&path)?;
    let mut lines = Lines::begin(person, estate.read_at)?;
    while let Some(page) = estate.next().await? {
        for row in page.rows {
            lines.row(&Row(page.table.clone(), row))?;
        }
        if let Some(ready) = lines.ready() {
            upload.write(ready).await?;
        }
    }
    let state = estate.state;
    estate.end().await?;
    upload.write(lines.end()?).await?;
    match upload.finish().await {
        Err(StoreError::Exists { .. }) => return Ok(Written::Overtaken),
        finished => finished?,
    }
    if stores.catalog.is_being_erased(person).await? {
        // The erasure began after this write, and may have finished looking.
        stores.objects().delete(&path).await?;
        return Ok(Written::Nobody);
    }
    let manifest = KnownManifest { number, state };
    let older = kept > 0 && !before.is_empty();
    stores.catalog.note_manifest(person, manifest, older).await?;
    for old in before.iter().skip(kept) {
        stores.objects().delete(&manifest_path(person, *old)).await?;
    }
    Ok(Written::Done)
}

/// Whether a manifest contains one of `names`.
pub async fn mentions(objects: &ObjectStorage, path: &str, names: &[String]) -> Result<bool, StoreError> {
    let content = objects.get(path).await?;
    let (path, names) = (path.to_owned(), names.to_vec());
    let searched = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        let mut lines = lines_of(&content)?;
        while lines.read_line(&mut line).ok()? > 0 {
            if names.iter().any(|name| line.contains(name)) {
                return Some(true);
            }
            line.clear();
        }
        Some(false)
    });
    let found = searched.await.map_err(unwritable)?;
    found.ok_or_else(|| StoreError::corrupt(format!("{path} cannot be read")))
}

/// Compresses lines.
struct Lines {
    encoder: Encoder<'static, Vec<u8>>,
    checksum: crc32fast::Hasher,
    rows: u64,
}

impl Lines {
    fn begin(person: PersonId, read_at: Instant) -> Result<Self, StoreError> {
        let columns = EstateReader::columns().into_iter().map(|(table, columns)| {
            let columns = columns.into_iter().map(str::to_owned).collect();
            (table.to_owned(), columns)
        });
        let heading = Heading {
            format: FORMAT,
            person,
            read_at: read_at.micros(),
            columns: columns.collect(),
        };
        let mut lines = Self {
            encoder: Encoder::new(Vec::new(), LEVEL).map_err(unwritable)?,
            checksum: crc32fast::Hasher::new(),
            rows: 0,
        };
        lines.line(&heading)?;
        Ok(lines)
    }

    fn row(&mut self, row: &Row) -> Result<(), StoreError> {
        self.rows += 1;
        self.line(row)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec(line).map_err(unwritable)?;
        text.push(b'\n');
        self.checksum.update(&text);
        self.encoder.write_all(&text).map_err(unwritable)
    }

    /// The compressed bytes, once there are enough of them.
    fn ready(&mut self) -> Option<Bytes> {
        let compressed = self.encoder.get_mut();
        (compressed.len() >= SENT_AT_ONCE).then(|| std::mem::take(compressed).into())
    }

    fn end(mut self) -> Result<Bytes, StoreError> {
        let ending = Ending {
            rows: self.rows,
            checksum: self.checksum.clone().finalize(),
        };
        self.line(&ending)?;
        Ok(self.encoder.finish().map_err(unwritable)?.into())
    }
}

/// A manifest that was fetched and verified.
pub struct Manifest {
    pub heading: Heading,
    content: Bytes,
    rows: u64,
}

/// Describes what is wrong with the newest manifest of a person, and with what the catalogue knows of it.
pub async fn complaints(stores: &UpkeepStores, person: PersonId) -> Result<Vec<String>, StoreError> {
    let listed = numbers(stores.objects(), person).await?.first().copied();
    // A catalogue that was made from manifests knows of none until it writes one.
    let Some(KnownManifest { number: known, .. }) = stores.catalog.known_manifest(person).await? else {
        return Ok(Vec::new());
    };
    let newest = listed.map_or(known, |listed| listed.max(known));
    let mut complaints = Vec::new();
    // One may have been written, but not noted, when its process ended.
    if newest.saturating_sub(known) > 1 {
        complaints.push(format!(
            "the store has manifests up to {newest}, the catalogue knows of {known}: it is older than the \
             store, and what was written between them is lost"
        ));
    }
    let path = manifest_path(person, newest);
    let is_damaged = match stores.objects().get(&path).await {
        Err(StoreError::Missing { .. }) => {
            if is_lost(stores, person, newest).await? {
                complaints.push(format!("manifest {path} is lost"));
            }
            false
        }
        Err(StoreError::Corrupt { .. }) => true,
        Err(error) => return Err(error),
        Ok(content) => {
            let verified = tokio::task::spawn_blocking(move || verify(&content)).await;
            verified.map_err(unwritable)?.is_none()
        }
    };
    if is_damaged {
        complaints.push(format!("manifest {path} differs from what was written"));
    }
    Ok(complaints)
}

/// Whether a manifest that is not in the store should be: no newer one took its place.
async fn is_lost(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<bool, StoreError> {
    let known = stores.catalog.known_manifest(person).await?;
    Ok(known.is_some_and(|known| known.number == number))
}

/// Writes the newest manifests anew that the catalogue knows of and that the store has lost; returns how
/// many.
pub async fn write_lost(stores: &UpkeepStores) -> Result<usize, StoreError> {
    let mut newest: HashMap<PersonId, i64> = HashMap::new();
    let mut listed = stores.objects().list(PEOPLE_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        if let Some((person, number)) = parse_manifest_path(&object.path) {
            let found = newest.entry(person).or_insert(number);
            *found = number.max(*found);
        }
    }
    let mut written = 0;
    let mut after = None;
    loop {
        let known = stores.catalog.known_manifests(after).await?;
        let Some((last, _)) = known.last() else {
            return Ok(written);
        };
        after = Some(*last);
        for (person, number) in known {
            if newest.get(&person).is_some_and(|newest| *newest >= number) {
                continue;
            }
            // A list may be behind what is there.
            let path = manifest_path(person, number);
            if stores.objects().version(&path).await?.is_none() && is_lost(stores, person, number).await? {
                tracing::error!(%path, "a manifest is lost, and is written anew");
                written += usize::from(write_next(stores, person, KEPT - 1).await? == Written::Done);
            }
        }
    }
}

impl Manifest {
    /// Fetches the manifest at `path`. `Corrupt` if it is not what was written.
    pub async fn fetch(objects: &ObjectStorage, path: &str) -> Result<Self, StoreError> {
        let content = objects.get(path).await?;
        let damaged = |what: &str| StoreError::corrupt(format!("manifest {path} {what}"));
        let verified = content.clone();
        let verified = tokio::task::spawn_blocking(move || verify(&verified)).await;
        let (heading, rows) = verified
            .map_err(unwritable)?
            .ok_or_else(|| damaged("differs from what was written"))?;
        let of_name = parse_manifest_path(path).map(|(person, _)| person);
        if of_name != Some(heading.person) {
            return Err(damaged("says that it is another"));
        }
        let expected = EstateReader::columns();
        let fits = heading.format == FORMAT
            && heading.columns.len() == expected.len()
            && heading
                .columns
                .iter()
                .zip(&expected)
                .all(|((table, columns), (name, names))| table == name && columns == names);
        if !fits {
            return Err(damaged("was written by another release; use that one"));
        }
        Ok(Self {
            heading,
            content,
            rows,
        })
    }

    /// Puts all its rows into the catalogue.
    pub async fn put_into(&self, writer: &mut EstateWriter) -> Result<(), StoreError> {
        let mut lines = lines_of(&self.content).ok_or_else(unreadable)?;
        let mut line = String::new();
        // The heading.
        lines.read_line(&mut line).map_err(|_| unreadable())?;
        let mut page: Option<EstatePage> = None;
        for _ in 0..self.rows {
            line.clear();
            lines.read_line(&mut line).map_err(|_| unreadable())?;
            let Row(table, values) = serde_json::from_str(&line).map_err(|_| unreadable())?;
            let is_full = page
                .as_ref()
                .is_some_and(|page| page.table != table || page.rows.len() >= 512);
            if let Some(page) = page.take_if(|_| is_full) {
                writer.put(page).await?;
            }
            page.get_or_insert_with(|| EstatePage {
                table,
                rows: Vec::new(),
            })
            .rows
            .push(values);
        }
        if let Some(page) = page {
            writer.put(page).await?;
        }
        Ok(())
    }
}

fn lines_of(content: &Bytes) -> Option<BufReader<Decoder<'static, BufReader<std::io::Cursor<Bytes>>>>> {
    let decoder = Decoder::new(std::io::Cursor::new(content.clone())).ok()?;
    Some(BufReader::new(decoder))
}

/// The heading and the number of rows, if everything is what was written.
fn verify(content: &Bytes) -> Option<(Heading, u64)> {
    let mut lines = lines_of(content)?;
    let (mut heading, mut count) = (None, 0_u64);
    let mut checksum = crc32fast::Hasher::new();
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if heading.is_none() {
            heading = Some(serde_json::from_str(&line).ok()?);
        } else if line.starts_with('{') {
            let ending: Ending = serde_json::from_str(&line).ok()?;
            let is_whole = ending.checksum == checksum.finalize() && ending.rows == count;
            return heading.filter(|_| is_whole).map(|heading| (heading, count));
        } else {
            count += 1;
        }
        checksum.update(line.as_bytes());
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn unwritable(error: impl ToString) -> StoreError {
    StoreError::Unavailable {
        detail: format!("a manifest: {}", error.to_string()),
    }
}

fn unreadable() -> StoreError {
    StoreError::corrupt("a manifest cannot be read")
}
