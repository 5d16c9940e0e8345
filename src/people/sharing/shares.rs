//! Shares: created, read, changed and revoked by the owner of the data.

mod spelling;

use std::collections::{BTreeSet, HashMap};

use serde_json::json;
use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::granting::{SHARED_WITH_GROUP, SHARED_WITH_PERSON};
use crate::model::faults::{Fault, first_of};
use crate::model::ids::PersonId;
use crate::model::text::composed;
use crate::model::time::Instant;
use crate::people::attempts::repeat_while_overtaken;
use crate::people::condition::Condition;
use crate::people::limits::LimitReached;
use crate::people::types::Types;

use super::access_log::ShareEvent;
use super::errors::SharingError;
use super::grantee::{Grantee, grant_id};
use super::handle::{Sharing, body_of, done};
use super::terms::Terms;
use super::text::{LONGEST_LINE, check_name, check_window, fault_of};

use spelling::spelt;

/// The most people and groups that one share may be given to.
const MOST_GRANTEES: usize = 10_000;

/// A share as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub id: Uuid,
    pub owner: PersonId,
    pub terms: Terms,
    /// In the order of their ids.
    pub people: Vec<PersonId>,
    pub groups: Vec<Uuid>,
    pub created_at: Instant,
    pub updated_at: Instant,
    version: i64,
}

/// New values for a share; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareChange {
    pub name: Option<String>,
    pub user_name: Option<String>,
    pub data_types: Option<Vec<String>>,
    pub share_all_data: Option<bool>,
    /// `Some(None)` removes the bound.
    pub time_start: Option<Option<Instant>>,
    pub time_end: Option<Option<Instant>>,
    pub people: Option<Vec<PersonId>>,
    pub groups: Option<Vec<Uuid>>,
}

/// Whether an entry of the log names the receivers of a share. There may be thousands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receivers {
    Told,
    /// An earlier entry names them.
    AsBefore,
}

impl Share {
    /// The id by which the receiver knows it.
    #[must_use]
    pub fn grant(&self, grantee: Grantee) -> Uuid {
        grant_id(self.id, grantee)
    }

    fn links(&self) -> Vec<Link> {
        let people = self.people.iter().map(|person| Link {
            kind: SHARED_WITH_PERSON,
            target: person.0,
        });
        let groups = self.groups.iter().map(|group| Link {
            kind: SHARED_WITH_GROUP,
            target: *group,
        });
        people.chain(groups).collect()
    }

    fn document(&self) -> Result<Document, SharingError> {
        Ok(Document {
            kind: DocumentKind::Share,
            id: self.id,
            person: self.owner,
            name: None,
            body: body_of(&self.terms)?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: None,
        })
    }

    fn without(&self, grantee: Grantee) -> Self {
        let mut less = self.clone();
        match grantee {
            Grantee::Person(person) => less.people.retain(|one| *one != person),
            Grantee::Group(group) => less.groups.retain(|one| *one != group),
        }
        less
    }
}

impl Sharing {
    /// Creates a share of `owner`, whose token calls them `called`.
    pub async fn create_share(
        &self,
        types: &Types,
        owner: PersonId,
        called: Option<&str>,
        change: ShareChange,
    ) -> Result<Share, SharingError> {
        let now = self.clock.now();
        let mut faults = Vec::new();
        if change.name.is_none() {
            faults.push(Fault::new(
                ["body", "datashare_name"],
                "missing",
                "this member is required",
            ));
        }
        let nobody = |count: Option<usize>| count.unwrap_or_default() == 0;
        if nobody(change.people.as_ref().map(Vec::len)) && nobody(change.groups.as_ref().map(Vec::len)) {
            let message = "name somebody, here or in group_permissions";
            faults.push(Fault::new(["body", "permissions"], "value_error", message));
        }
        let terms = Terms {
            user_name: called.map(str::to_owned),
            ..Terms::default()
        };
        let empty = Share {
            id: self.ids.next(),
            owner,
            terms,
            people: Vec::new(),
            groups: Vec::new(),
            created_at: now,
            updated_at: now,
            version: 1,
        };
        let share = self.amended(types, &empty, change, faults).await?;
        self.refuse_beyond_limit(owner).await?;
        let insert = Change::Insert {
            document: share.document()?,
            links: share.links(),
            limit: self.limits.shares,
        };
        let entry = (owner, ShareEvent::Created, Receivers::Told);
        self.logged(&share, entry, insert).await?;
        Ok(share)
    }

