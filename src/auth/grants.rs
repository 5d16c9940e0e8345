//! The one decision about reading rows: (reader, owner, type, range) is refused, or becomes the windows that
//! may be read.
//!
//! Every read takes its permit from [`Grants`], because code that reads rows accepts nothing else and no
//! other module can make one: a permit is bound to [`GrantAuthority`], and the only authority is private to
//! this module. People may read all of their own data, and of others' what is shared with them or with one of
//! their groups. Must not know how the catalogue keeps what is shared, and keeps nothing of it itself.

use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::permit::{ListPermit, Opening, OwnerAndReader, ReadPermit, Visible, Windows};
use crate::model::registry::{Registry, TypeId};
use crate::model::time::{Instant, TimeRange};

use super::disclosures::{Disclosure, Participation, Subject};
use super::reach::Beyond;
use super::ties::{Ties, windows_of};
use super::tokens::Reader;

#[cfg(test)]
mod tests;

/// The authority that permits are bound to. It can be named anywhere and held only by [`Grants`].
#[derive(Debug)]
pub struct GrantAuthority(());

/// Permission to read one type of one person.
pub type Readable = ReadPermit<GrantAuthority>;

/// Permission to list what one person has.
pub type ReadableTypes = ListPermit<GrantAuthority>;

/// The reader may not see this. Nothing is said about whether it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this data is not shared with you")]
pub struct Refused;

/// Why there is no permit.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The token is for other types, whoever the owner is.
    #[error(transparent)]
    Beyond(#[from] Beyond),
    /// The owner of a group asked for more time than its members agreed to.
    #[error(
        "participants of this group are read from {} to {}; ask for a range inside",
        .0.start(),
        .0.end()
    )]
    BeyondGroup(TimeRange),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The moments that a request names, which must lie inside the group's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    pub start: Option<Instant>,
    pub end: Option<Instant>,
}

impl Stated {
    fn lies_inside(self, window: TimeRange) -> bool {
        let inside = |moment: Option<Instant>| {
            moment.is_none_or(|moment| window.start() <= moment && moment <= window.end())
        };
        inside(self.start) && inside(self.end)
    }

    /// Refuses a question about a participant that is about a moment outside of the group's time.
    pub fn keep_to(self, participation: &Participation) -> Result<(), Denied> {
        if self.lies_inside(participation.window) {
            return Ok(());
        }
        Err(Denied::BeyondGroup(participation.window))
    }
}

/// Decides who may read what.
pub struct Grants {
    authority: GrantAuthority,
    ties: Ties,
    registry: Arc<Registry>,
}

impl Grants {
    #[must_use]
    pub const fn new(catalog: Catalog, registry: Arc<Registry>) -> Self {
        Self {
            authority: GrantAuthority(()),
            ties: Ties::new(catalog),
            registry,
        }
    }

    /// The windows of `range` in which `reader` may read `owner`'s rows of `data_type`. They may be empty:
    /// then the type is shared, but not for that time.
    pub async fn windows(
        &self,
        reader: &Reader,
        owner: PersonId,
        data_type: &TypeId,
        range: TimeRange,
    ) -> Result<Readable, Denied> {
        let named = self.canonical(data_type);
        if !reader.reach().covers(&named) {
            return Err(Beyond::Types.into());
        }
        let (windows, grants) = if let Some(participation) = participation(reader, owner) {
            (participation.windows_of(&named, range), Vec::new())
        } else if reader.owns(owner) {
            let windows = Windows::new([range]);
            return Ok(ReadPermit::given(&self.authority, owner, named, windows));
        } else {
            let given = self.ties.given(reader.person(), owner).await?;
            windows_of(&given, &named, range)
        };
        let windows = windows.ok_or(Refused)?;
        reader.disclosures().note(Disclosure {
            owner,
            subject: Subject::Type(named.clone()),
            requested: range,
            windows: windows.clone(),
            grants,
            group: group_of(reader, owner),
        });
        let sharing = OwnerAndReader {
            owner,
            reader: reader.person(),
        };
        let permit = ReadPermit::shared(&self.authority, sharing, named, windows);
        Ok(if participation(reader, owner).is_some() {
            permit.anonymous()
        } else {
            permit
        })
    }

    /// Which of `owner`'s types a listing over `range` may show to `reader`.
    pub async fn readable_types(
        &self,
        reader: &Reader,
        owner: PersonId,
        range: TimeRange,
    ) -> Result<ReadableTypes, Denied> {
        if !reader.reach().has_all_types() {
            return Err(Beyond::Types.into());
        }
        self.listed(reader, owner, None, range).await
    }

