//! Frames: answers that are kept for a while, for tools that read them in parts and do not handle tokens.
//!
//! A frame is a document of the person who asked, inserted in one transaction once all of its bytes are
//! durable, and never changed. It is removed when its time is over, when its person deletes it, or when it
//! may no longer be read. The grounds on which it may be read are stored with it as a text that only the code
//! that decides about access interprets. Knows nothing of questions, grants or HTTP.

mod frame;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use frame::{Described, Frame, FrameError};

use super::limits::LimitReached;
use crate::catalog::documents::{Changed, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::{IdSource, PersonId};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::contents::{Content, Contents, OpenPart};
use crate::store::objects::ObjectStorage;
use crate::upkeep::UpkeepStores;
use frame::{EVERY, KEPT_LINK};

/// An operator's settings for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSettings {
    /// How long a frame is kept.
    pub lifetime: Duration,
    /// The most frames that one person may have at once.
    pub limit: u64,
    /// The most bytes of one frame.
    pub most_bytes: u64,
}

/// The frames of everybody. Cheap to clone.
#[derive(Clone)]
pub struct Frames {
    catalog: Catalog,
    objects: ObjectStorage,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    settings: FrameSettings,
}

impl Frames {
    #[must_use]
    pub const fn new(
        catalog: Catalog,
        objects: ObjectStorage,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        settings: FrameSettings,
    ) -> Self {
        Self {
            catalog,
            objects,
            clock,
            ids,
            settings,
        }
    }

    /// The frames in the stores that background work uses.
    #[must_use]
    pub fn of_stores(stores: &UpkeepStores, settings: FrameSettings) -> Self {
        Self::new(
            stores.catalog.clone(),
            stores.objects().clone(),
            Arc::clone(&stores.clock),
            Arc::clone(&stores.ids),
            settings,
        )
    }

    /// The contents of frames.
    #[must_use]
    pub fn contents(&self) -> Contents {
        Contents::new(
            self.catalog.clone(),
            self.objects.clone(),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
        )
    }

    /// Starts a new frame of `person`, if there is room for one. It is not visible until it is finished.
    pub async fn begin(&self, person: PersonId) -> Result<FrameWriter, FrameError> {
        let now = self.clock.now();
        let (over, kept): (Vec<Frame>, Vec<Frame>) = self
            .all_of(person)
            .await?
            .into_iter()
            .partition(|frame| frame.is_over(now));
        for frame in over {
            self.discard(&frame).await?;
        }
        let limit = self.settings.limit;
        if kept.len() as u64 >= limit {
            let kind = DocumentKind::Frame;
            return Err(LimitReached { kind, limit }.into());
        }
        Ok(FrameWriter {
            frames: self.clone(),
            content: Content::of_frame(self.ids.next(), person, Vec::new(), None),
            open: OpenPart::after(Sha256::new()),
            bytes: 0,
        })
    }

    /// The frames of `person`, oldest first.
    pub async fn of_person(&self, person: PersonId) -> Result<Vec<Frame>, FrameError> {
        let now = self.clock.now();
        let mut frames = self.all_of(person).await?;
        frames.retain(|frame| !frame.is_over(now));
        Ok(frames)
    }

    /// One frame of `person`.
    pub async fn get(&self, person: PersonId, id: Uuid) -> Result<Frame, FrameError> {
        let found = self.find(id).await?;
        found
            .filter(|frame| frame.person == person)
            .ok_or(FrameError::Unknown(id))
    }

    /// Any person's frame, unless its time is over.
    pub async fn find(&self, id: Uuid) -> Result<Option<Frame>, FrameError> {
        let now = self.clock.now();
        let found = self.catalog.document(DocumentKind::Frame, id).await?;
        let frame = found.as_ref().map(Frame::of).transpose()?;
        Ok(frame.filter(|frame| !frame.is_over(now)))
    }

