//! The one decision about reading: (reader, owner, type or file, range) is refused, or becomes the windows
//! that may be read.
//!
//! Every read takes its permit from [`Grants`], because code that reads rows accepts nothing else and no
//! other module can make one: a permit is bound to [`GrantAuthority`], and the only authority is private to
//! this module. People may read all of their own data, and of others' what is shared with them or with one of
//! their groups. Nothing is remembered beyond a request, and one statement finds all there is to know about
//! reader and owner: it costs the same whether the owner shares nothing or does not exist.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::documents::DocumentKind;
use crate::catalog::granting::{Grant, MEMBER_OF, PARTICIPATES_AS};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::PersonId;
use crate::model::permit::{ListPermit, Opening, ReadPermit, Sharing, Visible, Windows};
use crate::model::registry::{Registry, TypeId};
use crate::model::time::{Instant, TimeRange};
use crate::people::sharing::groups::{Group, Membership};
use crate::people::sharing::terms::{FileAge, Terms};
use crate::people::sharing::{Grantee, grant_id};

use super::disclosures::{Disclosure, Participation, Subject};
use super::grounds::{Grounds, KnownAs};
use super::reach::Beyond;
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
}

/// Which files of one person may be read. Made only here.
#[derive(Debug)]
pub struct ReadableFiles {
    owner: PersonId,
    /// `None`: the owner asks, who may read all.
    shared: Option<Vec<Terms>>,
}

/// Decides who may read what.
pub struct Grants {
    authority: GrantAuthority,
    catalog: Catalog,
    registry: Arc<Registry>,
}

/// One grant: its terms and its id.
struct Given {
    id: Uuid,
    terms: Terms,
}

