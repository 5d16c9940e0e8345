//! Which object store belongs to this catalogue, and whether its repair was finished.

use uuid::Uuid;

use super::Catalog;
use super::errors::CatalogError;
use super::rows::text;
use super::tables::{Existing, META};

/// The names of the facts.
const IDENTITY: &str = "store:identity";
const REPAIR: &str = "repair:unfinished";

impl Catalog {
    /// The identity of the store that belongs to this catalogue. `None`: none was settled yet.
    pub async fn store_identity(&self) -> Result<Option<Uuid>, CatalogError> {
        let Some(written) = self.meta(IDENTITY).await? else {
            return Ok(None);
        };
        match written.parse() {
            Ok(identity) => Ok(Some(identity)),
            Err(_) => Err(CatalogError::corrupt("the identity of the store is none")),
        }
    }

    /// Settles to which store this catalogue belongs, unless somebody else did before; returns what holds.
    pub async fn settle_store_identity(&self, identity: Uuid) -> Result<Uuid, CatalogError> {
        let mut session = self.database.write().await?;
        let row = vec![text(IDENTITY), text(&identity.to_string())];
        session.insert(&META, vec![row], Existing::Keep).await?;
        session.commit().await?;
        Ok(self.store_identity().await?.unwrap_or(identity))
    }

    /// The same in the place of whatever was settled before.
    pub async fn replace_store_identity(&self, identity: Uuid) -> Result<(), CatalogError> {
        self.set_meta(IDENTITY, &identity.to_string()).await
    }

    /// Since when the catalogue is being made anew, if that is not finished.
    pub async fn unfinished_repair(&self) -> Result<Option<String>, CatalogError> {
        self.meta(REPAIR).await
    }

    pub async fn begin_repair(&self) -> Result<(), CatalogError> {
        let now = self.now().await?;
        self.set_meta(REPAIR, &now.to_string()).await
    }

    pub async fn finish_repair(&self) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        let sql = "DELETE FROM meta WHERE name = $1";
        session.execute(sql.to_owned(), vec![text(REPAIR)]).await?;
        session.commit().await
    }

    /// Whether anything is known here of anybody. People who were only made to have a token for do not count.
    pub async fn knows_anything(&self) -> Result<bool, CatalogError> {
        for sql in [
            "SELECT person FROM partitions LIMIT 1",
            "SELECT person FROM folders LIMIT 1",
        ] {
            if !self.database.fetch(sql.to_owned(), Vec::new()).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
