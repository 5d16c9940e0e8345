//! Gives what an archive brings another id where its own is somebody else's here.
//!
//! What an earlier import brought under another id keeps that, although whoever had its own may have left
//! since: otherwise the same archive would come in beside itself. Knows nothing of archives.

use uuid::Uuid;

use super::importer::{ImportError, Importer};
use crate::catalog::documents::{Document, DocumentKind};
use crate::catalog::records::StoredDefinition;
use crate::model::ids::PersonId;
use crate::people::files::File;
use crate::people::takeout::renaming::Renaming;

impl Importer {
    /// Gives a document another id if anything else here has its id, or if it came in under another one.
    pub(super) async fn make_way(
        &self,
        renaming: &mut Renaming,
        document: &Document,
    ) -> Result<(), ImportError> {
        let Document { kind, id, person, .. } = *document;
        let other = Renaming::other(person, id);
        let came_before =
            self.own(kind, other, person).await?.is_some() && self.own(kind, id, person).await?.is_none();
        if came_before || self.is_taken(kind, id, person).await? {
            if self.is_taken(kind, other, person).await? {
                return Err(taken(id));
            }
            renaming.rename(id, other);
        }
        Ok(())
    }

    /// Gives the content of a file another id if anything else here has its id, or if the file came in with
    /// another one. The file itself has its id here already.
    pub(super) async fn make_way_for_content(
        &self,
        renaming: &mut Renaming,
        document: &Document,
    ) -> Result<(), ImportError> {
        let person = document.person;
        let content = File::of(document)?.content;
        let other = Renaming::other(person, content);
        let here = self
            .own(DocumentKind::File, renaming.of(document.id), person)
            .await?;
        let came_before = match here {
            Some(here) => File::of(&here)?.content == other,
            None => false,
        };
        if came_before || self.is_taken(DocumentKind::FileContent, content, person).await? {
            renaming.rename(content, other);
        }
        Ok(())
    }

    /// Gives a definition another id if somebody else's has its id, or if it came in under another one.
    pub(super) async fn make_way_for_definition(
        &self,
        renaming: &mut Renaming,
        definition: &StoredDefinition,
    ) -> Result<(), ImportError> {
        let StoredDefinition { id, person, .. } = *definition;
        let other = Renaming::other(person, id);
        match (self.owner(id).await?, self.owner(other).await?) {
            (Some(owner), _) if owner == person => {}
            (None, there) if there != Some(person) => {}
            (_, Some(owner)) if owner != person => return Err(taken(id)),
            _ => renaming.rename(id, other),
        }
        Ok(())
    }

    /// The person's own document.
    async fn own(
        &self,
        kind: DocumentKind,
        id: Uuid,
        person: PersonId,
    ) -> Result<Option<Document>, ImportError> {
        let found = self.catalog.document(kind, id).await?;
        Ok(found.filter(|found| found.person == person))
    }

    /// Whether a document here has this id that is of somebody else or of another kind. Of another kind too:
    /// an archive may name the id of a share, which its readers know.
    async fn is_taken(&self, kind: DocumentKind, id: Uuid, person: PersonId) -> Result<bool, ImportError> {
        Ok(self.catalog.is_id_of_another(kind, id, person).await?)
    }

    /// Whose definition this is.
    async fn owner(&self, definition: Uuid) -> Result<Option<PersonId>, ImportError> {
        let found = self.catalog.definition(definition).await?;
        Ok(found.map(|found| found.person))
    }
}

fn taken(id: Uuid) -> ImportError {
    ImportError::Refused(format!("the id {id} belongs to somebody else here"))
}
