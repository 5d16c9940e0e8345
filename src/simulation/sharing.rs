//! What people share, and what others see of it: nothing that no grant covered at any moment of the read.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::answer::{Answer, Shown};
use super::history::{Key, Token};
use super::node::Node;
use super::records::{TYPES, person, start_of, type_ids};
use super::requests;
use crate::auth::grants::Denied;
use crate::auth::tokens::Reader;
use crate::catalog::CatalogError;
use crate::model::time::{Instant, TimeRange};
use crate::people::condition::Condition;
use crate::people::sharing::SharingError;
use crate::people::sharing::shares::ShareChange;

/// What a share says: one type or all, and from when to when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub owner: usize,
    pub reader: usize,
    pub types: Vec<usize>,
    pub start: i64,
    pub end: i64,
}

impl Terms {
    fn covers(&self, data_type: usize, token: Token) -> bool {
        self.types.contains(&data_type) && (self.start..self.end).contains(&start_of(token))
    }

    pub(super) fn change(&self) -> ShareChange {
        let named = self.types.iter().map(|data_type| TYPES[*data_type].to_owned());
        ShareChange {
            name: Some("share".to_owned()),
            data_types: Some(named.collect()),
            time_start: Some(Some(Instant::from_micros(self.start))),
            time_end: Some(Some(Instant::from_micros(self.end))),
            people: Some(vec![person(self.reader)]),
            ..ShareChange::default()
        }
    }
}

/// What a request does to shares.
#[derive(Clone, Debug)]
pub(super) enum Sharing {
    Gives(Terms),
    Changes(Uuid, Terms),
    TakesBack(Uuid),
}

/// Terms that hold from some moment to some other, as far as their owner knows.
#[derive(Clone, Debug)]
struct Version {
    share: Option<Uuid>,
    /// The request that brought it.
    by: u64,
    terms: Terms,
    /// It surely holds from here on.
    surely_since: Option<u64>,
    /// It may be over from here on, and surely is from there on.
    until: Option<u64>,
    surely_until: Option<u64>,
}

/// All shares that there are or were.
#[derive(Debug, Default)]
pub(super) struct Shares {
    versions: Vec<Version>,
    /// Requests that are not over, or of which nobody knows how they ended.
    asked: BTreeMap<u64, Sharing>,
}

impl Shares {
    /// Shares that their owners know of, with their owners.
    pub(super) fn known(&self) -> Vec<(Uuid, Terms)> {
        let known = self.versions.iter().filter(|version| version.until.is_none());
        known
            .filter(|version| version.surely_since.is_some())
            .filter_map(|version| Some((version.share?, version.terms.clone())))
            .collect()
    }

    pub(super) fn begins(&mut self, request: u64, sharing: &Sharing, now: u64) {
        let (share, terms) = match sharing {
            Sharing::Gives(terms) => (None, Some(terms)),
            Sharing::Changes(share, terms) => (Some(*share), Some(terms)),
            Sharing::TakesBack(share) => (Some(*share), None),
        };
        for version in self
            .versions
            .iter_mut()
            .filter(|version| share.is_some() && version.share == share)
        {
            version.until.get_or_insert(now);
        }
        if let Some(terms) = terms {
            self.versions.push(Version {
                share,
                by: request,
                terms: terms.clone(),
                surely_since: None,
                until: None,
                surely_until: None,
            });
        }
        self.asked.insert(request, sharing.clone());
    }

    /// It was done; `share`: what was given.
    pub(super) fn done(&mut self, request: u64, share: Uuid, now: u64) {
        let others = self.is_changed_by_others(share, request);
        for version in &mut self.versions {
            if version.by == request {
                version.share = Some(share);
                version.surely_since = Some(now).filter(|_| !others);
            } else if version.share == Some(share) && !others {
                version.surely_until.get_or_insert(now);
            }
        }
        self.asked.remove(&request);
    }

    /// It certainly did not happen.
    pub(super) fn refused(&mut self, request: u64) {
        self.versions.retain(|version| version.by != request);
        self.asked.remove(&request);
    }

    /// Shares may be as they were at any earlier moment.
    pub(super) fn went_back(&mut self) {
        for version in &mut self.versions {
            version.surely_since = None;
            version.surely_until = None;
        }
    }

    /// Whether another request about the share is under way, or nobody knows how it ended.
    fn is_changed_by_others(&self, share: Uuid, request: u64) -> bool {
        self.asked.iter().any(|(other, sharing)| {
            *other != request
                && match sharing {
                    Sharing::Gives(_) => false,
                    Sharing::Changes(of, _) | Sharing::TakesBack(of) => *of == share,
                }
        })
    }

