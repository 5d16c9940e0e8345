//! Groups: people can share with a group without naming its members, and the group's owner may read what its
//! members agreed to.
//!
//! The group knows a member by an id that reveals nothing about them and is drawn anew each time they join.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::catalog::granting::{EVERYBODY, INVITES, MEMBER_OF, OPEN_TO};
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::registry::{Registry, TypeId};
use crate::model::stored_json;
use crate::model::text::composed;
use crate::model::time::{Instant, TimeRange};
use crate::people::attempts::repeat_while_overtaken;
use crate::people::condition::Condition;

use super::errors::SharingError;
use super::handle::{Sharing, body_of};
use super::text::{LONGEST_LINE, check_name, check_prose, check_window, each_once_in_order, fault_of};

/// The most types that one group may name.
const MOST_TYPES: usize = 1_000;
/// The most people that one group may invite.
const MOST_INVITED: usize = 10_000;

/// The body of a group. `None` means that the field was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub title: String,
    pub responsible_entity: Option<String>,
    pub description: Option<String>,
    /// The types that the owner may read of each member; none if empty.
    pub data_types: Vec<String>,
    /// `None` means unbounded.
    pub time_start: Option<Instant>,
    pub time_end: Option<Instant>,
    pub is_public: bool,
    pub group_url: Option<String>,
    pub detail_markdown: Option<String>,
    pub agreement_markdown: Option<String>,
    pub withdraw_markdown: Option<String>,
    pub header_image_url: Option<String>,
    pub preview_image_url: Option<String>,
    pub friendly_id: Option<String>,
    pub view_description: Option<String>,
    /// The people who may join a private group.
    pub invited: Vec<Uuid>,
}

/// The body of a membership. Its owner is the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub group: Uuid,
    pub participant: ParticipantId,
    /// The notes of the group's owner: a JSON object.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl Group {
    pub fn of(group: &Document) -> Result<Self, CatalogError> {
        read(group, "group")
    }

    /// The window of the records that its owner may read.
    #[must_use]
    pub fn window(&self) -> TimeRange {
        TimeRange::with_open_ends(self.time_start, self.time_end)
    }

    /// The types that its owner may read.
    #[must_use]
    pub fn types(&self) -> Vec<TypeId> {
        self.data_types.iter().map(|listed| TypeId::new(listed)).collect()
    }
}

impl Membership {
    pub fn of(membership: &Document) -> Result<Self, CatalogError> {
        read(membership, "membership")
    }
}

/// A group as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGroup {
    pub id: Uuid,
    pub owner: PersonId,
    pub group: Group,
    pub created_at: Instant,
    pub(super) version: i64,
}

/// The fields of a group that may still change after people joined it; `None` leaves one as it is,
/// `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChange {
    pub description: Option<Option<String>>,
    pub header_image_url: Option<Option<String>>,
    pub preview_image_url: Option<Option<String>>,
    pub view_description: Option<Option<String>>,
    pub invited: Option<Vec<Uuid>>,
}

impl StoredGroup {
    fn of(document: &Document) -> Result<Self, CatalogError> {
        Ok(Self {
            id: document.id,
            owner: document.person,
            group: Group::of(document)?,
            created_at: document.created_at,
            version: document.version,
        })
    }

    fn document(&self, now: Instant) -> Result<Document, SharingError> {
        Ok(Document {
            kind: DocumentKind::Group,
            id: self.id,
            person: self.owner,
            name: None,
            body: body_of(&self.group)?,
            version: self.version,
            created_at: self.created_at,
            updated_at: now,
            deleted_at: None,
        })
    }

    fn links(&self) -> Vec<Link> {
        let invited = self.group.invited.iter().map(|person| Link {
            kind: INVITES,
            target: *person,
        });
        let open = self.group.is_public.then_some(Link {
            kind: OPEN_TO,
            target: EVERYBODY,
        });
        invited.chain(open).collect()
    }
}

