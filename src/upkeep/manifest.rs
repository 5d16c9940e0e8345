//! Manifests: what the catalogue knows of a person, as one object beside their data, so that the store alone
//! is enough.
//!
//! One is written after each flush, before replaced objects are deleted, and now and then where anything else
//! changed. Its lines are JSON: first a heading, then rows of the catalogue with the names of their tables,
//! last a checksum of everything before. Compressed with Zstandard. The last two of a person are kept. Their
//! numbers grow and mean nothing else; a writer that was overtaken finds its number taken, or a higher one
//! noted, and writes none, or removes its own. A manifest that takes long to send claims its number first, as
//! an empty object, which is a manifest to nobody.

use std::io::{BufRead as _, BufReader, Write as _};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zstd::stream::{read::Decoder, write::Encoder};

use super::erasure_notes::unheeded_of;
use super::manifest_names::{TakenNumbers, manifest_path, numbers, parse_manifest_path};
use super::stores::UpkeepStores;
use crate::catalog::CatalogError;
use crate::catalog::erasures::only_stays;
use crate::catalog::estates::{EstatePage, EstateReader, EstateWriter, KnownManifest, PutBack};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::objects::{ObjectStorage, ObjectWriter};

/// How many manifests of a person are kept.
const KEPT_MANIFESTS: usize = 2;
/// How often a manifest is tried again that others overtook.
const ATTEMPTS: usize = 8;
const FORMAT: u32 = 1;
/// Decent compression; they are written often.
const COMPRESSION_LEVEL: i32 = 3;
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
    /// The catalogue had lost rows, and what it had before must not be known any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lacks_rows: bool,
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

/// Writes a manifest of a person, unless the newest one is up to date. `false`: nothing was written.
pub async fn write_manifest(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    if is_up_to_date(stores, person).await? {
        return Ok(false);
    }
    write_changed(stores, person).await
}

/// Writes a manifest of a person whether or not anything has changed, for callers who know that it has.
/// `false`: others wrote one meanwhile, or there is no such person.
pub async fn write_changed(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let written = write_next(stores, person, KEPT_MANIFESTS - 1).await?;
    Ok(matches!(written, WriteOutcome::Done { .. }))
}

/// Writes a manifest of a person where the newest one may be damaged: the one before it, which may be the
/// last sound one, stays. `false`: others wrote one meanwhile, or there is no such person.
pub async fn write_above_damage(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let written = write_next(stores, person, KEPT_MANIFESTS).await?;
    Ok(matches!(written, WriteOutcome::Done { .. }))
}

/// Makes the newest manifest of a person say everything that is known now. If others were faster, what they
/// wrote may have been read earlier, so another one is written.
pub async fn bring_up_to_date(stores: &UpkeepStores, person: PersonId) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS {
        let is_there = is_up_to_date(stores, person).await?
            || write_next(stores, person, KEPT_MANIFESTS - 1).await? != WriteOutcome::Overtaken;
        if is_there {
            return Ok(());
        }
    }
    Err(overtaken())
}

/// Writes a manifest of a person in any case, and keeps none of the older ones. If others were faster, what
/// they wrote may have been read earlier, so it goes too. Returns whether an older one may still appear,
/// should one of those die who are writing it.
pub async fn replace_manifests(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    for _ in 0..ATTEMPTS {
        match write_next(stores, person, 0).await? {
            WriteOutcome::Done { among_others } => return Ok(among_others),
            WriteOutcome::Nobody => return Ok(false),
            WriteOutcome::Overtaken => {}
        }
    }
    Err(overtaken())
}

fn overtaken() -> StoreError {
    StoreError::Unavailable {
        detail: "others keep writing down the same person".to_owned(),
    }
}

async fn is_up_to_date(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let Some(known) = stores.catalog.known_manifest(person).await? else {
        return Ok(false);
    };
    Ok(stores.catalog.estate_state(person).await? == Some(known.state))
}

/// The result of writing a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    Done {
        /// Others had claimed lower numbers.
        among_others: bool,
    },
    /// Somebody else wrote or claimed one with its number, or wrote one with a higher number.
    Overtaken,
    /// There is no such person.
    Nobody,
}

/// Writes the next manifest of a person, and keeps the last `kept` of the older ones. `Corrupt` if rows are
/// damaged or lost, or the catalogue is older than the store: what it says would take the place of what it
/// lacks. Lost rows do not count where no older one may stay, or the newest lacks rows too.
async fn write_next(
    stores: &UpkeepStores,
    person: PersonId,
    kept: usize,
) -> Result<WriteOutcome, StoreError> {
    let lost = match write_rows(stores, person, kept, false).await {
        Err(error) if error.is_damage() => error,
        outcome => return outcome,
    };
    let was_whole = !newest_lacks_rows(stores, person).await?;
    if was_whole && kept > 0 {
        return Err(lost);
    }
    let outcome = write_rows(stores, person, kept, true).await?;
    if was_whole {
        tracing::error!(
            %person,
            error = %lost,
            "rows are lost, and what older manifests say must not be known any more: one of what is there \
             takes their place"
        );
    }
    Ok(outcome)
}

