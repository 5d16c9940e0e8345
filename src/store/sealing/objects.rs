//! An object store in which everything of people is sealed.
//!
//! Sealed objects have names of their own in the store beneath. So what was stored before encryption was
//! enabled is recognised by its name, not by its bytes, and is read as it is.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, UploadPart,
};
use ring::aead::LessSafeKey;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::store::errors::{StoreError, was_answered};
use crate::store::folder_names::{DATA_FOLDER, EXPORTS_FOLDER, FILES_FOLDER, FRAMES_FOLDER, PEOPLE_FOLDER};
use crate::store::objects::StoreAbove;

use super::keys::PersonKeys;
use super::sealed::{
    HEADING, Opener, SALT, Sealer, blocks_of, heading, is_whole, open, opened_length, salt_of,
};

/// The suffix of the names of sealed objects.
const SUFFIX: &str = ".sealed";
/// In these folders everything in a person's folder is sealed.
const FOLDERS: [&str; 5] = [
    DATA_FOLDER,
    FILES_FOLDER,
    EXPORTS_FOLDER,
    FRAMES_FOLDER,
    PEOPLE_FOLDER,
];
/// How many headings are remembered, so that parts of an object are read with one request each.
const HEADINGS: u64 = 20_000;
/// How much is read in one go; larger objects are streamed.
const READ_AT_ONCE: u64 = 8 << 20;
/// How many objects are removed at once.
const REMOVED_AT_ONCE: usize = 10;

/// The store above another one.
#[derive(Clone)]
pub(super) struct SealedObjects {
    beneath: Arc<dyn ObjectStore>,
    keys: Arc<PersonKeys>,
    headings: Cache<Path, Heading>,
}

/// What must be known of a sealed object before a part of it can be read.
#[derive(Clone, Copy, Debug)]
struct Heading {
    salt: [u8; SALT],
    /// The size of the sealed object.
    sealed: u64,
}

impl fmt::Debug for SealedObjects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SealedObjects({:?})", self.beneath)
    }
}

impl fmt::Display for SealedObjects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sealed above {}", self.beneath)
    }
}

impl SealedObjects {
    pub(super) fn new(beneath: Arc<dyn ObjectStore>, keys: Arc<PersonKeys>) -> Self {
        Self {
            beneath,
            keys,
            headings: Cache::of(HEADINGS),
        }
    }