impl Sharing {
    /// Creates a group of `owner`.
    pub async fn create_group(
        &self,
        registry: &Registry,
        owner: PersonId,
        mut group: Group,
    ) -> Result<StoredGroup, SharingError> {
        let mut faults = Vec::new();
        check_name(&mut faults, "title", &group.title);
        group.title = composed(&group.title).into_owned();
        for (member, text) in [
            ("responsible_entity", &group.responsible_entity),
            ("description", &group.description),
            ("group_url", &group.group_url),
            ("detail_markdown", &group.detail_markdown),
            ("agreement_markdown", &group.agreement_markdown),
            ("withdraw_markdown", &group.withdraw_markdown),
            ("header_image_url", &group.header_image_url),
            ("preview_image_url", &group.preview_image_url),
            ("friendly_id", &group.friendly_id),
            ("view_description", &group.view_description),
        ] {
            check_prose(&mut faults, member, text.as_deref());
        }
        check_window(&mut faults, group.time_start, group.time_end);
        group.data_types = built_in(registry, &group.data_types, &mut faults);
        invited(&mut group.invited, &mut faults);
        if !faults.is_empty() {
            return Err(SharingError::Invalid(faults));
        }
        let now = self.clock.now();
        let stored = StoredGroup {
            id: self.ids.next(),
            owner,
            group,
            created_at: now,
            version: 1,
        };
        let insert = Change::Insert {
            document: stored.document(now)?,
            links: stored.links(),
            limit: self.limits.groups,
        };
        self.commit(insert).await?;
        Ok(stored)
    }

    /// The groups that `person` is a member of, oldest first.
    pub async fn joined_groups(&self, person: PersonId) -> Result<Vec<StoredGroup>, SharingError> {
        self.with_joined(person, Vec::new()).await
    }

    /// The groups that `person` owns or is a member of, that they are invited to, or that are public, oldest
    /// first.
    pub async fn groups_for(&self, person: PersonId) -> Result<Vec<StoredGroup>, SharingError> {
        let mut found = self.catalog.documents_of(person, DocumentKind::Group).await?;
        found.extend(self.catalog.documents_linked(INVITES, &[person.0]).await?);
        found.extend(self.catalog.documents_linked(OPEN_TO, &[EVERYBODY]).await?);
        self.with_joined(person, found).await
    }

    /// The groups that were `found`, and those that `person` is a member of.
    async fn with_joined(
        &self,
        person: PersonId,
        mut found: Vec<Document>,
    ) -> Result<Vec<StoredGroup>, SharingError> {
        let joined = self.catalog.links_by(person, MEMBER_OF).await?;
        let mut wanted: BTreeSet<Uuid> = joined.iter().map(|link| link.target).collect();
        for document in &found {
            wanted.remove(&document.id);
        }
        for group in wanted {
            found.extend(self.catalog.document(DocumentKind::Group, group).await?);
        }
        found.sort_by_key(|document| (document.created_at, document.id));
        found.dedup_by_key(|document| document.id);
        Ok(found.iter().map(StoredGroup::of).collect::<Result<Vec<_>, _>>()?)
    }

    /// A group that `person` may see.
    pub async fn group(&self, person: PersonId, id: Uuid) -> Result<StoredGroup, SharingError> {
        let found = self.visible_group(person, id).await?;
        found.ok_or(SharingError::Unknown("group"))
    }

    /// A group that `person` owns. A visible group of somebody else and an invisible one yield different
    /// errors.
    pub async fn own_group(&self, person: PersonId, id: Uuid) -> Result<StoredGroup, SharingError> {
        let found = self.group(person, id).await?;
        if found.owner == person {
            Ok(found)
        } else {
            Err(SharingError::NotYours)
        }
    }