/// Whether the newest manifest of a person was written by a catalogue that had lost rows.
async fn newest_lacks_rows(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let Some(newest) = numbers(stores.objects(), person).await?.first().copied() else {
        return Ok(false);
    };
    match Manifest::fetch(stores.objects(), &manifest_path(person, newest)).await {
        Ok(manifest) => Ok(manifest.heading.lacks_rows),
        Err(StoreError::Corrupt { .. } | StoreError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// As [`write_next`]. `lacks_rows`: lost rows do not count.
async fn write_rows(
    stores: &UpkeepStores,
    person: PersonId,
    kept: usize,
    lacks_rows: bool,
) -> Result<WriteOutcome, StoreError> {
    // Before anything is read: a writer that reads a later state takes a higher number, or the same one
    // first. Numbers that the store has lost are not taken again.
    let before = TakenNumbers::of(stores.objects(), person).await?;
    let known = known_number(stores, person).await?;
    let mut older = known.and_then(|known| before.beyond(known));
    if older.is_none() {
        // Also without any manifest: the first one would look as if the person had begun anew.
        older = unheeded_of(&stores.catalog, stores.objects(), person).await?;
    }
    if let Some(reason) = older {
        return Err(StoreError::corrupt(reason));
    }
    if known == Some(KnownManifest::NONE.number) {
        stores.catalog.expect_first_manifest(person).await?;
    }
    let number = before.highest().max(known).map_or(1, |newest| newest + 1);
    stores.catalog.combine_minutes(person).await?;
    let Some(estate) = stores.catalog.read_estate(person).await? else {
        return Ok(WriteOutcome::Nobody);
    };
    let state = estate.state;
    let path = manifest_path(person, number);
    let mut writer = stores.objects().upload_contested(&path)?;
    let sent = match send(person, estate, lacks_rows, &mut writer).await {
        // Others may have looked before its number was claimed: they do not know that it is coming.
        Ok(()) => expect_newest(stores, person, number).await,
        failed => failed,
    };
    let sent = match sent {
        Ok(()) => writer.finish().await,
        Err(error) => {
            // What stays of it is removed with the older ones.
            let _ = writer.abort().await;
            Err(error)
        }
    };
    match sent {
        Err(StoreError::Exists { .. }) => return Ok(WriteOutcome::Overtaken),
        sent => sent?,
    }
    let among_others = !before.claims.is_empty();
    let older = among_others || (kept > 0 && !before.manifests.is_empty());
    let manifest = KnownManifest { number, state };
    match note(stores, person, manifest, older).await {
        Ok(None) => {}
        Ok(Some(in_vain)) => return Ok(in_vain),
        Err(error) => {
            // Whoever noted a higher one may have looked before this one came.
            if known_number(stores, person)
                .await
                .is_ok_and(|known| known > Some(number))
            {
                let _ = stores.objects().delete(&path).await;
            }
            return Err(error);
        }
    }
    for old in before.except_newest(kept) {
        stores.objects().delete(&manifest_path(person, old)).await?;
    }
    Ok(WriteOutcome::Done { among_others })
}

/// The number of the newest manifest of a person that was noted.
pub(super) async fn known_number(stores: &UpkeepStores, person: PersonId) -> Result<Option<i64>, StoreError> {
    match stores.catalog.known_manifest(person).await {
        // What is damaged says nothing, and is replaced.
        Err(CatalogError::Corrupt { .. }) => Ok(None),
        known => Ok(known?.map(|known| known.number)),
    }
}

/// `Exists`, if a manifest was noted meanwhile with this number or a higher one.
async fn expect_newest(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<(), StoreError> {
    if known_number(stores, person).await? >= Some(number) {
        let path = manifest_path(person, number);
        return Err(StoreError::Exists { path });
    }
    Ok(())
}

/// Notes a manifest that is in the store, or removes it, if nobody wants it any more.
async fn note(
    stores: &UpkeepStores,
    person: PersonId,
    manifest: KnownManifest,
    older: bool,
) -> Result<Option<WriteOutcome>, StoreError> {
    let in_vain = if stores.catalog.is_being_erased(person).await? {
        // The erasure began after this write, and may have finished looking.
        WriteOutcome::Nobody
    } else if !stores.catalog.note_manifest(person, manifest, older).await? {
        // What has a higher number was read later, perhaps to remove what this one still says.
        WriteOutcome::Overtaken
    } else {
        return Ok(None);
    };
    let path = manifest_path(person, manifest.number);
    stores.objects().delete(&path).await?;
    Ok(Some(in_vain))
}

/// Sends everything known of a person. The number is claimed on the way, after the reading began: whoever
/// finds it claimed reads a later state.
async fn send(
    person: PersonId,
    mut estate: EstateReader,
    lacks_rows: bool,
    writer: &mut ObjectWriter,
) -> Result<(), StoreError> {
    let mut lines = Lines::begin(person, estate.read_at, lacks_rows)?;
    while let Some(page) = estate.next().await? {
        for row in page.rows {
            lines.row(&Row(page.table.clone(), row))?;
        }
        if let Some(ready) = lines.ready() {
            writer.write(ready).await?;
        }
    }
    if lacks_rows {
        estate.end_lacking().await?;
    } else {
        estate.end().await?;
    }
    writer.write(lines.end()?).await
}

/// Where a manifest mentions a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention {
    Nowhere,
    /// Where no erasure removes it, as [`only_stays`] tells.
    WhereItStays,
    Elsewhere,
}

/// Whether a manifest mentions a person.
pub async fn mention_of(
    objects: &ObjectStorage,
    path: &str,
    person: PersonId,
) -> Result<Mention, StoreError> {
    let content = objects.get(path).await?;
    let (path, names) = (path.to_owned(), spellings_of(person));
    let searched = tokio::task::spawn_blocking(move || {
        let mut found = Mention::Nowhere;
        let mut line = String::new();
        let mut lines = lines_of(&content)?;
        while lines.read_line(&mut line).ok()? > 0 {
            let lower = line.to_ascii_lowercase();
            if names.iter().any(|name| lower.contains(name.as_str())) {
                let row = serde_json::from_str::<Row>(&line);
                if !row.is_ok_and(|Row(table, values)| only_stays(&table, values, person)) {
                    return Some(Mention::Elsewhere);
                }
                found = Mention::WhereItStays;
            }
            line.clear();
        }
        Some(found)
    });
    let found = searched.await.map_err(unwritable)?;
    found.ok_or_else(|| StoreError::corrupt(format!("{path} cannot be read")))
}

/// How the name of an object or a row may spell a person's id, in small letters.
#[must_use]
pub fn spellings_of(person: PersonId) -> [String; 2] {
    [person.to_string(), person.0.simple().to_string()]
}

/// Compresses lines.
struct Lines {
    encoder: Encoder<'static, Vec<u8>>,
    checksum: crc32fast::Hasher,
    rows: u64,
}

impl Lines {
    fn begin(person: PersonId, read_at: Instant, lacks_rows: bool) -> Result<Self, StoreError> {
        let columns = EstateReader::columns().into_iter().map(|(table, columns)| {
            let columns = columns.into_iter().map(str::to_owned).collect();
            (table.to_owned(), columns)
        });
        let heading = Heading {
            format: FORMAT,
            person,
            read_at: read_at.micros(),
            columns: columns.collect(),
            lacks_rows,
        };
        let mut lines = Self {
            encoder: Encoder::new(Vec::new(), COMPRESSION_LEVEL).map_err(unwritable)?,
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
    path: String,
    content: Bytes,
    rows: u64,
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
        // Tables that came later have no rows in it.
        let fits = heading.format == FORMAT
            && heading.columns.iter().all(|(table, columns)| {
                let known = expected.iter().find(|(name, _)| name == table);
                known.is_some_and(|(_, names)| columns == names)
            });
        if !fits {
            return Err(damaged("was written by another release, which alone can read it"));
        }
        Ok(Self {
            heading,
            path: path.to_owned(),
            content,
            rows,
        })
    }

    /// Makes the person in the catalogue what it says of them, if that `is_wanted`; otherwise returns what
    /// that would be. `Corrupt` if a catalogue wrote it that had lost partitions, pieces or dead rows,
    /// and does not say so.
    pub async fn put_back(
        &self,
        mut writer: EstateWriter,
        is_wanted: impl Fn(&PutBack) -> bool,
    ) -> Result<Option<PutBack>, StoreError> {
        let back = match self.put_into(&mut writer).await {
            Ok(put) if is_wanted(&put) => {
                let finished = writer.finish().await;
                finished.map(|()| None).map_err(StoreError::from)
            }
            unwanted => {
                writer.give_up().await?;
                unwanted.map(Some)
            }
        };
        back.map_err(|error| match error {
            StoreError::Corrupt { what } | StoreError::Catalog(CatalogError::Corrupt { what }) => {
                StoreError::corrupt(format!("manifest {}: {what}", self.path))
            }
            // The same row twice, the key of somebody else's, or what another repair put back meanwhile.
            StoreError::Catalog(CatalogError::Exists { what }) => {
                StoreError::corrupt(format!("manifest {}: {what} already exists", self.path))
            }
            error => error,
        })
    }

    /// Puts all its rows into the catalogue.
    async fn put_into(&self, writer: &mut EstateWriter) -> Result<PutBack, StoreError> {
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
        if self.heading.lacks_rows {
            let given_up = writer.give_up_lost(self.heading.moment()).await?;
            tracing::error!(path = %self.path, ?given_up, "a manifest lacks rows that were lost before");
        }
        Ok(writer.verify().await?)
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
