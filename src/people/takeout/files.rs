//! Writes the files of a person: the list of all versions, then the bytes of each content once.
//!
//! While bytes are written, purging may remove others that are on the list: their owner deleted them long
//! ago. The archive says that it does not have them, and nothing is damaged. Holds the ids of all versions
//! and a step of a content. Knows files and contents; knows nothing of how an archive is put together.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use uuid::Uuid;

use super::content::{Archive, DocumentPages, unreadable};
use super::export::ExportError;
use super::format::{FILES, KeptDocument, content_member};
use super::zip::Packing;
use crate::catalog::documents::DocumentKind;
use crate::model::ids::PersonId;
use crate::people::files::{File, FilesError, ScanState};
use crate::store::StoreError;
use crate::store::contents::{Content, Contents};

/// Bytes of files, listed and not written yet.
pub(super) struct ListedContent {
    content: Uuid,
    /// One version that has them.
    first: Uuid,
    /// The other versions that have them.
    others: Vec<Uuid>,
    /// Whether they are harmful by what was found in one of the versions.
    is_harmful: bool,
}

impl Archive<'_, '_> {
    /// Writes all files.
    pub(super) async fn files(&mut self) -> Result<(), ExportError> {
        let contents = self.list_of_files().await?;
        self.total += contents.len() as u64;
        for content in contents {
            Box::pin(self.content(content)).await?;
        }
        Ok(())
    }

    /// Writes the list of files; returns the contents to write, each once.
    pub(super) async fn list_of_files(&mut self) -> Result<Vec<ListedContent>, ExportError> {
        let mut list = self.begin_list(FILES).await?;
        let mut contents: BTreeMap<Uuid, ListedContent> = BTreeMap::new();
        let mut pages = DocumentPages::of(DocumentKind::File);
        while let Some(page) = pages.next(self.exports, self.person).await? {
            for document in page {
                let file = File::of(&document).map_err(of_files)?;
                // A version whose bytes never arrived is kept only if it was deleted.
                if file.sha256.is_none() && file.deleted_at.is_none() {
                    continue;
                }
                if file.sha256.is_some() {
                    note_version(&mut contents, &file);
                }
                let kept = KeptDocument::of(document, Vec::new()).map_err(unreadable)?;
                self.element(&mut list, &kept).await?;
            }
        }
        self.counts.files = self.end_list(list).await?;
        let (harmful, to_write): (Vec<_>, Vec<_>) =
            contents.into_values().partition(|listed| listed.is_harmful);
        let left_out = harmful.iter().map(|listed| listed.first);
        self.left_out
            .extend(left_out.map(|file| format!("the bytes of file {file}, which are harmful")));
        Ok(to_write)
    }

    /// Writes a content, or notes that it was removed since it was listed.
    pub(super) async fn content(&mut self, listed: ListedContent) -> Result<(), ExportError> {
        let contents = self.exports.contents();
        let found = contents.get(listed.content).await?.filter(Content::is_whole);
        if let Some(content) = found
            && self.bytes(&content).await?
        {
            return Ok(());
        }
        self.note_removal(listed).await
    }

    /// Writes the bytes of a content. False if it was removed meanwhile: then the archive does not name it.
    pub(super) async fn bytes(&mut self, content: &Content) -> Result<bool, ExportError> {
        let name = content_member(content.id);
        self.begin(&name, Packing::Stored, content.length).await?;
        let mut bytes = self.exports.contents().read(content, 0..content.length);
        while let Some(bytes) = bytes.next().await {
            match bytes {
                Err(StoreError::Missing { .. }) => {
                    self.give_up_member();
                    return Ok(false);
                }
                bytes => self.add(bytes?).await?,
            }
        }
        self.counts.contents += 1;
        self.counts.content_bytes += content.length;
        self.end_member(None, None).await?;
        Ok(true)
    }

    /// Notes that a content is gone. It goes together with the last version that has it, so one that is still
    /// there has lost its bytes: that is damage, unless they were given up.
    async fn note_removal(&mut self, listed: ListedContent) -> Result<(), ExportError> {
        let ListedContent {
            content,
            first,
            others,
            ..
        } = listed;
        let catalog = &self.exports.stores.catalog;
        let mut told =
            format!("the bytes of file {first}, which was removed for good while the archive was made");
        for file in std::iter::once(first).chain(others) {
            if catalog.document(DocumentKind::File, file).await?.is_some() {
                if !is_given_up(&self.exports.contents(), self.person, content).await? {
                    let what = format!("the content of file {file} is gone");
                    return Err(StoreError::corrupt(what).into());
                }
                told = format!("the bytes of file {file}, which were lost and given up");
                break;
            }
        }
        self.left_out.push(told);
        self.removed.push(content);
        Ok(())
    }
}

/// Whether nothing is known of a content, and everything of the others that must be: whoever gave up what was
/// lost took these for all.
async fn is_given_up(contents: &Contents, person: PersonId, content: Uuid) -> Result<bool, StoreError> {
    match contents.of_person(person).await {
        Err(error) if error.is_damage() => Ok(false),
        known => Ok(known?.iter().all(|known| known.id != content)),
    }
}

/// Notes that a listed version has its content.
fn note_version(contents: &mut BTreeMap<Uuid, ListedContent>, file: &File) {
    let is_harmful = file.scan_state == ScanState::Infected;
    contents
        .entry(file.content)
        .and_modify(|listed| {
            listed.others.push(file.id);
            listed.is_harmful |= is_harmful;
        })
        .or_insert_with(|| ListedContent {
            content: file.content,
            first: file.id,
            others: Vec::new(),
            is_harmful,
        });
}

fn of_files(error: FilesError) -> ExportError {
    match error {
        FilesError::Store(error) => error.into(),
        other => StoreError::corrupt(other.to_string()).into(),
    }
}