    /// A key for a new object, and the bytes with which it must begin.
    async fn begun(&self, person: PersonId, location: &Path) -> Result<(LessSafeKey, Vec<u8>)> {
        let mut salt = [0; SALT];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| refused(location, "the system has no randomness"))?;
        let person = self.keys.ensured(person).await.map_err(outside)?;
        let key = person
            .of_object(&salt, location.as_ref())
            .ok_or_else(|| refused(location, "no key can be made for it"))?;
        Ok((key, heading(salt)))
    }

    async fn heading(&self, location: &Path, sealed: &Path) -> Result<Heading> {
        if let Some(known) = self.headings.get(sealed) {
            return Ok(known);
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(0..HEADING)),
            ..GetOptions::default()
        };
        let found = match self.beneath.get_opts(sealed, options).await {
            Ok(found) => found,
            Err(missing @ Error::NotFound { .. }) => return Err(missing),
            Err(error) => {
                // Of an empty object no range can be read.
                let is_cut_off = was_answered(&error) && self.is_cut_off(sealed).await;
                return Err(if is_cut_off { damaged(location) } else { error });
            }
        };
        let bytes = found.meta.size;
        let content = found.bytes().await?;
        let salt = salt_of(&content).filter(|_| is_whole(bytes));
        let salt = salt.and_then(|salt| salt.try_into().ok());
        let heading = Heading {
            salt: salt.ok_or_else(|| damaged(location))?,
            sealed: bytes,
        };
        self.headings.insert(sealed.clone(), heading);
        Ok(heading)
    }

    /// Whether an object is shorter than its heading, which no sealed object is.
    async fn is_cut_off(&self, sealed: &Path) -> bool {
        let found = self.beneath.head(sealed).await;
        found.is_ok_and(|found| found.size < HEADING)
    }

    /// The heading and the key of an object.
    async fn key_of(
        &self,
        person: PersonId,
        location: &Path,
        sealed: &Path,
    ) -> Result<(Heading, LessSafeKey)> {
        let heading = self.heading(location, sealed).await?;
        let person = self.keys.key_of(person).await.map_err(outside)?;
        let key = person
            .of_object(&heading.salt, location.as_ref())
            .ok_or_else(|| refused(location, "no key can be made for it"))?;
        Ok((heading, key))
    }

    /// Reads parts of an object with one request to the store beneath.
    async fn opened_ranges(
        &self,
        person: PersonId,
        location: &Path,
        sealed: &Path,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>> {
        let (heading, key) = self.key_of(person, location, sealed).await?;
        let length = opened_length(heading.sealed);
        if ranges.iter().any(|range| range.is_empty() || range.end > length) {
            return Err(refused(location, "something beyond its end was asked for"));
        }
        let (firsts, beneath): (Vec<u64>, Vec<Range<u64>>) = ranges
            .iter()
            .map(|range| blocks_of(range, heading.sealed))
            .unzip();
        let contents = self.beneath.get_ranges(sealed, &beneath).await?;
        let parts = ranges.iter().zip(firsts).zip(contents);
        parts
            .map(|((range, first), content)| {
                open(&key, first, range, content).ok_or_else(|| damaged(location))
            })
            .collect()
    }

    async fn opened(
        &self,
        person: PersonId,
        location: &Path,
        sealed: &Path,
        options: GetOptions,
    ) -> Result<GetResult> {
        if options.head {
            let found = self.beneath.get_opts(sealed, options).await?;
            return Ok(GetResult {
                payload: GetResultPayload::Stream(futures::stream::empty().boxed()),
                meta: shown(found.meta, location.clone()),
                range: 0..0,
                attributes: found.attributes,
            });
        }
        let (heading, key) = self.key_of(person, location, sealed).await?;
        let length = opened_length(heading.sealed);
        let range = match &options.range {
            Some(range) => range
                .as_range(length)
                .map_err(|error| refused(location, &error.to_string()))?,
            None => 0..length,
        };
        let (first, beneath) = if range.is_empty() {
            (0, 0..HEADING)
        } else {
            blocks_of(&range, heading.sealed)
        };
        let options = GetOptions {
            range: Some(GetRange::Bounded(beneath)),
            ..options
        };
        let found = self.beneath.get_opts(sealed, options).await;
        // It may have been cut off since its heading was read; whoever reads it next will know.
        let found = found.inspect_err(|_| self.headings.remove(sealed))?;
        let (meta, attributes) = (
            shown(found.meta.clone(), location.clone()),
            found.attributes.clone(),
        );
        let content = if range.is_empty() {
            futures::stream::empty().boxed()
        } else if range.end - range.start <= READ_AT_ONCE {
            let content = open(&key, first, &range, found.bytes().await?);
            let content = content.ok_or_else(|| damaged(location))?;
            futures::stream::once(std::future::ready(Ok(content))).boxed()
        } else {
            let opener = Opener::new(key, first, &range);
            unsealed(found.into_stream(), opener, location.clone())
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(content),
            meta,
            range,
            attributes,
        })
    }
}