    /// What `readable_types` returns, for what is said of one type alone, for which a token of this type
    /// suffices.
    pub async fn readable_type(
        &self,
        reader: &Reader,
        owner: PersonId,
        data_type: &TypeId,
        range: TimeRange,
    ) -> Result<ReadableTypes, Denied> {
        let named = self.canonical(data_type);
        if !reader.reach().covers(&named) {
            return Err(Beyond::Types.into());
        }
        let only = (!reader.reach().has_all_types()).then_some(named);
        self.listed(reader, owner, only, range).await
    }

    /// What may be listed: all that `reader` may see, or of that `only` one type.
    async fn listed(
        &self,
        reader: &Reader,
        owner: PersonId,
        only: Option<TypeId>,
        range: TimeRange,
    ) -> Result<ReadableTypes, Denied> {
        let (mut openings, grants) = if let Some(participation) = participation(reader, owner) {
            (vec![participation.opening(range)], Vec::new())
        } else if reader.owns(owner) {
            let windows = Windows::new([range]);
            let visible = match only {
                None => Visible::EveryType(windows),
                Some(only) => Visible::Granted(vec![Opening {
                    types: Some(vec![only]),
                    windows,
                }]),
            };
            return Ok(ListPermit::given(&self.authority, owner, visible));
        } else {
            let given = self.ties.given(reader.person(), owner).await?;
            let openings = given.iter().map(|given| given.terms.opening(range)).collect();
            (openings, given.iter().map(|given| given.id).collect())
        };
        if let Some(only) = only {
            openings.retain(|opening| opening.shows(&only));
            for opening in &mut openings {
                opening.types = Some(vec![only.clone()]);
            }
        }
        if openings.is_empty() {
            return Err(Refused.into());
        }
        reader.disclosures().note(Disclosure {
            owner,
            windows: Windows::new(
                openings
                    .iter()
                    .flat_map(|opening| opening.windows.as_slice().to_vec()),
            ),
            subject: Subject::Listing(openings.clone()),
            requested: range,
            grants,
            group: group_of(reader, owner),
        });
        Ok(ListPermit::shared(
            &self.authority,
            owner,
            Visible::Granted(openings),
        ))
    }

    /// The person whom `reader`'s group knows as `participant`. From now on, this request asks about them as
    /// the owner of the group. What it may be about is decided where its query is read: see [`Stated`].
    pub async fn participant(
        &self,
        reader: &Reader,
        group: Uuid,
        participant: ParticipantId,
    ) -> Result<PersonId, Denied> {
        let found = self
            .ties
            .participation(reader.person(), group, participant)
            .await?;
        let participation = reader.disclosures().participate(found.ok_or(Refused)?);
        if (participation.group, participation.participant) != (group, participant) {
            return Err(Refused.into());
        }
        Ok(participation.person)
    }

    /// The permits for `data_type` of all members of a group that `reader` owns, for one question over all of
    /// them. `range` must lie inside the group's time.
    pub async fn members(
        &self,
        reader: &Reader,
        group: Uuid,
        data_type: &TypeId,
        range: TimeRange,
    ) -> Result<Vec<Readable>, Denied> {
        let found = self.ties.group_of_owner(reader.person(), group).await?;
        let found = found.ok_or(Refused)?;
        let named = self.canonical(data_type);
        if !reader.reach().covers(&named) {
            return Err(Beyond::Types.into());
        }
        let opening = found.opening(range);
        if !opening.shows(&named) {
            return Err(Refused.into());
        }
        let stated = Stated {
            start: Some(range.start()),
            end: Some(range.end()),
        };
        if !stated.lies_inside(found.window) {
            return Err(Denied::BeyondGroup(found.window));
        }
        let mut permits = Vec::with_capacity(found.members.len());
        for owner in found.members {
            let windows = opening.windows.clone();
            reader.disclosures().note(Disclosure {
                owner,
                subject: Subject::Type(named.clone()),
                requested: range,
                windows: windows.clone(),
                grants: Vec::new(),
                group: Some(group),
            });
            let sharing = OwnerAndReader {
                owner,
                reader: reader.person(),
            };
            let permit = ReadPermit::shared(&self.authority, sharing, named.clone(), windows);
            permits.push(permit.anonymous());
        }
        Ok(permits)
    }

    /// What ties people, for the decisions that need no permit.
    pub(super) const fn ties(&self) -> &Ties {
        &self.ties
    }

    /// The id under which a type is shared: a built-in type may have other names.
    fn canonical(&self, data_type: &TypeId) -> TypeId {
        if let Some(known) = self.registry.get(data_type.as_str()) {
            return known.id.clone();
        }
        TypeId::parse(data_type.as_str()).unwrap_or_else(|| data_type.clone())
    }
}

/// The participation by which the reader knows the owner, if the reader does not know the owner's id.
fn participation(reader: &Reader, owner: PersonId) -> Option<&Participation> {
    let participation = reader.disclosures().participation();
    participation.filter(|participation| participation.person == owner)
}

fn group_of(reader: &Reader, owner: PersonId) -> Option<Uuid> {
    participation(reader, owner).map(|participation| participation.group)
}