    /// Refuses one more share before it is logged, or refused ones would fill the log. Of several at once the
    /// change itself refuses those beyond the limit.
    async fn refuse_beyond_limit(&self, owner: PersonId) -> Result<(), SharingError> {
        let (kind, limit) = (DocumentKind::Share, self.limits.shares);
        let counts = self.catalog.document_counts(owner).await?;
        let is_reached = counts
            .iter()
            .any(|(counted, count)| *counted == kind && *count >= limit);
        if is_reached {
            Err(LimitReached { kind, limit }.into())
        } else {
            Ok(())
        }
    }

    /// The shares of `owner`, oldest first.
    pub async fn shares_of(&self, owner: PersonId) -> Result<Vec<Share>, SharingError> {
        let documents = self.catalog.documents_of(owner, DocumentKind::Share).await?;
        self.with_grantees(documents).await
    }

    /// One share of `owner`.
    pub async fn share(&self, owner: PersonId, id: Uuid) -> Result<Share, SharingError> {
        let found = self.catalog.document(DocumentKind::Share, id).await?;
        let found = found.filter(|share| share.person == owner);
        let mut found = self.with_grantees(found.into_iter().collect()).await?;
        found.pop().ok_or(SharingError::Unknown("data share"))
    }

    /// Changes a share, or nothing if any part of the change is wrong.
    pub async fn change_share(
        &self,
        types: &Types,
        owner: PersonId,
        id: Uuid,
        change: ShareChange,
        condition: &Condition,
    ) -> Result<Share, SharingError> {
        repeat_while_overtaken(|| async {
            let before = self.share(owner, id).await?;
            condition.hold().await?;
            let mut after = self.amended(types, &before, change.clone(), Vec::new()).await?;
            self.replace(&before, &mut after, owner, ShareEvent::Changed)
                .await?;
            Ok(after)
        })
        .await
    }

    /// Revokes a share for everybody.
    pub async fn remove_share(
        &self,
        owner: PersonId,
        id: Uuid,
        condition: &Condition,
    ) -> Result<(), SharingError> {
        repeat_while_overtaken(|| async {
            let share = self.share(owner, id).await?;
            condition.hold().await?;
            let remove = Change::remove(DocumentKind::Share, id, owner, share.version);
            let entry = (owner, ShareEvent::Removed, Receivers::Told);
            self.logged(&share, entry, remove).await
        })
        .await
    }

    /// Revokes a share for one receiver on behalf of `actor`: the receiver, or the owner.
    pub(super) async fn end_grant(
        &self,
        owner: PersonId,
        id: Uuid,
        grantee: Grantee,
        actor: PersonId,
    ) -> Result<(), SharingError> {
        repeat_while_overtaken(|| async {
            let before = self.share(owner, id).await?;
            let mut after = before.without(grantee);
            self.replace(&before, &mut after, actor, ShareEvent::Left).await
        })
        .await
    }

    async fn replace(
        &self,
        before: &Share,
        after: &mut Share,
        actor: PersonId,
        event: ShareEvent,
    ) -> Result<(), SharingError> {
        after.version = before.version + 1;
        after.updated_at = self.clock.now();
        let same = (&before.people, &before.groups) == (&after.people, &after.groups);
        let update = Change::Update {
            document: after.document()?,
            expected: before.version,
            links: (!same).then(|| after.links()),
        };
        let receivers = if same {
            Receivers::AsBefore
        } else {
            Receivers::Told
        };
        self.logged(after, (actor, event, receivers), update).await
    }

    /// Makes a change that is logged beforehand as what somebody does, and then logs the outcome.
    async fn logged(
        &self,
        share: &Share,
        (actor, event, receivers): (PersonId, ShareEvent, Receivers),
        change: Change,
    ) -> Result<(), SharingError> {
        let mut about = json!({
            "event": event.as_str(),
            "datashare_id": share.id,
            "terms": share.terms,
        });
        if receivers == Receivers::Told {
            about["allowed_svc_userids"] = json!(share.people);
            about["allowed_group_ids"] = json!(share.groups);
        }
        // A person who shares before anything else of theirs is stored is not known yet.
        self.catalog.ensure_person(share.owner, None).await?;
        let entry = self.log.begin(share.owner, actor, about.to_string()).await?;
        let outcome = self.catalog.change_documents(vec![change]).await;
        if let Some(known) = known_outcome(&outcome) {
            self.log.end(entry, None, known);
        }
        done(&outcome?)
    }

