//! Writes objects that must not exist yet, at once or in parts.
//!
//! Knows the names of objects and their bytes; does not know which store they go to.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, WriteMultipart};

use crate::store::errors::StoreError;

/// Objects up to this size are sent in one request, larger ones in parts of it.
pub(super) const PART_BYTES: usize = 8 << 20;
/// Objects up to this size are written to a directory at once, larger ones in parts of it: parts need no
/// requests there, and unwritten bytes are held in memory.
pub(super) const WRITTEN_BYTES: usize = 1 << 20;
/// How many parts are sent at once.
const PARTS_AT_ONCE: usize = 4;

/// Whether the name of an object belongs to its writer before the object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nobody else wants it.
    Needless,
    /// Before the first part is sent.
    Due,
    Made,
}

/// Writes one object. Dropping it leaves nothing visible, except the claim of a contested name.
#[derive(Debug)]
pub struct ObjectWriter {
    store: Arc<dyn ObjectStore>,
    claim: Claim,
    location: Path,
    part_bytes: usize,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    parts: Option<WriteMultipart>,
}

impl ObjectWriter {
    pub(super) const fn new(
        store: Arc<dyn ObjectStore>,
        location: Path,
        part_bytes: usize,
        claim: Claim,
    ) -> Self {
        Self {
            store,
            claim,
            location,
            part_bytes,
            pending: Vec::new(),
            pending_bytes: 0,
            parts: None,
        }
    }

    /// Appends to the object; waits while too much is being sent.
    pub async fn write(&mut self, content: Bytes) -> Result<(), StoreError> {
        if let Some(parts) = &mut self.parts {
            parts
                .wait_for_capacity(PARTS_AT_ONCE)
                .await
                .map_err(not_written)?;
            parts.put(content);
            return Ok(());
        }
        self.pending_bytes += content.len();
        self.pending.push(content);
        if self.pending_bytes > self.part_bytes {
            if self.claim == Claim::Due {
                claim(&*self.store, &self.location).await?;
                self.claim = Claim::Made;
            }
            let begun = self.store.put_multipart(&self.location).await;
            let upload = begun.map_err(not_written)?;
            let mut parts = WriteMultipart::new_with_chunk_size(upload, self.part_bytes);
            for content in self.pending.drain(..) {
                parts.put(content);
            }
            self.parts = Some(parts);
        }
        Ok(())
    }

    /// Makes the object durable and visible.
    pub async fn finish(self) -> Result<(), StoreError> {
        if let Some(parts) = self.parts {
            return parts.finish().await.map(drop).map_err(not_written);
        }
        let content = PutPayload::from_iter(self.pending);
        create(&*self.store, &self.location, content).await
    }

    /// Gives up, and removes what was sent, and then the claim: nothing can take its place any more.
    pub async fn abort(self) -> Result<(), StoreError> {
        if let Some(parts) = self.parts {
            parts.abort().await?;
        }
        if self.claim == Claim::Made {
            let removed = self.store.delete(&self.location).await;
            // Somebody else may have removed it.
            return match removed.map_err(StoreError::from) {
                Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
                Err(error) => Err(error),
            };
        }
        Ok(())
    }
}

/// Writes an object that must not exist yet.
pub(super) async fn create(
    store: &dyn ObjectStore,
    location: &Path,
    payload: PutPayload,
) -> Result<(), StoreError> {
    let content = payload.clone();
    let put = store.put_opts(location, payload, PutOptions::from(PutMode::Create));
    match put.await {
        // A store's answer may be lost; a repeated request then finds the object that the first one
        // wrote.
        Err(exists @ object_store::Error::AlreadyExists { .. }) => {
            if holds(store, location, &content).await? {
                Ok(())
            } else {
                Err(exists.into())
            }
        }
        done => done.map(drop).map_err(not_written),
    }
}

/// Puts an empty object in the place of one that will be written.
async fn claim(store: &dyn ObjectStore, location: &Path) -> Result<(), StoreError> {
    let mode = PutOptions::from(PutMode::Create);
    let put = store.put_opts(location, PutPayload::default(), mode).await;
    // One that is there is not compared as in `create`: an empty object may be anybody's.
    put.map(drop).map_err(not_written)
}

/// Whether an object has exactly this content.
async fn holds(store: &dyn ObjectStore, location: &Path, content: &PutPayload) -> Result<bool, StoreError> {
    // Its size first: a claim is not read, as its owner may be about to replace it. An object that came
    // and went is none that was written.
    let found = store.head(location).await.map_err(not_written)?;
    if found.size != content.content_length() as u64 {
        return Ok(false);
    }
    let found = store.get(location).await.map_err(not_written)?;
    let found = found.bytes().await?;
    Ok(content.iter().flatten().eq(found.iter()))
}

/// What an error of the store means for an object that is being written. The object itself need not exist, so
/// what is missing is what it goes into, such as the bucket. The store cannot be used; nothing is damaged.
pub(super) fn not_written(error: object_store::Error) -> StoreError {
    let detail = error.to_string();
    match StoreError::from(error) {
        StoreError::Missing { .. } => StoreError::Unavailable {
            detail: format!("what it is written to, such as the bucket, does not exist: {detail}"),
        },
        failure => failure,
    }
}