    /// All frames of all people, and whether the time of each is over. A damaged document does not affect the
    /// other frames.
    pub async fn everybodys(&self) -> Result<Vec<(Frame, bool)>, FrameError> {
        let now = self.clock.now();
        let found = self
            .catalog
            .sound_documents_linked(DocumentKind::Frame, KEPT_LINK, EVERY);
        let found = found.await?.reported();
        let read = |document| Frame::of(document).inspect_err(|error| tracing::error!(%error, "left alone"));
        let frames = found.iter().filter_map(|document| read(document).ok());
        Ok(frames
            .map(|frame| {
                let is_over = frame.is_over(now);
                (frame, is_over)
            })
            .collect())
    }

    /// Removes the document of a frame, then its objects. Returns false, and does nothing, if the document
    /// was removed already.
    pub async fn discard(&self, frame: &Frame) -> Result<bool, FrameError> {
        if self.catalog.change_documents(vec![frame.removal()]).await? != Changed::Done {
            return Ok(false);
        }
        let content = frame.content();
        self.contents().remove_parts(&content, &content.parts).await;
        Ok(true)
    }

    async fn all_of(&self, person: PersonId) -> Result<Vec<Frame>, FrameError> {
        let found = self.catalog.documents_of(person, DocumentKind::Frame).await?;
        found.iter().map(Frame::of).collect()
    }

    /// When a frame made at `now` expires.
    fn expiry(&self, now: Instant, until: Instant) -> Instant {
        now.after(self.settings.lifetime).min(until)
    }

    /// Removes every object of a frame that was never made visible.
    async fn clear(&self, content: &Content) -> Result<(), StoreError> {
        let folder = content.folder();
        let listed: Vec<_> = self.objects.list(&folder)?.try_collect().await?;
        for object in listed {
            self.objects.delete(&object.path).await?;
        }
        self.objects.remove_empty_folders(&folder).await
    }
}

/// Writes the bytes of one frame, cut into parts. A writer dropped midway leaves orphans, which are
/// collected.
pub struct FrameWriter {
    frames: Frames,
    /// The content with its durable parts.
    content: Content,
    open: OpenPart,
    bytes: u64,
}

impl FrameWriter {
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), FrameError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        let limit = self.frames.settings.most_bytes;
        if self.bytes > limit {
            return Err(FrameError::TooLarge(limit));
        }
        let begin = || self.frames.contents().part(&self.content);
        self.open.write(bytes, begin).await?;
        if self.open.is_full() {
            self.end_part().await?;
        }
        Ok(())
    }

    /// Finishes the frame. When this returns `Ok` the frame survives a crash, and every node finds it.
    pub async fn finish(mut self, described: Described) -> Result<Frame, FrameError> {
        self.end_part().await?;
        let now = self.frames.clock.now();
        let sha256 = hexadecimal(&self.open.digest().finalize());
        let until = self.frames.expiry(now, described.until);
        let frame = Frame::made(&self.content, sha256, described, now, until);
        let paths: Vec<String> = frame.content().objects().map(|(path, _)| path).collect();
        let insert = frame.insertion(self.frames.settings.limit)?;
        let changed = self
            .frames
            .catalog
            .change_documents_naming(vec![insert], &paths)
            .await;
        match changed {
            Ok(Changed::Done) => Ok(frame),
            Ok(Changed::LimitReached { kind, limit }) => {
                self.abandon().await;
                Err(LimitReached { kind, limit }.into())
            }
            // A part that waited for longer than a write may take was condemned.
            Err(error @ CatalogError::Missing { .. }) => {
                self.abandon().await;
                let detail = error.to_string();
                Err(StoreError::Unavailable { detail }.into())
            }
            // Frames have no names and are new.
            Ok(Changed::Overtaken | Changed::NameTaken { .. }) => {
                let what = format!("frame {} was there before it was made", frame.id);
                Err(StoreError::corrupt(what).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives up and removes what was written.
    pub async fn abandon(mut self) {
        self.open.abandon().await;
        if let Err(error) = self.frames.clear(&self.content).await {
            tracing::warn!(%error, "parts of a frame stay until orphans are collected");
        }
    }

    async fn end_part(&mut self) -> Result<(), FrameError> {
        self.content.parts.extend(self.open.finish().await?);
        Ok(())
    }
}
