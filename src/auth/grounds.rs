//! The grounds on which an answer was given, so that it can be decided later, without the request, whether it
//! may still be read.
//!
//! An answer that is kept is read later at an address that anybody may have. It must be readable no longer
//! than the person who asked could ask: their session is open, they were not erased, and what was given of
//! others is still given. Stored beside the answer as text; contains nothing of the answer itself.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::disclosures::{Disclosure, Subject};
use super::reach::Reach;
use super::tokens::Reader;
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::permit::Windows;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};

/// Who asked, with which token, and what was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    person: PersonId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Uuid>,
    /// When the token was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued: Option<Instant>,
    /// The types that the token was for, if it was not for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    types: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    participant: Option<KnownAs>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given: Vec<GivenOnce>,
}

/// A participant of a group, as its owner knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownAs {
    pub group: Uuid,
    pub participant: ParticipantId,
    pub person: PersonId,
}

/// What was given of another person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GivenOnce {
    owner: PersonId,
    /// `None`: a listing of what there is, without its contents, as earlier versions kept. It holds no
    /// longer, because nobody knows what it showed.
    data_type: Option<String>,
    requested: (Instant, Instant),
    windows: Vec<(Instant, Instant)>,
    /// The group as whose owner the reader asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Uuid>,
}

impl Grounds {
    /// The grounds on which a request of `reader` is answered. `None`: grounds for some of it cannot be kept,
    /// as for files and lists of what is shared.
    #[must_use]
    pub fn of(reader: &Reader) -> Option<Self> {
        let disclosures = reader.disclosures();
        let given: Option<Vec<GivenOnce>> = disclosures.given().iter().map(GivenOnce::of).collect();
        Some(Self {
            person: reader.person(),
            session: reader.session(),
            issued: reader.issued(),
            types: reader
                .reach()
                .types
                .as_ref()
                .map(|types| types.iter().map(ToString::to_string).collect()),
            participant: disclosures.participation().map(|participation| KnownAs {
                group: participation.group,
                participant: participation.participant,
                person: participation.person,
            }),
            given: given?,
        })
    }

    #[must_use]
    pub const fn person(&self) -> PersonId {
        self.person
    }

    #[must_use]
    pub const fn session(&self) -> Option<Uuid> {
        self.session
    }

    pub(super) const fn participant(&self) -> Option<KnownAs> {
        self.participant
    }

    pub(super) fn given(&self) -> impl Iterator<Item = Disclosure> {
        self.given.iter().map(GivenOnce::disclosure)
    }

    /// Whether a token that reaches this far could have asked too, whatever was asked.
    #[must_use]
    pub fn lie_within(&self, reach: &Reach) -> bool {
        reach.has_all_types()
            || self.types.as_ref().is_some_and(|types| {
                types
                    .iter()
                    .all(|data_type| reach.covers(&TypeId::new(data_type)))
            })
    }

    /// Whether the token would now be refused because its person was erased since.
    pub async fn were_erased(&self, catalog: &Catalog) -> Result<bool, CatalogError> {
        let erasure = catalog.erasure_of(self.person).await?;
        Ok(erasure.is_some_and(|erasure| !erasure.admits(self.issued)))
    }
}

impl GivenOnce {
    fn of(disclosure: &Disclosure) -> Option<Self> {
        let data_type = match &disclosure.subject {
            Subject::Type(data_type) => Some(data_type.to_string()),
            // What is shared changes in more ways than could be compared later.
            Subject::Listing(_) | Subject::File(..) | Subject::Folder(..) => return None,
        };
        Some(Self {
            owner: disclosure.owner,
            data_type,
            requested: bounds(disclosure.requested),
            windows: disclosure
                .windows
                .as_slice()
                .iter()
                .copied()
                .map(bounds)
                .collect(),
            group: disclosure.group,
        })
    }

    fn disclosure(&self) -> Disclosure {
        let subject = match &self.data_type {
            Some(data_type) => Subject::Type(TypeId::new(data_type)),
            None => Subject::Listing(Vec::new()),
        };
        Disclosure {
            owner: self.owner,
            subject,
            requested: range(self.requested),
            windows: Windows::new(self.windows.iter().copied().map(range)),
            grants: Vec::new(),
            group: self.group,
        }
    }
}

const fn bounds(range: TimeRange) -> (Instant, Instant) {
    (range.start(), range.end())
}

fn range((start, end): (Instant, Instant)) -> TimeRange {
    TimeRange::between(start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_grounds_are_stored_as_microseconds() {
        let stored = concat!(
            r#"{"person":"00000000-0000-0000-0000-000000000001","issued":1700000000000000,"#,
            r#""given":[{"owner":"00000000-0000-0000-0000-000000000002","data_type":"HeartRate","#,
            r#""requested":[0,10],"windows":[[2,5],[7,10]]}]}"#,
        );
        let grounds: Grounds = serde_json::from_str(stored).unwrap();
        assert_eq!(grounds.issued, Some(Instant::from_micros(1_700_000_000_000_000)));
        let range = |start, end| TimeRange::between(Instant::from_micros(start), Instant::from_micros(end));
        let given: Vec<Disclosure> = grounds.given().collect();
        assert_eq!(given[0].requested, range(0, 10));
        assert_eq!(given[0].windows.as_slice(), [range(2, 5), range(7, 10)]);
        assert_eq!(serde_json::to_string(&grounds).unwrap(), stored);
    }
}
