//! Contents that their senders put into the object store themselves.
//!
//! They are kept apart until they are taken in: read once, cut into parts and checksummed like everything
//! that comes through the service. Until then anybody with the address may replace them, so nothing else
//! reads them.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _, future};
use uuid::Uuid;

use super::content::Content;
use super::handle::Contents;
use super::reading::{STEP, STEPS_AT_ONCE};
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::folder_names::INCOMING_FOLDER;
use crate::store::objects::ObjectVersion;

/// The most that S3 takes in one request.
const LARGEST_REQUEST: u64 = 5 << 30;

/// The path of an object that a sender put into the store, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingName {
    pub person: PersonId,
    /// The content it is meant for.
    pub content: Uuid,
    /// The file that waits for that content.
    pub file: Uuid,
}

impl IncomingName {
    /// The path of the object.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{INCOMING_FOLDER}/{}/{}/{}", self.person, self.content, self.file)
    }

    /// Parses what `path` wrote. `None` for anything else.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let mut names = path.strip_prefix(INCOMING_FOLDER)?.strip_prefix('/')?.split('/');
        let name = Self {
            person: names.next()?.parse().ok()?,
            content: names.next()?.parse().ok()?,
            file: names.next()?.parse().ok()?,
        };
        (name.path() == path).then_some(name)
    }
}

impl Contents {
    /// An address at which the bytes of an announced content can be put into the store. `None` where they
    /// must come through the service.
    pub async fn put_url(
        &self,
        name: &IncomingName,
        length: u64,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        if length == 0 || length > LARGEST_REQUEST {
            return Ok(None);
        }
        self.objects.put_url(&name.path(), length, lifetime).await
    }

    /// The object that was put there, if it is as long as `content` was announced.
    pub async fn came(
        &self,
        name: &IncomingName,
        content: &Content,
    ) -> Result<Option<ObjectVersion>, StoreError> {
        let found = self.objects.version(&name.path()).await?;
        Ok(found.filter(|found| found.bytes == content.length))
    }

    /// The bytes that were put there. Fails if somebody replaces them meanwhile.
    #[must_use]
    pub fn incoming(
        &self,
        name: &IncomingName,
        came: ObjectVersion,
    ) -> BoxStream<'static, Result<Bytes, StoreError>> {
        let (objects, path, bytes) = (self.objects.clone(), name.path(), came.bytes);
        let steps = (0..bytes.div_ceil(STEP)).map(move |step| Range {
            start: step * STEP,
            end: ((step + 1) * STEP).min(bytes),
        });
        stream::iter(steps)
            .map(move |range| {
                let (objects, path, came) = (objects.clone(), path.clone(), came.clone());
                async move { objects.get_range_of(&path, &came, range).await }
            })
            .buffered(STEPS_AT_ONCE)
            .boxed()
    }

    /// The names of everything that is there now, of all people or of one.
    pub fn all_incoming(
        &self,
        person: Option<PersonId>,
    ) -> Result<BoxStream<'static, Result<IncomingName, StoreError>>, StoreError> {
        let folder = person.map_or_else(
            || INCOMING_FOLDER.to_owned(),
            |person| format!("{INCOMING_FOLDER}/{person}"),
        );
        let listed = self.objects.list(&folder)?;
        Ok(listed
            .try_filter_map(|object| future::ready(Ok(IncomingName::parse(&object.path))))
            .boxed())
    }

    /// Removes what was put there. If that fails now, it is collected later.
    pub async fn remove_incoming(&self, name: &IncomingName) {
        let path = name.path();
        if let Err(error) = self.objects.delete(&path).await {
            tracing::warn!(%path, %error, "an object stays until orphans are collected");
        }
    }

    /// The `paths` that were put there for contents that take nothing any more. What may be meant for a
    /// damaged content is kept.
    pub async fn orphaned_uploads(&self, paths: &[String]) -> Result<Vec<String>, StoreError> {
        let mut orphaned_uploads = Vec::new();
        for path in paths {
            let Some(name) = IncomingName::parse(path) else {
                continue;
            };
            match self.get(name.content).await {
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
                Ok(content) if content.as_ref().is_none_or(Content::is_whole) => {
                    orphaned_uploads.push(path.clone());
                }
                Ok(_) => {}
            }
        }
        Ok(orphaned_uploads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_whose_bytes_lie_there() {
        let name = IncomingName {
            person: PersonId(Uuid::from_u128(1)),
            content: Uuid::from_u128(2),
            file: Uuid::from_u128(3),
        };
        assert_eq!(IncomingName::parse(&name.path()), Some(name));
        let path = name.path();
        for other in [
            path.replace("incoming", "files"),
            path.to_uppercase(),
            format!("{path}/x"),
            format!("{INCOMING_FOLDER}/{}", name.person),
            path.replace('-', ""),
        ] {
            assert_eq!(IncomingName::parse(&other), None, "{other}");
        }
    }
}
