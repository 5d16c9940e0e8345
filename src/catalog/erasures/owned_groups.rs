//! The groups of somebody who is erased, noted until the erasure is over.
//!
//! The erasure begins by removing the groups, and with them all that tells which memberships of others go
//! too. That a group is not found does not tell it: one whose row is damaged is not found either. Knows
//! nothing of memberships.

use uuid::Uuid;

use crate::catalog::database::Session;
use crate::catalog::documents::DocumentKind;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::META;
use crate::catalog::{Catalog, facts};
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;

/// Notes a person's groups, which are still there.
pub(super) async fn note(
    session: &mut Session,
    mark: ErasureMark,
    person: PersonId,
) -> Result<(), CatalogError> {
    // Not verified, as nothing is that is removed.
    let sql = "SELECT document FROM documents WHERE person = $1 AND kind = $2 ORDER BY created_at, document";
    let values = vec![id(person.0), text(DocumentKind::Group.as_str())];
    let mut groups: Vec<String> = Vec::new();
    for row in session.fetch(sql.to_owned(), values).await? {
        groups.extend(
            Uuid::from_slice(&row.bytes(0)?)
                .ok()
                .map(|group| group.to_string()),
        );
    }
    forget(session, mark).await?;
    if !groups.is_empty() {
        let row = vec![text(&name(mark)), text(&groups.join(" "))];
        session.insert(&META, vec![row], Existing::Replace).await?;
    }
    Ok(())
}

/// The groups that were noted.
pub(super) async fn noted(catalog: &Catalog, mark: ErasureMark) -> Result<Vec<Uuid>, CatalogError> {
    let written = catalog.fact(&name(mark)).await?.unwrap_or_default();
    let groups = written.split_whitespace().map(str::parse);
    groups
        .collect::<Result<_, _>>()
        .map_err(|_| CatalogError::corrupt("the groups noted for an erasure cannot be read"))
}

/// Forgets the groups, when the erasure is over.
pub(super) async fn forget(session: &mut Session, mark: ErasureMark) -> Result<(), CatalogError> {
    facts::forget(session, &name(mark)).await
}

/// The name of the fact.
fn name(mark: ErasureMark) -> String {
    format!("erase:groups:{mark}")
}
