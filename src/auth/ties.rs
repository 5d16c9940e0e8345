//! What the catalogue says ties a reader to an owner: the shares between them, a participation in one of the
//! reader's groups, or a group as a whole; and what these open: types, and windows of time.
//!
//! Nothing is remembered beyond a request, and one statement finds all there is to know about reader and
//! owner: it costs the same whether the owner shares nothing or does not exist. Makes no permits; must not
//! know tokens, or why somebody asks.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::disclosures::Participation;
use crate::catalog::documents::DocumentKind;
use crate::catalog::granting::{Grant, MEMBER_OF, PARTICIPATES_AS};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::permit::{Opening, Windows};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::people::sharing::groups::{Group, Membership};
use crate::people::sharing::terms::{FileAge, Terms};
use crate::people::sharing::{Grantee, grant_id};

/// Finds what ties people.
pub(super) struct Ties {
    catalog: Catalog,
}

/// One grant: its terms and its id.
pub(super) struct GivenGrant {
    pub id: Uuid,
    pub terms: Terms,
}

/// A group that the reader owns, what it lets them read, and of whom.
pub(super) struct GroupOfOwner {
    pub types: Vec<TypeId>,
    pub window: TimeRange,
    pub members: BTreeSet<PersonId>,
}

impl Ties {
    pub(super) const fn new(catalog: Catalog) -> Self {
        Self { catalog }
    }

    /// What `owner` gives `reader`, or a group that they are in.
    pub(super) async fn given(
        &self,
        reader: PersonId,
        owner: PersonId,
    ) -> Result<Vec<GivenGrant>, CatalogError> {
        let given = |grant: Grant| {
            let grantee = grant.group.map_or(Grantee::Person(reader), Grantee::Group);
            Ok(GivenGrant {
                id: grant_id(grant.share.id, grantee),
                terms: Terms::of(&grant.share)?,
            })
        };
        let found = self.catalog.grants_between(owner, reader).await?;
        found.into_iter().map(given).collect()
    }

    /// A group, if it is `owner`'s.
    pub(super) async fn group_of_owner(
        &self,
        owner: PersonId,
        group: Uuid,
    ) -> Result<Option<GroupOfOwner>, CatalogError> {
        let found = self.catalog.document(DocumentKind::Group, group).await?;
        let members = self.catalog.documents_linked(MEMBER_OF, &[group]).await?;
        let Some(found) = found.filter(|found| found.person == owner) else {
            return Ok(None);
        };
        let terms = Group::of(&found)?;
        Ok(Some(GroupOfOwner {
            types: terms.types(),
            window: terms.window(),
            members: members.iter().map(|member| member.person).collect(),
        }))
    }

    /// The person whom a group of `group_owner` knows as `participant`.
    pub(super) async fn participation(
        &self,
        group_owner: PersonId,
        group: Uuid,
        participant: ParticipantId,
    ) -> Result<Option<Participation>, CatalogError> {
        let members = self
            .catalog
            .documents_linked(PARTICIPATES_AS, &[participant.0])
            .await?;
        let found = self.catalog.document(DocumentKind::Group, group).await?;
        let (Some(member), Some(found)) =
            (members.first(), found.filter(|found| found.person == group_owner))
        else {
            return Ok(None);
        };
        if Membership::of(member)?.group != group {
            return Ok(None);
        }
        let terms = Group::of(&found)?;
        Ok(Some(Participation {
            group,
            participant,
            person: member.person,
            types: terms.types(),
            window: terms.window(),
        }))
    }
}

impl Participation {
    pub(super) fn windows_of(&self, data_type: &TypeId, range: TimeRange) -> Option<Windows> {
        let opening = self.opening(range);
        opening.shows(data_type).then_some(opening.windows)
    }

    pub(super) fn opening(&self, range: TimeRange) -> Opening {
        opening(&self.types, self.window, range)
    }
}

impl GroupOfOwner {
    pub(super) fn opening(&self, range: TimeRange) -> Opening {
        opening(&self.types, self.window, range)
    }
}

/// What a group lets its owner read of its members, inside `range`.
fn opening(types: &[TypeId], window: TimeRange, range: TimeRange) -> Opening {
    Opening {
        types: Some(types.to_vec()),
        windows: Windows::new([window]).within(range),
    }
}

/// The union of the grants' windows inside `range`, and the grants that contribute to it; `None` if no grant
/// is for the type.
pub(super) fn windows_of(
    given: &[GivenGrant],
    data_type: &TypeId,
    range: TimeRange,
) -> (Option<Windows>, Vec<Uuid>) {
    let mut covering = given
        .iter()
        .filter(|given| given.terms.covers(data_type))
        .peekable();
    if covering.peek().is_none() {
        return (None, Vec::new());
    }
    let (mut parts, mut grants) = (Vec::new(), Vec::new());
    for given in covering {
        let part = Windows::new([given.terms.window()]).within(range);
        if !part.is_empty() {
            parts.extend_from_slice(part.as_slice());
            grants.push(given.id);
        }
    }
    (Some(Windows::new(parts)), grants)
}

/// Whether `terms` share the version of a file at `path` that was uploaded at `moment`.
pub(super) fn shares_file(terms: &Terms, path: &str, age: FileAge, moment: Instant) -> bool {
    terms.covers_file(path, age) && Windows::new([terms.window()]).contain(moment)
}
