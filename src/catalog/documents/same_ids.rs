//! What is whose where documents have the same id. An id is unique among the documents of a kind only. Ids
//! that are made here never meet, but those from elsewhere, as in an archive, may be anybody's.

use uuid::Uuid;

use super::document::{DocumentKind, document_of};
use crate::catalog::Catalog;
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::DOCUMENTS;
use crate::catalog::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::PersonId;

/// The index by which the links of a document are found.
pub(in crate::catalog) const BY_DOCUMENT: &str = "links_by_document";

/// The rest of a statement about the links of the document `$1` of the person `$2`. `by_document` makes the
/// database find them by it: it would take a person for having as few.
pub(in crate::catalog) fn links_of_one(by_document: &str) -> String {
    format!("{by_document} WHERE document = $1 AND person = $2")
}

/// Those of some links that lead to the person's own documents.
pub(super) fn own(links: Vec<VerifiedRow>, person: PersonId) -> Result<Vec<VerifiedRow>, CatalogError> {
    let mut own = Vec::with_capacity(links.len());
    for link in links {
        if link.id(3, PersonId::from_slice)? == person {
            own.push(link);
        }
    }
    Ok(own)
}

impl Catalog {
    /// Whether a document has this id that is of another kind or of somebody else.
    pub async fn is_id_of_another(
        &self,
        kind: DocumentKind,
        document: Uuid,
        person: PersonId,
    ) -> Result<bool, CatalogError> {
        let kinds = DocumentKind::ALL.iter().map(|kind| text(kind.as_str()));
        let (kinds, mut values) = one_of(2, kinds.collect());
        values.insert(0, id(document));
        let rest = format!("WHERE kind IN {kinds} AND document = $1");
        for row in self.database.find_once(&DOCUMENTS, &rest, values).await? {
            let found = document_of(&row)?;
            if found.kind != kind || found.person != person {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