    /// The share with `change` applied.
    async fn amended(
        &self,
        types: &Types,
        before: &Share,
        change: ShareChange,
        mut faults: Vec<Fault>,
    ) -> Result<Share, SharingError> {
        let mut share = before.clone();
        let terms = &mut share.terms;
        if let Some(name) = change.name {
            check_name(&mut faults, "datashare_name", &name);
            terms.name = composed(&name).into_owned();
        }
        if let Some(name) = change.user_name {
            faults.extend(fault_of(
                &["body".into(), "svc_user_name".into()],
                &name,
                LONGEST_LINE,
            ));
            terms.user_name = Some(composed(&name).into_owned());
        }
        if let Some(listed) = change.data_types {
            terms.data_types = spelt(self, types, before.owner, &listed, &mut faults).await?;
        }
        terms.share_all_data = change.share_all_data.unwrap_or(terms.share_all_data);
        terms.time_start = change.time_start.unwrap_or(terms.time_start);
        terms.time_end = change.time_end.unwrap_or(terms.time_end);
        check_window(&mut faults, terms.time_start, terms.time_end);
        if let Some(people) = change.people {
            share.people = sorted_once(people);
        }
        let known: BTreeSet<Uuid> = before.groups.iter().copied().collect();
        if let Some(groups) = change.groups {
            share.groups = sorted_once(groups);
        }
        if share.people.len() + share.groups.len() > MOST_GRANTEES {
            let message = format!("a share can be given to {MOST_GRANTEES} people and groups at most");
            faults.push(Fault::new(["body", "permissions"], "too_long", message));
        }
        if !faults.is_empty() {
            return Err(SharingError::Invalid(first_of(faults, "body")));
        }
        for group in share.groups.iter().filter(|group| !known.contains(group)) {
            if self.visible_group(before.owner, *group).await?.is_none() {
                return Err(SharingError::UnknownGroup(*group));
            }
        }
        Ok(share)
    }

    async fn with_grantees(&self, documents: Vec<Document>) -> Result<Vec<Share>, SharingError> {
        let ids: Vec<Uuid> = documents.iter().map(|document| document.id).collect();
        let mut receivers: HashMap<Uuid, (Vec<PersonId>, Vec<Uuid>)> = HashMap::new();
        for link in self.catalog.links_of(&ids).await? {
            let (people, groups) = receivers.entry(link.document).or_default();
            match link.kind.as_str() {
                SHARED_WITH_PERSON => people.push(PersonId(link.target)),
                SHARED_WITH_GROUP => groups.push(link.target),
                _ => {}
            }
        }
        let mut shares = Vec::with_capacity(documents.len());
        for document in documents {
            let (people, groups) = receivers.remove(&document.id).unwrap_or_default();
            shares.push(Share {
                id: document.id,
                owner: document.person,
                people,
                groups,
                terms: Terms::of(&document)?,
                created_at: document.created_at,
                updated_at: document.updated_at,
                version: document.version,
            });
        }
        Ok(shares)
    }
}

fn sorted_once<T: Ord>(ids: Vec<T>) -> Vec<T> {
    ids.into_iter().collect::<BTreeSet<T>>().into_iter().collect()
}

/// What the log says of a change of a share, if that is known. Otherwise the entry stays begun.
const fn known_outcome(changed: &Result<Changed, CatalogError>) -> Option<&'static str> {
    match changed {
        Ok(Changed::Done) => Some("done"),
        Err(CatalogError::Unknown { .. }) => None,
        Ok(_) | Err(_) => Some("refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_may_have_happened_is_not_called_refused() {
        let detail = || "the connection was lost".to_owned();
        let lost = Err(CatalogError::Unknown { detail: detail() });
        let failed = Err(CatalogError::Unavailable { detail: detail() });
        assert_eq!(known_outcome(&lost), None);
        assert_eq!(known_outcome(&failed), Some("refused"));
        assert_eq!(known_outcome(&Ok(Changed::Overtaken)), Some("refused"));
        assert_eq!(known_outcome(&Ok(Changed::Done)), Some("done"));
    }
}