    /// Whether terms that may have held at some moment since `since` cover a row.
    fn may_show(&self, owner: usize, reader: usize, since: u64, (data_type, token): (usize, Token)) -> bool {
        self.versions.iter().any(|version| {
            (version.terms.owner, version.terms.reader) == (owner, reader)
                && version.surely_until.is_none_or(|until| until >= since)
                && version.terms.covers(data_type, token)
        })
    }

    /// Whether terms that surely held all the time from `since` on give a type.
    fn must_show(&self, owner: usize, reader: usize, since: u64, data_type: usize) -> bool {
        self.versions.iter().any(|version| {
            (version.terms.owner, version.terms.reader) == (owner, reader)
                && version.surely_since.is_some_and(|moment| moment < since)
                && version.until.is_none()
                && version.terms.types.contains(&data_type)
        })
    }

    /// What is wrong with what a reader was shown.
    pub(super) fn judge(&self, owner: usize, reader: usize, since: u64, shown: &Shown) -> Result<(), String> {
        for (key, token) in &shown.rows {
            let (Key::Given(data_type, _) | Key::New(data_type, _)) = *key;
            if !self.may_show(owner, reader, since, (data_type, *token)) {
                return Err(format!(
                    "person {reader} was shown {key:?}: {token}, which no grant covered"
                ));
            }
        }
        for (data_type, windows) in shown.windows.iter().enumerate() {
            if windows.is_none() && self.must_show(owner, reader, since, data_type) {
                return Err(format!(
                    "person {reader} was refused {}, which is shared",
                    TYPES[data_type]
                ));
            }
        }
        Ok(())
    }
}

/// A share is given, changed or taken back.
pub(super) async fn share(node: Arc<Node>, owner: usize, sharing: Sharing) -> Answer {
    let owner = person(owner);
    let done = match sharing {
        Sharing::Gives(terms) => {
            let given = node
                .sharing
                .create_share(&node.types, owner, None, terms.change());
            Box::pin(given).await.map(|share| share.id)
        }
        Sharing::Changes(id, terms) => {
            let changed = node
                .sharing
                .change_share(&node.types, owner, id, terms.change(), &Condition::NONE);
            Box::pin(changed).await.map(|share| share.id)
        }
        Sharing::TakesBack(id) => Box::pin(node.sharing.remove_share(owner, id, &Condition::NONE))
            .await
            .map(|()| id),
    };
    match done {
        Ok(share) => Answer::Shared(share),
        Err(SharingError::Catalog(CatalogError::Unknown { detail })) => Answer::Unknown(detail),
        // Another request of the same owner came first.
        Err(error @ (SharingError::Unknown(_) | SharingError::Overtaken)) => {
            Answer::Overtaken(error.to_string())
        }
        Err(error) => Answer::Refused(error.to_string()),
    }
}

/// Reads what somebody shares: the decision, its entry in the owner's log, the rows, and the decision once
/// more.
pub(super) async fn look_at(node: Arc<Node>, owner: usize, reader: usize) -> Answer {
    match Box::pin(shown(&node, owner, reader)).await {
        Ok(answer) => answer,
        Err(error) => Answer::Failed(error),
    }
}

async fn shown(node: &Node, owner: usize, reader: usize) -> Result<Answer, String> {
    let asking = Reader::for_tests(person(reader));
    let mut shown = Shown::default();
    for data_type in type_ids() {
        let decided = node
            .grants
            .windows(&asking, person(owner), &data_type, TimeRange::ALWAYS);
        shown.windows.push(match decided.await {
            Ok(permit) => Some(permit.windows().clone()),
            Err(Denied::Refused(_)) => None,
            Err(error) => return Err(error.to_string()),
        });
    }
    if shown.windows.iter().all(Option::is_none) {
        return Ok(Answer::Shown(shown));
    }
    let log = node.sharing.log();
    let entry = log.begin(person(owner), person(reader), "{}".to_owned()).await;
    let entry = entry.map_err(|error| error.to_string())?;
    let seen = match requests::read_all(node, &node.stores.snapshots, owner).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(wrong)) => return Ok(Answer::Wrong(wrong)),
        Err(error) => return Err(error.to_string()),
    };
    if !node
        .grants
        .still_given(&asking)
        .await
        .map_err(|error| error.to_string())?
    {
        log.end(entry, None, "broken off");
        return Ok(Answer::BrokenOff);
    }
    let mut rows = seen.rows;
    rows.retain(|key, token| shown.opens(*key, *token));
    shown.rows = rows;
    log.end(entry, Some(shown.rows.len() as u64), "done");
    Ok(Answer::Shown(shown))
}