    /// Changes the fields of a group that its members did not agree to.
    pub async fn change_group(
        &self,
        owner: PersonId,
        id: Uuid,
        change: GroupChange,
        condition: &Condition,
    ) -> Result<StoredGroup, SharingError> {
        let attempt = || self.try_change_group(owner, id, change.clone(), condition);
        repeat_while_overtaken(attempt).await
    }

    async fn try_change_group(
        &self,
        owner: PersonId,
        id: Uuid,
        change: GroupChange,
        condition: &Condition,
    ) -> Result<StoredGroup, SharingError> {
        let before = self.own_group(owner, id).await?;
        condition.hold().await?;
        let mut after = before.clone();
        let mut faults = Vec::new();
        let group = &mut after.group;
        for (member, sent, kept) in [
            ("description", change.description, &mut group.description),
            (
                "header_image_url",
                change.header_image_url,
                &mut group.header_image_url,
            ),
            (
                "preview_image_url",
                change.preview_image_url,
                &mut group.preview_image_url,
            ),
            (
                "view_description",
                change.view_description,
                &mut group.view_description,
            ),
        ] {
            if let Some(sent) = sent {
                check_prose(&mut faults, member, sent.as_deref());
                *kept = sent;
            }
        }
        if let Some(people) = change.invited {
            group.invited = people;
            invited(&mut group.invited, &mut faults);
        }
        if !faults.is_empty() {
            return Err(SharingError::Invalid(faults));
        }
        after.version += 1;
        let update = Change::Update {
            document: after.document(self.clock.now())?,
            expected: before.version,
            links: Some(after.links()),
        };
        self.commit(update).await?;
        Ok(after)
    }

    /// The group, if `person` may see it: as its owner, a member, an invited person, or because it is public.
    pub(super) async fn visible_group(
        &self,
        person: PersonId,
        id: Uuid,
    ) -> Result<Option<StoredGroup>, SharingError> {
        let member = self.membership_document(person, id).await?;
        let Some(found) = self.catalog.document(DocumentKind::Group, id).await? else {
            return Ok(None);
        };
        let found = StoredGroup::of(&found)?;
        let visible = found.group.is_public
            || found.owner == person
            || member.is_some()
            || found.group.invited.contains(&person.0);
        Ok(visible.then_some(found))
    }
}

/// The ids of the listed types, which must be built in, so that every member has them.
fn built_in(registry: &Registry, listed: &[String], faults: &mut Vec<Fault>) -> Vec<String> {
    if listed.len() > MOST_TYPES {
        let message = format!("a group names {MOST_TYPES} types at most");
        faults.push(Fault::new(["body", "svc_data_types"], "too_long", message));
        return Vec::new();
    }
    let mut spelt = Vec::with_capacity(listed.len());
    for (index, text) in listed.iter().enumerate() {
        let loc: [LocPart; 3] = ["body".into(), "svc_data_types".into(), index.into()];
        if let Some(known) = registry.get(text) {
            spelt.push(known.id.to_string());
            continue;
        }
        let unknown = || {
            Fault::new(
                loc.clone(),
                "value_error",
                format!("{:?} is not a built-in data type", beginning(text)),
            )
            .with_value(text.as_str())
        };
        faults.push(fault_of(&loc, text, LONGEST_LINE).unwrap_or_else(unknown));
    }
    each_once_in_order(spelt)
}

fn invited(people: &mut Vec<Uuid>, faults: &mut Vec<Fault>) {
    people.sort_unstable();
    people.dedup();
    if people.len() > MOST_INVITED {
        let message = format!("a group invites {MOST_INVITED} people at most");
        faults.push(Fault::new(["body", "invited_svc_userids"], "too_long", message));
    }
}

fn read<T: serde::de::DeserializeOwned>(document: &Document, what: &str) -> Result<T, CatalogError> {
    stored_json::read(&document.body).map_err(|error| CatalogError::Corrupt {
        what: format!("{what} {} cannot be read: {error}", document.id),
    })
}
