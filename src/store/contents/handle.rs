//! The handle through which everybody uses contents: finds them, begins their parts, and removes what nobody
//! needs any more. Knows nothing of what the bytes are.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::content::{Content, ContentKind, OPEN_CONTENTS, OPEN_LINK, Part, PartName};
use super::parts::PartWriter;
use crate::catalog::documents::{Changed, Document, DocumentKind};
use crate::catalog::{Catalog, Sound, Subject};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;

/// The contents of all people. Cheap to clone.
#[derive(Clone)]
pub struct Contents {
    pub(super) catalog: Catalog,
    pub(super) objects: ObjectStorage,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
}

impl Contents {
    #[must_use]
    pub fn new(
        catalog: Catalog,
        objects: ObjectStorage,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            catalog,
            objects,
            clock,
            ids,
        }
    }

    pub async fn get(&self, id: Uuid) -> Result<Option<Content>, StoreError> {
        self.find(ContentKind::File, id).await
    }

    pub(super) async fn find(&self, of: ContentKind, id: Uuid) -> Result<Option<Content>, StoreError> {
        let found = self.catalog.document(of.documents(), id).await?;
        found.as_ref().map(Content::of).transpose()
    }

    /// All contents of a person, of every kind.
    pub async fn of_person(&self, person: PersonId) -> Result<Vec<Content>, StoreError> {
        let mut contents = Vec::new();
        for of in ContentKind::ALL {
            for document in self.catalog.documents_of(person, of.documents()).await? {
                contents.push(Content::of(&document)?);
            }
        }
        Ok(contents)
    }

    /// Those of a person's contents that can be read as written, where others are damaged.
    pub async fn sound_of_person(&self, person: PersonId) -> Result<Vec<Content>, StoreError> {
        let mut contents = Vec::new();
        for of in ContentKind::ALL {
            let documents = self.catalog.sound_documents_of(person, of.documents()).await?;
            contents.extend(documents.iter().filter_map(|document| Content::of(document).ok()));
        }
        Ok(contents)
    }

    /// Begins the next part of a content.
    pub fn part(&self, content: &Content) -> Result<PartWriter, StoreError> {
        let name = PartName::of(content, self.ids.next());
        PartWriter::new(&self.objects, name, self.clock.now())
    }

    /// Removes parts that no content names, and the content's folder if nothing else is in it. Those that
    /// cannot be removed now are collected later.
    pub async fn remove_parts(&self, content: &Content, parts: &[Part]) {
        for part in parts {
            let path = content.path_of(part);
            if let Err(error) = self.objects.delete(&path).await {
                tracing::warn!(%path, %error, "a part stays until orphans are collected");
            }
        }
        let folder = content.folder();
        if let Err(error) = self.objects.remove_empty_folders(&folder).await {
            tracing::warn!(%folder, %error, "a folder stays until orphans are collected");
        }
    }

    /// Forgets contents whose time to arrive ended `grace` ago, and frees their room. Their parts are garbage
    /// from then on. Returns which, and whose damage was passed over.
    pub async fn forget_expired(&self, grace: Duration) -> Result<Sound<Uuid>, StoreError> {
        // Not this node's time: a node whose clock is ahead would forget what others are still sending.
        let limit = self.catalog.now().await?.before(grace);
        let open = self
            .catalog
            .sound_documents_linked(DocumentKind::FileContent, OPEN_LINK, OPEN_CONTENTS);
        let Sound { sound, mut set_aside } = open.await?;
        let mut forgotten = Vec::new();
        for document in sound {
            match self.forget_before(&document, limit).await {
                Ok(true) => forgotten.push(document.id),
                Ok(false) => {}
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, "an announced file stays; run `almanac check`");
                    set_aside.insert(Subject::Person(document.person));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Sound {
            sound: forgotten,
            set_aside,
        })
    }

    /// Forgets an open content whose time to arrive ended before `limit`; returns whether it did.
    async fn forget_before(&self, document: &Document, limit: Instant) -> Result<bool, StoreError> {
        let content = Content::of(document)?;
        if content.open_until >= limit {
            return Ok(false);
        }
        let usage = self.usage(content.person).await?;
        let changes = vec![content.removal(), usage.without(content.length).change(&content)?];
        // Somebody else may have finished it, or changed the usage; the next round looks again.
        Ok(self.catalog.change_documents(changes).await? == Changed::Done)
    }

    /// The `paths` that are parts but belong to no content. Parts of a damaged content count as belonging to
    /// it.
    pub async fn orphaned_parts(&self, paths: &[String]) -> Result<Vec<String>, StoreError> {
        let mut known: Option<Content> = None;
        let mut missing: Option<Uuid> = None;
        let mut orphaned_parts = Vec::new();
        for path in paths {
            let Some(name) = PartName::parse(path) else {
                continue;
            };
            if missing == Some(name.content) {
                orphaned_parts.push(path.clone());
                continue;
            }
            if known.as_ref().is_none_or(|content| content.id != name.content) {
                known = match self.find(name.of, name.content).await {
                    Err(error) if error.is_damage() => {
                        continue;
                    }
                    content => content?,
                };
                missing = known.is_none().then_some(name.content);
            }
            if !known.as_ref().is_some_and(|content| content.names(name.part)) {
                orphaned_parts.push(path.clone());
            }
        }
        Ok(orphaned_parts)
    }
}
