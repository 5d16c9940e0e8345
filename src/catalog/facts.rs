//! Facts about the catalogue as a whole, by name, and notes about damaged objects, which are kept among them.
//!
//! Knows nothing of what a fact means.

use super::Catalog;
use super::database::Session;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::text;
use super::tables::META;

/// The prefix of the names of notes about damaged objects.
pub(super) const DAMAGE: &str = "damage:";
/// The prefix of the names of facts about the progress of a scrub, which name an object or a person.
pub const SCRUB_FACTS: &str = "scrub:";

impl Catalog {
    /// A fact about the catalogue as a whole.
    pub async fn fact(&self, name: &str) -> Result<Option<String>, CatalogError> {
        let found = self
            .database
            .select(&META, "WHERE name = $1", vec![text(name)])
            .await?;
        found
            .first()
            .map(|row| row.text(1).map(str::to_owned))
            .transpose()
    }

    /// A fact about the catalogue as a whole; `None` also for one that is damaged. For what says nothing that
    /// must be known, and is replaced where it is missing.
    pub async fn sound_fact(&self, name: &str) -> Result<Option<String>, CatalogError> {
        Ok(CatalogError::unless_corrupt(self.fact(name).await)?.flatten())
    }

    /// A fact about the catalogue as a whole. Stores `proposal` first if there is none yet; it then holds on
    /// every node.
    pub async fn settled_fact(&self, name: &str, proposal: &str) -> Result<String, CatalogError> {
        if let Some(settled) = self.fact(name).await? {
            return Ok(settled);
        }
        let mut session = self.database.write().await?;
        session
            .insert(&META, vec![vec![text(name), text(proposal)]], Existing::Keep)
            .await?;
        session.commit().await?;
        let settled = self.fact(name).await?;
        settled.ok_or_else(|| CatalogError::corrupt(format!("{name} was settled and is gone")))
    }

    /// Notes a fact about the catalogue as a whole, instead of what was noted under its name before.
    pub async fn set_fact(&self, name: &str, value: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session
            .insert(&META, vec![vec![text(name), text(value)]], Existing::Replace)
            .await?;
        session.commit().await
    }

    /// Forgets a fact about the catalogue as a whole.
    pub async fn forget_fact(&self, name: &str) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        forget(&mut session, name).await?;
        session.commit().await
    }

    /// Marks an object as damaged, until `forget_damage` is called for it.
    pub async fn note_damage(&self, path: &str, what: &str) -> Result<(), CatalogError> {
        self.set_fact(&format!("{DAMAGE}{path}"), what).await
    }

    /// Objects known to be damaged, each with a description of the damage.
    pub async fn damages(&self) -> Result<Vec<(String, String)>, CatalogError> {
        let rows = self
            .database
            .select(
                &META,
                "WHERE name LIKE $1 ORDER BY name",
                vec![text(&format!("{DAMAGE}%"))],
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok((
                    row.text(0)?.chars().skip(DAMAGE.len()).collect(),
                    row.text(1)?.to_owned(),
                ))
            })
            .collect()
    }

    pub async fn forget_damage(&self, path: &str) -> Result<(), CatalogError> {
        self.forget_fact(&format!("{DAMAGE}{path}")).await
    }
}

/// Forgets a fact about the catalogue as a whole, as part of a transaction.
pub(super) async fn forget(session: &mut Session, name: &str) -> Result<(), CatalogError> {
    let sql = "DELETE FROM meta WHERE name = $1";
    session.execute(sql.to_owned(), vec![text(name)]).await.map(drop)
}