impl Grants {
    #[must_use]
    pub const fn new(catalog: Catalog, registry: Arc<Registry>) -> Self {
        Self {
            authority: GrantAuthority(()),
            catalog,
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
            let given = self.given(reader.person(), owner).await?;
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
        let sharing = Sharing {
            owner,
            reader: reader.person(),
        };
        Ok(ReadPermit::shared(&self.authority, sharing, named, windows))
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

    /// The same for what is said of one type alone, for which a token of this type suffices.
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
            let given = self.given(reader.person(), owner).await?;
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

    /// Whether `reader` may read a version of `owner`'s file with this path and moment of upload: if the
    /// share has a window of time, it includes the versions uploaded in that window. `None` is a version that
    /// nobody else may read, or that does not exist: refusing it takes as long as refusing any other.
    pub async fn file(
        &self,
        reader: &Reader,
        owner: PersonId,
        version: Option<(&str, FileAge, Instant)>,
    ) -> Result<(), Denied> {
        if !reader.reach().has_all_types() {
            return Err(Beyond::Types.into());
        }
        if reader.owns(owner) {
            return Ok(());
        }
        let given = self.given(reader.person(), owner).await?;
        let (path, age, moment) = version.ok_or(Refused)?;
        let grants: Vec<Uuid> = given
            .iter()
            .filter(|given| shares_file(&given.terms, path, age, moment))
            .map(|given| given.id)
            .collect();
        if grants.is_empty() {
            return Err(Refused.into());
        }
        let requested = at(moment);
        reader.disclosures().note(Disclosure {
            owner,
            subject: Subject::File(path.to_owned(), age),
            requested,
            windows: Windows::new([requested]),
            grants,
            group: None,
        });
        Ok(())
    }

    /// Which of `owner`'s files `reader` may read, for listing those in `folder`.
    pub async fn files(
        &self,
        reader: &Reader,
        owner: PersonId,
        folder: &str,
    ) -> Result<ReadableFiles, Denied> {
        if !reader.reach().has_all_types() {
            return Err(Beyond::Types.into());
        }
        if reader.owns(owner) {
            return Ok(ReadableFiles { owner, shared: None });
        }
        let mut given = self.given(reader.person(), owner).await?;
        given.retain(|given| given.terms.leads_through(folder));
        if given.is_empty() {
            return Err(Refused.into());
        }
        reader.disclosures().note(Disclosure {
            owner,
            subject: Subject::Folder(folder.to_owned()),
            requested: TimeRange::ALWAYS,
            windows: Windows::new(given.iter().map(|given| given.terms.window())),
            grants: given.iter().map(|given| given.id).collect(),
            group: None,
        });
        Ok(ReadableFiles {
            owner,
            shared: Some(given.into_iter().map(|given| given.terms).collect()),
        })
    }

    /// The person whom `reader`'s group knows as `participant`. From now on, this request asks about them as
    /// the owner of the group. The moments that the request names must lie inside the group's time.
    pub async fn participant(
        &self,
        reader: &Reader,
        group: Uuid,
        participant: Uuid,
        stated: Stated,
    ) -> Result<PersonId, Denied> {
        let found = self.participation(reader.person(), group, participant).await?;
        let participation = reader.disclosures().participate(found.ok_or(Refused)?);
        if (participation.group, participation.participant) != (group, participant) {
            return Err(Refused.into());
        }
        if !stated.lies_inside(participation.window) {
            return Err(Denied::BeyondGroup(participation.window));
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
        let found = self.group_of_owner(reader.person(), group).await?;
        let found = found.ok_or(Refused)?;
        let named = self.canonical(data_type);
        if !reader.reach().covers(&named) {
            return Err(Beyond::Types.into());
        }
        let opening = opening(&found.types, found.window, range);
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
            let sharing = Sharing {
                owner,
                reader: reader.person(),
            };
            permits.push(ReadPermit::shared(
                &self.authority,
                sharing,
                named.clone(),
                windows,
            ));
        }
        Ok(permits)
    }

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
                (None, None) => holds(&self.given(reader, disclosure.owner).await?, &disclosure),
                (None, Some(group)) => {
                    let known = match groups.entry(group) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(self.group_of_owner(reader, group).await?),
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

    /// A group, if it is `owner`'s.
    async fn group_of_owner(
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

    async fn given(&self, reader: PersonId, owner: PersonId) -> Result<Vec<Given>, CatalogError> {
        let given = |grant: Grant| {
            let grantee = grant.group.map_or(Grantee::Person(reader), Grantee::Group);
            Ok(Given {
                id: grant_id(grant.share.id, grantee),
                terms: Terms::of(&grant.share)?,
            })
        };
        let found = self.catalog.grants_between(owner, reader).await?;
        found.into_iter().map(given).collect()
    }

    async fn participation(
        &self,
        group_owner: PersonId,
        group: Uuid,
        participant: Uuid,
    ) -> Result<Option<Participation>, CatalogError> {
        let members = self
            .catalog
            .documents_linked(PARTICIPATES_AS, &[participant])
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

    /// The id under which a type is shared: a built-in type may have other names.
    fn canonical(&self, data_type: &TypeId) -> TypeId {
        if let Some(known) = self.registry.get(data_type.as_str()) {
            return known.id.clone();
        }
        TypeId::parse(data_type.as_str()).unwrap_or_else(|| data_type.clone())
    }
}

impl ReadableFiles {
    #[must_use]
    pub const fn owner(&self) -> PersonId {
        self.owner
    }

    /// Whether all files may be read, because they are the reader's own.
    #[must_use]
    pub const fn are_own(&self) -> bool {
        self.shared.is_none()
    }

    /// Whether a version of the file at `path` that was uploaded at `moment` may be read.
    #[must_use]
    pub fn include(&self, path: &str, age: FileAge, moment: Instant) -> bool {
        self.shared
            .as_ref()
            .is_none_or(|shared| shared.iter().any(|terms| shares_file(terms, path, age, moment)))
    }
}

impl Participation {
    fn windows_of(&self, data_type: &TypeId, range: TimeRange) -> Option<Windows> {
        let opening = self.opening(range);
        opening.shows(data_type).then_some(opening.windows)
    }

    fn opening(&self, range: TimeRange) -> Opening {
        opening(&self.types, self.window, range)
    }

    fn holds(&self, disclosure: &Disclosure) -> bool {
        match &disclosure.subject {
            Subject::Type(data_type) => covers(&self.opening(disclosure.requested), data_type, disclosure),
            Subject::Listing(_) => true,
            Subject::File(..) | Subject::Folder(_) => false,
        }
    }
}

/// A group that the reader owns, what it lets them read, and of whom.
struct GroupOfOwner {
    types: Vec<TypeId>,
    window: TimeRange,
    members: BTreeSet<PersonId>,
}

impl GroupOfOwner {
    /// Whether what was disclosed of a member may still be read.
    fn holds(&self, disclosure: &Disclosure) -> bool {
        let Subject::Type(data_type) = &disclosure.subject else {
            return false;
        };
        let opening = opening(&self.types, self.window, disclosure.requested);
        self.members.contains(&disclosure.owner) && covers(&opening, data_type, disclosure)
    }
}

/// What a group lets its owner read of its members, inside `range`.
fn opening(types: &[TypeId], window: TimeRange, range: TimeRange) -> Opening {
    Opening {
        types: Some(types.to_vec()),
        windows: Windows::new([window]).within(range),
    }
}

fn covers(opening: &Opening, data_type: &TypeId, disclosure: &Disclosure) -> bool {
    opening.shows(data_type) && opening.windows.cover_all(&disclosure.windows)
}

/// The participation by which the reader knows the owner, if the reader does not know the owner's id.
fn participation(reader: &Reader, owner: PersonId) -> Option<&Participation> {
    let participation = reader.disclosures().participation();
    participation.filter(|participation| participation.person == owner)
}

fn group_of(reader: &Reader, owner: PersonId) -> Option<Uuid> {
    participation(reader, owner).map(|participation| participation.group)
}

/// The union of the grants' windows inside `range`, and the grants that contribute to it; `None` if no grant
/// is for the type.
fn windows_of(given: &[Given], data_type: &TypeId, range: TimeRange) -> (Option<Windows>, Vec<Uuid>) {
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

fn shares_file(terms: &Terms, path: &str, age: FileAge, moment: Instant) -> bool {
    terms.covers_file(path, age) && Windows::new([terms.window()]).contain(moment)
}

/// The shortest range with `moment` in it.
fn at(moment: Instant) -> TimeRange {
    TimeRange::between(moment, Instant::from_micros(moment.micros().saturating_add(1)))
}