#[async_trait]
impl ObjectStore for SealedObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let Some((person, sealed)) = sealed_name(location) else {
            return self.beneath.put_opts(location, payload, options).await;
        };
        let (key, mut content) = self.begun(person, location).await?;
        let mut sealer = Sealer::new(key);
        for part in &payload {
            sealer
                .push(part, &mut content)
                .ok_or_else(|| refused(location, "it cannot be sealed"))?;
        }
        sealer
            .finish(&mut content)
            .ok_or_else(|| refused(location, "it cannot be sealed"))?;
        // What is remembered of an earlier object of this name is no longer valid.
        self.headings.remove(&sealed);
        self.beneath.put_opts(&sealed, content.into(), options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let Some((person, sealed)) = sealed_name(location) else {
            return self.beneath.put_multipart_opts(location, options).await;
        };
        let (key, heading) = self.begun(person, location).await?;
        self.headings.remove(&sealed);
        Ok(Box::new(SealedUpload {
            location: location.clone(),
            beneath: self.beneath.put_multipart_opts(&sealed, options).await?,
            sealer: Sealer::new(key),
            heading,
            held: Vec::new(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let Some((person, sealed)) = sealed_name(location) else {
            return self.beneath.get_opts(location, options).await;
        };
        match self.opened(person, location, &sealed, options.clone()).await {
            // Stored before encryption was enabled, or missing.
            Err(Error::NotFound { .. }) => self.beneath.get_opts(location, options).await,
            opened => opened,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some((person, sealed)) = sealed_name(location) else {
            return self.beneath.get_ranges(location, ranges).await;
        };
        match self.opened_ranges(person, location, &sealed, ranges).await {
            Err(Error::NotFound { .. }) => self.beneath.get_ranges(location, ranges).await,
            opened => opened,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let beneath = Arc::clone(&self.beneath);
        locations
            .map(move |location| {
                let beneath = Arc::clone(&beneath);
                async move {
                    let location = location?;
                    let Some((_, sealed)) = sealed_name(&location) else {
                        beneath.delete(&location).await?;
                        return Ok(location);
                    };
                    let removed = match beneath.delete(&sealed).await {
                        Err(Error::NotFound { .. }) => false,
                        removed => removed.map(|()| true)?,
                    };
                    match beneath.delete(&location).await {
                        Err(Error::NotFound { .. }) if removed => {}
                        other => other?,
                    }
                    Ok(location)
                }
            })
            .buffered(REMOVED_AT_ONCE)
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.beneath.list(prefix).map_ok(listed).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let found = self.beneath.list_with_delimiter(prefix).await?;
        Ok(ListResult {
            objects: found.objects.into_iter().map(listed).collect(),
            ..found
        })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        if sealed_name(from).is_some() || sealed_name(to).is_some() {
            // The name is part of what an object is sealed with.
            return Err(Error::NotImplemented {
                operation: "copying what is sealed".to_owned(),
                implementer: self.to_string(),
            });
        }
        self.beneath.copy_opts(from, to, options).await
    }
}

impl StoreAbove for SealedObjects {
    fn forget_all(&self) {
        self.headings.clear();
        self.keys.clear_remembered();
    }
}

/// An object that is sealed while it is written.
///
/// S3 refuses an object if any part of it but the last has less than 5 MiB. The last block can be sealed only
/// when nothing follows it. So a part is sent when the next one is put: the last block then becomes the end
/// of the last part, instead of a part behind it.
struct SealedUpload {
    location: Path,
    beneath: Box<dyn MultipartUpload>,
    sealer: Sealer,
    /// What the first part begins with; empty once it has it.
    heading: Vec<u8>,
    /// The part that was put last: sealed, but not sent yet.
    held: Vec<u8>,
}

impl fmt::Debug for SealedUpload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SealedUpload({:?})", self.beneath)
    }
}

#[async_trait]
impl MultipartUpload for SealedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let mut sealed = std::mem::take(&mut self.heading);
        for part in &data {
            if self.sealer.push(part, &mut sealed).is_none() {
                let error = refused(&self.location, "it cannot be sealed");
                return Box::pin(std::future::ready(Err(error)));
            }
        }
        let before = std::mem::replace(&mut self.held, sealed);
        if before.is_empty() {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.beneath.put_part(before.into())
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut last = std::mem::take(&mut self.held);
        // Still there if no part was put.
        last.append(&mut self.heading);
        self.sealer
            .finish(&mut last)
            .ok_or_else(|| refused(&self.location, "it cannot be sealed"))?;
        if !last.is_empty() {
            self.beneath.put_part(last.into()).await?;
        }
        self.beneath.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.beneath.abort().await
    }
}

/// Opens the blocks that come from beneath.
fn unsealed(
    blocks: BoxStream<'static, Result<Bytes>>,
    opener: Opener,
    location: Path,
) -> BoxStream<'static, Result<Bytes>> {
    let begun = (blocks, Some(opener), location);
    futures::stream::try_unfold(begun, |(mut blocks, opener, location)| async move {
        let Some(mut opener) = opener else { return Ok(None) };
        let next = blocks.try_next().await?;
        let content = match &next {
            Some(block) => opener.push(block),
            None => opener.finish(),
        };
        let content = content.ok_or_else(|| damaged(&location))?;
        let opener = next.is_some().then_some(opener);
        Ok::<_, Error>(Some((content, (blocks, opener, location))))
    })
    .try_filter(|content| std::future::ready(!content.is_empty()))
    .boxed()
}

/// The owner of an object, and its sealed name. `None` if it belongs to nobody.
fn sealed_name(location: &Path) -> Option<(PersonId, Path)> {
    let mut parts = location.as_ref().split('/');
    let folder = parts.next()?;
    let person = parts.next()?.parse().ok()?;
    parts.next()?;
    FOLDERS
        .contains(&folder)
        .then(|| Path::parse(format!("{location}{SUFFIX}")).ok())
        .flatten()
        .map(|sealed| (person, sealed))
}

/// How an object found beneath is listed.
fn listed(found: ObjectMeta) -> ObjectMeta {
    let opened = found.location.as_ref().strip_suffix(SUFFIX);
    match opened.and_then(|name| Path::parse(name).ok()) {
        Some(location) if sealed_name(&location).is_some() => shown(found, location),
        _ => found,
    }
}

fn shown(found: ObjectMeta, location: Path) -> ObjectMeta {
    ObjectMeta {
        location,
        size: opened_length(found.size),
        ..found
    }
}

fn damaged(location: &Path) -> Error {
    let what = format!("object {location} differs from what was sealed, or another key sealed it");
    outside(StoreError::corrupt(what))
}

fn refused(location: &Path, reason: &str) -> Error {
    Error::Generic {
        store: "sealed objects",
        source: format!("{location}: {reason}").into(),
    }
}

fn outside(error: StoreError) -> Error {
    Error::Generic {
        store: "sealed objects",
        source: Box::new(error),
    }
}
