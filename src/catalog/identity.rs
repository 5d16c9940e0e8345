//! Says which object store belongs to this catalogue, and whether its rebuild was finished.

use uuid::Uuid;

use super::Catalog;
use super::documents::DocumentKind;
use super::errors::CatalogError;
use super::found::IDENTITY;
use super::inserting::Existing;
use super::rows::text;
use super::tables::META;

/// The name of the fact that says since when the catalogue is being rebuilt, as it was called from the start.
const REBUILD: &str = "repair:unfinished";

impl Catalog {
    /// The identity of the store that belongs to this catalogue. `None`: not settled yet.
    pub async fn store_identity(&self) -> Result<Option<Uuid>, CatalogError> {
        let Some(written) = self.fact(IDENTITY).await? else {
            return Ok(None);
        };
        match written.parse() {
            Ok(identity) => Ok(Some(identity)),
            Err(_) => Err(CatalogError::corrupt("the identity of the store is not a UUID")),
        }
    }

    /// Settles which store belongs to this catalogue, unless that was settled before; returns the settled
    /// identity.
    pub async fn settle_store_identity(&self, identity: Uuid) -> Result<Uuid, CatalogError> {
        let mut session = self.database.write().await?;
        let row = vec![text(IDENTITY), text(&identity.to_string())];
        session.insert(&META, vec![row], Existing::Keep).await?;
        session.commit().await?;
        Ok(self.store_identity().await?.unwrap_or(identity))
    }

    /// Settles which store belongs to this catalogue, whatever was settled before.
    pub async fn replace_store_identity(&self, identity: Uuid) -> Result<(), CatalogError> {
        self.set_fact(IDENTITY, &identity.to_string()).await
    }

    /// Since when the catalogue is being rebuilt, if that is not finished.
    pub async fn unfinished_rebuild(&self) -> Result<Option<String>, CatalogError> {
        self.fact(REBUILD).await
    }

    /// Marks the catalogue as being rebuilt, from now on and until that is finished.
    pub async fn begin_rebuild(&self) -> Result<(), CatalogError> {
        let now = self.now().await?;
        self.set_fact(REBUILD, &now.to_string()).await
    }

    pub async fn finish_rebuild(&self) -> Result<(), CatalogError> {
        self.forget_fact(REBUILD).await
    }

    /// Whether anything is known of anybody. People who were created only to have a token, and the sessions
    /// of their tokens, do not count.
    pub async fn knows_anything(&self) -> Result<bool, CatalogError> {
        let partitions = "SELECT person FROM partitions LIMIT 1".to_owned();
        if !self.database.fetch(partitions, Vec::new()).await?.is_empty() {
            return Ok(true);
        }
        let counts = "SELECT person FROM folders WHERE kind <> $1 LIMIT 1".to_owned();
        let sessions = vec![text(DocumentKind::Session.as_str())];
        Ok(!self.database.fetch(counts, sessions).await?.is_empty())
    }
}
