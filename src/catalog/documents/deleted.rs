//! Finds what was deleted long ago, whoever it belongs to, without a look at anything that is still there.

use uuid::Uuid;

use super::document::{Document, DocumentKind, document_of};
use crate::catalog::Catalog;
use crate::catalog::database::Value;
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::DOCUMENTS;
use crate::catalog::verified_rows::one_of;
use crate::model::time::Instant;

/// The index by which documents are found by when they were deleted.
const BY_DELETION: &str = "documents_by_deletion";

/// How many rows are on a page. The documents on it are removed before the next one is read.
const DELETED_ROWS: usize = 256;

/// Some of the documents that were deleted long ago.
#[derive(Debug, Default)]
pub struct DeletedPage {
    pub documents: Vec<Document>,
    /// The number of rows in between that differ from what was written.
    pub damaged: usize,
    /// Where the next page begins, if there may be one.
    pub next: Option<DeletedPlace>,
}

/// A place among deleted documents: when one was deleted, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedPlace(i64, Uuid);

impl Catalog {
    /// A page of the documents of some kinds that were deleted before `moment`, of all owners, the longest
    /// deleted first, beginning after `after`.
    pub async fn documents_deleted_before(
        &self,
        kinds: &[DocumentKind],
        moment: Instant,
        after: Option<DeletedPlace>,
    ) -> Result<DeletedPage, CatalogError> {
        let after = after.unwrap_or(DeletedPlace(i64::MIN, Uuid::nil()));
        let (list, mut values) = one_of(5, kinds.iter().map(|kind| text(kind.as_str())).collect());
        values.splice(
            0..0,
            [
                Value::Int(moment.micros()),
                Value::Int(DELETED_ROWS as i64),
                Value::Int(after.0),
                id(after.1),
            ],
        );
        let rest = deleted_before(&self.database.by_index(BY_DELETION), &list);
        let rows = self.database.fetch(DOCUMENTS.select(&rest), values).await?;
        let mut page = DeletedPage::default();
        for row in &rows {
            match DOCUMENTS.verify(row).and_then(|verified| document_of(&verified)) {
                Ok(document) => page.documents.push(document),
                Err(CatalogError::Corrupt { .. }) => page.damaged += 1,
                Err(error) => return Err(error),
            }
        }
        if let Some(last) = rows.last().filter(|_| rows.len() == DELETED_ROWS) {
            let document = Uuid::from_slice(&last.bytes(1)?).unwrap_or_default();
            let deleted_at = last.optional_int(8)?.unwrap_or(i64::MIN);
            page.next = Some(DeletedPlace(deleted_at, document));
        }
        Ok(page)
    }
}

/// The rest of a `select` of deleted documents whose kinds are in `list`. `by_deletion` makes the database
/// find them by when they were deleted: it would take their kinds for few, and read all that there is of
/// these.
fn deleted_before(by_deletion: &str, list: &str) -> String {
    format!(
        "{by_deletion} WHERE deleted_at < $1 AND (deleted_at, document) > ($3, $4) AND kind IN {list} \
         ORDER BY deleted_at, document LIMIT $2"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn what_is_not_deleted_is_not_read_to_find_what_is() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let rest = deleted_before(&catalog.database.by_index(BY_DELETION), "($5, $6)");
        let steps = steps_of(&catalog, &DOCUMENTS.select(&rest)).await;
        let ways: Vec<&String> = steps.iter().filter(|step| step.contains("documents")).collect();
        let within_time = "documents_by_deletion (deleted_at>? AND deleted_at<?)";
        assert!(!ways.is_empty(), "{steps:?}");
        assert!(ways.iter().all(|way| way.ends_with(within_time)), "{steps:?}");
    }
}
