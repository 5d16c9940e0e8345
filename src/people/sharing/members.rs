//! Memberships: who joined which group, and the id under which the group knows them.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::catalog::granting::{MEMBER_OF, PARTICIPATES_AS};
use crate::model::faults::Fault;
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::time::Instant;
use crate::people::attempts::repeat_while_overtaken;
use crate::people::condition::Condition;

use super::errors::SharingError;
use super::groups::Membership;
use super::handle::{Sharing, body_of};

/// The most bytes of the owner's notes about one participant.
const LARGEST_METADATA: usize = 64 << 10;

/// A member as the group knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    pub group: Uuid,
    pub id: ParticipantId,
    pub joined_at: Instant,
}

/// A change of the owner's notes.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataChange {
    Replace(Map<String, Value>),
    /// Null removes a member, an object merges into an object, anything else replaces.
    Merge(Map<String, Value>),
}

impl Sharing {
    /// Makes `person` a member of a group, unless they are one already.
    pub async fn join(&self, person: PersonId, group: Uuid) -> Result<Participant, SharingError> {
        repeat_while_overtaken(|| async {
            self.group(person, group).await?;
            if let Some(member) = self.membership_document(person, group).await? {
                return participant(&member);
            }
            let now = self.clock.now();
            // The id reveals neither the person nor the time of joining.
            let known_as = ParticipantId(Uuid::new_v5(&self.ids.next(), b"participant"));
            let body = Membership {
                group,
                participant: known_as,
                metadata: Map::new(),
            };
            let document = Document {
                kind: DocumentKind::Membership,
                id: self.ids.next(),
                person,
                name: Some(group.to_string()),
                body: body_of(&body)?,
                version: 1,
                created_at: now,
                updated_at: now,
                deleted_at: None,
            };
            let joined = participant(&document)?;
            let insert = Change::Insert {
                document,
                links: vec![
                    Link {
                        kind: MEMBER_OF,
                        target: group,
                    },
                    Link {
                        kind: PARTICIPATES_AS,
                        target: known_as.0,
                    },
                ],
                limit: self.limits.groups,
            };
            self.commit(insert).await?;
            self.unless_ended(person, joined).await
        })
        .await
    }

    /// The new membership of `person`, if its group is still there. A group that was removed while somebody
    /// joined it did not take their membership along, so it is ended here.
    async fn unless_ended(&self, person: PersonId, joined: Participant) -> Result<Participant, SharingError> {
        // They have joined, so an error must not be the answer. At worst the membership stays without effect.
        match self.catalog.document(DocumentKind::Group, joined.group).await {
            Ok(Some(_)) => return Ok(joined),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a group was not looked for again after somebody joined it");
                return Ok(joined);
            }
        }
        match self.quit(person, joined.group).await {
            // Whoever removed the group may have ended it.
            Ok(_) | Err(SharingError::Unknown(_)) => {}
            Err(error) => tracing::warn!(%error, "a membership of a removed group stays, without effect"),
        }
        Err(SharingError::Unknown("group"))
    }

    /// Ends `person`'s membership. A person who joins again is a new participant.
    pub async fn quit(&self, person: PersonId, group: Uuid) -> Result<Participant, SharingError> {
        repeat_while_overtaken(|| async {
            let member = self.membership_document(person, group).await?;
            let member = member.ok_or(SharingError::Unknown("membership"))?;
            self.commit(member.removal()).await?;
            participant(&member)
        })
        .await
    }

    /// The participants of a group, in the order of their ids, which reveals nothing.
    pub async fn participants(&self, owner: PersonId, group: Uuid) -> Result<Vec<Participant>, SharingError> {
        let mut found = Vec::new();
        for (_, known) in self.members_of(owner, group).await? {
            found.push(known);
        }
        found.sort_by_key(|participant| participant.id);
        Ok(found)
    }

    /// The participants of a group with the people behind them: for questions over all of them, whose answers
    /// name nobody.
    pub async fn members_of(
        &self,
        owner: PersonId,
        group: Uuid,
    ) -> Result<Vec<(PersonId, Participant)>, SharingError> {
        self.own_group(owner, group).await?;
        let members = self.catalog.documents_linked(MEMBER_OF, &[group]).await?;
        members
            .iter()
            .map(|member| Ok((member.person, participant(member)?)))
            .collect()
    }

    /// The notes of the group's owner about a participant.
    pub async fn metadata(
        &self,
        owner: PersonId,
        group: Uuid,
        id: ParticipantId,
    ) -> Result<Map<String, Value>, SharingError> {
        let member = self.member(owner, group, id).await?;
        Ok(Membership::of(&member)?.metadata)
    }

    pub async fn change_metadata(
        &self,
        owner: PersonId,
        group: Uuid,
        id: ParticipantId,
        change: MetadataChange,
        condition: &Condition,
    ) -> Result<Map<String, Value>, SharingError> {
        repeat_while_overtaken(|| async {
            let member = self.member(owner, group, id).await?;
            condition.hold().await?;
            let mut body = Membership::of(&member)?;
            match change.clone() {
                MetadataChange::Replace(metadata) => body.metadata = metadata,
                MetadataChange::Merge(patch) => merge(&mut body.metadata, patch),
            }
            refuse_too_large(&body.metadata)?;
            let update = Change::Update {
                expected: member.version,
                document: Document {
                    body: body_of(&body)?,
                    version: member.version + 1,
                    updated_at: self.clock.now(),
                    ..member
                },
                links: None,
            };
            self.commit(update).await?;
            Ok(body.metadata)
        })
        .await
    }

    /// `person`'s membership of a group.
    pub(super) async fn membership_document(
        &self,
        person: PersonId,
        group: Uuid,
    ) -> Result<Option<Document>, SharingError> {
        let name = group.to_string();
        let found = self
            .catalog
            .document_named(person, DocumentKind::Membership, &name)
            .await?;
        Ok(found)
    }

    async fn member(
        &self,
        owner: PersonId,
        group: Uuid,
        id: ParticipantId,
    ) -> Result<Document, SharingError> {
        self.own_group(owner, group).await?;
        let members = self.catalog.documents_linked(PARTICIPATES_AS, &[id.0]).await?;
        for member in members {
            if Membership::of(&member)?.group == group {
                return Ok(member);
            }
        }
        Err(SharingError::Unknown("participant"))
    }
}

fn participant(member: &Document) -> Result<Participant, SharingError> {
    let body = Membership::of(member)?;
    Ok(Participant {
        group: body.group,
        id: body.participant,
        joined_at: member.created_at,
    })
}

fn merge(into: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match (into.get_mut(&name), value) {
            (_, Value::Null) => {
                into.shift_remove(&name);
            }
            (Some(Value::Object(inner)), Value::Object(patch)) => merge(inner, patch),
            (_, Value::Object(patch)) => {
                let mut inner = Map::new();
                merge(&mut inner, patch);
                into.insert(name, Value::Object(inner));
            }
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

fn refuse_too_large(metadata: &Map<String, Value>) -> Result<(), SharingError> {
    if body_of(metadata)?.len() <= LARGEST_METADATA {
        return Ok(());
    }
    let message = "at most 64 KiB can be stored about a participant";
    Err(SharingError::Invalid(vec![Fault::new(
        ["body"],
        "value_error",
        message,
    )]))
}
