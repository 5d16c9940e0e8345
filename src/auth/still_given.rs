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
use super::ties::{GivenGrant, GroupOfOwner, shares_file, windows_of};
use super::tokens::Reader;
use crate::catalog::CatalogError;
use crate::model::ids::PersonId;
use crate::model::permit::{Opening, Windows};
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

    /// Whether everything that was given for an answer that is kept is still given.
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
            Subject::Type(data_type) => covers(
                &self.opening(disclosure.requested),
                data_type,
                &disclosure.windows,
            ),
            Subject::Listing(shown) => cover_all(&[self.opening(disclosure.requested)], shown),
            Subject::File(..) | Subject::Folder(..) => false,
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
        self.members.contains(&disclosure.owner) && covers(&opening, data_type, &disclosure.windows)
    }
}

/// Whether what was disclosed is still given.
fn holds(given: &[GivenGrant], disclosure: &Disclosure) -> bool {
    match &disclosure.subject {
        Subject::Type(data_type) => windows_of(given, data_type, disclosure.requested)
            .0
            .is_some_and(|windows| windows.cover_all(&disclosure.windows)),
        Subject::Listing(shown) => {
            let openings = given
                .iter()
                .map(|given| given.terms.opening(disclosure.requested));
            cover_all(&openings.collect::<Vec<_>>(), shown)
        }
        Subject::File(path, age) => given
            .iter()
            .any(|given| shares_file(&given.terms, path, *age, disclosure.requested.start())),
        // A listing shows what each grant gave, and so it stands only while all of that is given.
        Subject::Folder(folder, shown) => shown.iter().all(|shown| {
            given
                .iter()
                .any(|given| given.terms.share_as_much_in(folder, shown))
        }),
    }
}

/// Whether all that a listing showed may be listed still.
fn cover_all(openings: &[Opening], shown: &[Opening]) -> bool {
    let is_covered = |shown: &Opening| match &shown.types {
        Some(types) => types.iter().all(|data_type| {
            openings
                .iter()
                .any(|opening| covers(opening, data_type, &shown.windows))
        }),
        None => openings
            .iter()
            .any(|opening| opening.types.is_none() && opening.windows.cover_all(&shown.windows)),
    };
    // What an earlier version kept does not say what it showed.
    !shown.is_empty() && shown.iter().all(is_covered)
}

fn covers(opening: &Opening, data_type: &TypeId, windows: &Windows) -> bool {
    opening.shows(data_type) && opening.windows.cover_all(windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::{Instant, TimeRange};
    use crate::people::sharing::terms::Terms;

    fn terms(data_types: &[&str], time_end: Option<i64>) -> Terms {
        Terms {
            data_types: data_types.iter().map(|&named| named.to_owned()).collect(),
            time_end: time_end.map(Instant::from_micros),
            ..Terms::default()
        }
    }

    fn holds_under(subject: &Subject, now: &[Terms]) -> bool {
        let now = now.iter().map(|terms| GivenGrant {
            id: Uuid::nil(),
            terms: terms.clone(),
        });
        let disclosure = Disclosure {
            owner: PersonId(Uuid::nil()),
            subject: subject.clone(),
            requested: TimeRange::ALWAYS,
            windows: Windows::default(),
            grants: Vec::new(),
            group: None,
        };
        holds(&now.collect::<Vec<_>>(), &disclosure)
    }

    #[test]
    fn a_listing_stands_only_while_all_is_given_that_it_shows() {
        let [rates, steps] = [terms(&["HeartRate"], None), terms(&["StepCount"], None)];
        let files = terms(&["file:/x"], None);
        let shown = [&rates, &steps, &files].map(|terms| terms.opening(TimeRange::ALWAYS));
        let listing = Subject::Listing(shown.to_vec());
        assert!(holds_under(&listing, &[rates.clone(), steps.clone()]));
        assert!(holds_under(
            &listing,
            &[terms(&["Event", "StepCount", "HeartRate"], None)]
        ));
        let less = [
            vec![],
            vec![rates.clone()],
            vec![rates.clone(), files],
            vec![rates.clone(), terms(&["StepCount"], Some(7))],
        ];
        for now in less {
            assert!(!holds_under(&listing, &now), "{now:?}");
        }
        let all = Terms {
            share_all_data: true,
            ..Terms::default()
        };
        assert!(holds_under(&listing, std::slice::from_ref(&all)));
        let listing_of_all = Subject::Listing(vec![all.opening(TimeRange::ALWAYS)]);
        assert!(!holds_under(&listing_of_all, &[rates, steps]));
        assert!(!holds_under(&Subject::Listing(Vec::new()), &[all]));
    }

    #[test]
    fn a_listing_of_files_stands_only_while_all_is_given_that_it_shows() {
        let [here, there] = [
            terms(&["file:/x/a", "file:/z"], None),
            terms(&["file:/x/b"], None),
        ];
        let folder = |path: &str| Subject::Folder(path.to_owned(), vec![here.clone(), there.clone()]);
        for now in [
            vec![here.clone(), there.clone()],
            vec![terms(&["file:/"], None)],
            vec![terms(&["filehistory:/x/"], None), terms(&["file:/z"], None)],
            vec![terms(&["file:/x/b", "file:/x/a"], None)],
        ] {
            assert!(holds_under(&folder("/x"), &now), "{now:?}");
        }
        for now in [
            vec![],
            vec![here.clone()],
            vec![here.clone(), terms(&["file:/x/c"], None)],
            vec![here.clone(), terms(&["file:/x/b"], Some(7))],
        ] {
            assert!(!holds_under(&folder("/x"), &now), "{now:?}");
        }
        // One and the same share may have less in it than before.
        assert!(!holds_under(
            &folder("/"),
            &[terms(&["file:/x/a"], None), there.clone()]
        ));
        let inside = Subject::Folder("/x".to_owned(), vec![terms(&["filehistory:/"], None)]);
        assert!(holds_under(&inside, &[terms(&["filehistory:/x"], None)]));
        assert!(!holds_under(&inside, &[terms(&["file:/x"], None)]));
    }
}
