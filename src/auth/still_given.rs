//! Whether what was given before is given still: while a long answer is being sent, and each time an answer
//! that is kept is fetched.
//!
//! Compares each disclosure with what ties reader and owner now; what was added meanwhile does not matter.
//! Gives nothing itself, and must not know what an answer contains.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uuid::Uuid;

use super::disclosures::{Disclosure, Participation, Subject};
use super::grants::Grants;
use super::grounds::{Grounds, KnownAs};
use super::ties::{Given, GroupOfOwner, shares_file, windows_of};
use super::tokens::Reader;
use crate::catalog::CatalogError;
use crate::model::ids::PersonId;
use crate::model::permit::Opening;
use crate::model::registry::TypeId;

impl Grants {
    /// Whether everything that was given for a request may still be read.
    pub async fn still_given(&self, reader: &Reader) -> Result<bool, CatalogError> {
        let participant = reader.disclosures().participation().map(|before| KnownAs {
            group: before.group,
            participant: before.participant,
            person: before.person,
        });
        let given = reader.disclosures().given();
        self.hold(reader.person(), participant, given).await
    }

    /// The same for an answer that is kept: whether everything that was given for it is still given.
    pub async fn still_hold(&self, grounds: &Grounds) -> Result<bool, CatalogError> {
        let given = grounds.given().collect();
        self.hold(grounds.person(), grounds.participant(), given).await
    }

    async fn hold(
        &self,
        reader: PersonId,
        participant: Option<KnownAs>,
        given: Vec<Disclosure>,
    ) -> Result<bool, CatalogError> {
        let now = match participant {
            None => None,
            Some(before) => {
                let found = self
                    .ties()
                    .participation(reader, before.group, before.participant)
                    .await?;
                match found.filter(|found| found.person == before.person) {
                    Some(found) => Some(found),
                    None => return Ok(false),
                }
            }
        };
        let mut groups: HashMap<Uuid, Option<GroupOfOwner>> = HashMap::new();
        for disclosure in given {
            let participant = now.as_ref().filter(|now| now.person == disclosure.owner);
            let holds = match (participant, disclosure.group) {
                (Some(now), _) => now.holds(&disclosure),
                (None, None) => holds(&self.ties().given(reader, disclosure.owner).await?, &disclosure),
                (None, Some(group)) => {
                    let known = match groups.entry(group) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(self.ties().group_of_owner(reader, group).await?),
                    };
                    known.as_ref().is_some_and(|known| known.holds(&disclosure))
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Participation {
    fn holds(&self, disclosure: &Disclosure) -> bool {
        match &disclosure.subject {
            Subject::Type(data_type) => covers(&self.opening(disclosure.requested), data_type, disclosure),
            Subject::Listing(_) => true,
            Subject::File(..) | Subject::Folder(_) => false,
        }
    }
}

impl GroupOfOwner {
    /// Whether what was disclosed of a member may still be read.
    fn holds(&self, disclosure: &Disclosure) -> bool {
        let Subject::Type(data_type) = &disclosure.subject else {
            return false;
        };
        let opening = self.opening(disclosure.requested);
        self.members.contains(&disclosure.owner) && covers(&opening, data_type, disclosure)
    }
}

/// Whether what was disclosed is still given.
fn holds(given: &[Given], disclosure: &Disclosure) -> bool {
    match &disclosure.subject {
        Subject::Type(data_type) => windows_of(given, data_type, disclosure.requested)
            .0
            .is_some_and(|windows| windows.cover_all(&disclosure.windows)),
        Subject::Listing(_) => !given.is_empty(),
        Subject::File(path, age) => given
            .iter()
            .any(|given| shares_file(&given.terms, path, *age, disclosure.requested.start())),
        Subject::Folder(folder) => given.iter().any(|given| given.terms.leads_through(folder)),
    }
}

fn covers(opening: &Opening, data_type: &TypeId, disclosure: &Disclosure) -> bool {
    opening.shows(data_type) && opening.windows.cover_all(&disclosure.windows)
}
