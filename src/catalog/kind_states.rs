//! Tells whether what a person has of one kind is as it was, by two rows that are found by their keys.
//!
//! Knows nothing of what was made from it, nor of where that is kept.

use super::Catalog;
use super::counted_rows::{CountedRows, DEFINITIONS_KIND};
use super::documents::DocumentKind;
use super::known_states::PersonState;
use super::rows::{id, text};
use super::tables::FOLDERS;
use crate::model::ids::PersonId;

/// The state of a person, and that of what they have of one kind. While both stay the same, so does that. It
/// changes with everything that is stored of the person, so another state does not mean other documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindState {
    person: PersonState,
    /// Tells states apart that count alike but have another past: of a database that was put back, and of
    /// somebody who was erased and began anew.
    counted: CountedRows,
}

impl Catalog {
    /// The state of a person's documents of one kind. `None` where nothing can be said, since there is
    /// nobody, or something is damaged: then nothing that was kept is used.
    pub async fn document_state(&self, person: PersonId, kind: DocumentKind) -> Option<KindState> {
        self.kind_state(person, kind.as_str()).await
    }

    /// The state of a person's definitions, like that of documents.
    pub async fn definitions_state(&self, person: PersonId) -> Option<KindState> {
        self.kind_state(person, DEFINITIONS_KIND).await
    }

    async fn kind_state(&self, person: PersonId, kind: &str) -> Option<KindState> {
        let state = self.person_state(person).await.ok().flatten()?;
        let values = vec![id(person.0), text(kind)];
        let of_kind = "WHERE person = $1 AND kind = $2";
        let found = self.database.find(&FOLDERS, of_kind, values).await.ok()?;
        let counted = found
            .first()
            .map_or(Ok(CountedRows::default()), CountedRows::read)
            .ok()?;
        Some(KindState {
            person: state,
            counted,
        })
    }
}
