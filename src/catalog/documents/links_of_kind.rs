//! Finds the links of all documents that a person has of one kind, from the side where there is less to read.
//!
//! Each link is verified; whether they are all is for the digest of the kind to tell.

use super::same_ids::own;
use crate::catalog::database::{Session, Value};
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::LINKS;
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// From so many documents on, a person may have far fewer links. So many links are too many to read for few.
const MANY: i64 = 1000;
/// The links of each document in turn, and with them those of other people's documents under the same ids.
const BY_DOCUMENTS: &str =
    "WHERE document IN (SELECT document FROM documents WHERE person = $1 AND kind = $2)";
/// How many links a person has, up to `$2`.
const LINKS_OF_PERSON: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM links WHERE person = $1 LIMIT $2) AS counted";

/// The links of the documents of this kind, of which there are so many.
pub(super) async fn links_of_kind(
    session: &mut Session,
    person: PersonId,
    kind: &str,
    documents: i64,
) -> Result<Vec<VerifiedRow>, CatalogError> {
    let values = vec![id(person.0), text(kind)];
    if documents < MANY || has_many_links(session, person).await? {
        return own(session.select(&LINKS, BY_DOCUMENTS, values).await?, person);
    }
    let rows = session.fetch(by_links(), values).await?;
    rows.iter().map(|row| LINKS.verify(row)).collect()
}

async fn has_many_links(session: &mut Session, person: PersonId) -> Result<bool, CatalogError> {
    let values = vec![id(person.0), Value::Int(MANY)];
    let rows = session.fetch(LINKS_OF_PERSON.to_owned(), values).await?;
    let counted = rows.first().map_or(Ok(0), |row| row.int(0))?;
    Ok(counted >= MANY)
}

/// The person's links, each with a look at its document. SQLite reads what stands before a `CROSS JOIN`
/// first.
fn by_links() -> String {
    format!(
        "SELECT {} FROM links l CROSS JOIN documents d WHERE l.person = $1 AND d.kind = $2 \
         AND d.document = l.document AND d.person = $1",
        LINKS.selected_as("l")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn few_links_are_found_without_a_look_at_each_document() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let links = "(person=?)";
        let documents = "(kind=? AND document=?)";
        for (sql, ways) in [
            (LINKS_OF_PERSON.to_owned(), vec![links]),
            (by_links(), vec![links, documents]),
        ] {
            let mut steps = steps_of(&catalog, &sql).await;
            steps.retain(|step| step.starts_with("SEARCH"));
            let are_as_expected = steps.iter().zip(&ways).all(|(step, way)| step.ends_with(*way));
            assert!(are_as_expected && steps.len() == ways.len(), "{sql}: {steps:?}");
        }
    }
}
