//! Notices that people were lost, and gives up what is lost of them.
//!
//! Whether everybody is there is told by the roster. Knows nothing of what else people have.

use super::Catalog;
use super::damage::besides_rows;
use super::database::Patience;
use super::erasure::refuse_erased;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::roster::{ROSTER, counted_people, new_person, roster, stored_roster};
use super::rows::text;
use super::tables::{META, PEOPLE};
use crate::model::ids::PersonId;

/// People who have rows in other tables but none in `people`.
const LOST_PEOPLE: &str = "SELECT person FROM (SELECT person FROM ledgers UNION SELECT person FROM \
                           partitions UNION SELECT person FROM folders) AS known WHERE person NOT IN \
                           (SELECT person FROM people)";

impl Catalog {
    /// What is wrong if not everybody ever created is there.
    pub async fn damaged_roster(&self) -> Result<Option<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let counted = roster(&mut session, "").await;
        let found = counted_people(&mut session).await;
        session.commit().await?;
        match (counted, found) {
            (Ok(counted), Ok(found)) if counted == found => Ok(None),
            (Err(CatalogError::Corrupt { what }), _) | (_, Err(CatalogError::Corrupt { what })) => {
                Ok(besides_rows(what))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(counted), Ok(found)) => Ok(Some(format!(
                "people were lost or invented: there are {}, not {}",
                found.count, counted.count
            ))),
        }
    }

    /// Makes anew the rows of people that were lost, as far as anything else is there of them, and takes
    /// those who are there then for all people; describes what was given up.
    pub async fn give_up_lost_people(&self) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.write().await?;
        // First, so that nobody comes or goes until the transaction ends.
        let locking = session.locking();
        let counted = stored_roster(&mut session, locking).await?;
        let now = session.now(&*self.time).await?;
        let mut given_up = Vec::new();
        for row in session.fetch(LOST_PEOPLE.to_owned(), Vec::new()).await? {
            let Some(person) = PersonId::from_slice(&row.bytes(0)?) else {
                continue;
            };
            match refuse_erased(&mut session, person, Patience::Waits).await {
                Err(CatalogError::Erased { .. }) => continue,
                refused => refused?,
            }
            let row = new_person(person, None, now);
            session.insert(&PEOPLE, vec![row], Existing::Keep).await?;
            given_up.push(format!(
                "person {person}: given up: their name, their preferences and since when they are known"
            ));
        }
        let found = counted_people(&mut session).await?;
        if counted != Some(found) {
            let row = vec![text(ROSTER), text(&found.written())];
            session.insert(&META, vec![row], Existing::Replace).await?;
            given_up.push(match counted {
                Some(counted) if counted.count != found.count => format!(
                    "given up: people: there are {}, not {}",
                    found.count, counted.count
                ),
                Some(_) => "given up: people are not those that were written".to_owned(),
                None => "given up: the number of people".to_owned(),
            });
        }
        if given_up.is_empty() {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(given_up)
    }
}
