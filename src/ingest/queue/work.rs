//! Prepares one person's requests for a commit: in the order in which they came, they become one change of
//! the catalogue.
//!
//! A job lives from when its requests are taken out of the line until they are answered.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::catalog::records::{Commit, Effect, UploadReceipt};
use crate::model::ids::{PersonId, PieceId};

use super::super::assemble::{self, Assembled, GroupedChanges, Looks};
use super::super::changes::OrderedChanges;
use super::super::upload::{Upload, Work};
use super::committer::{CommitError, Committer, Receipt};

/// One person's requests on their way to a commit.
pub(super) struct PersonCommit {
    pub person: PersonId,
    /// In the order in which they came.
    requests: Vec<Request>,
    /// How often somebody else came first.
    pub overtaken: usize,
    /// Whether its rows are in objects already.
    pub is_written: bool,
    /// Bytes of what is asked of all partitions.
    pub bytes: usize,
}

/// One request of a job.
struct Request {
    upload: Upload,
    /// The result, once it is known.
    result: Option<Result<Receipt, CommitError>>,
    /// The earlier request that came with the same key, whose outcome this one shares unless the key was
    /// accepted before both.
    follows: Option<usize>,
    /// The effect, as it was last prepared.
    effect: Effect,
}

/// The result of preparing a job.
#[derive(Default)]
pub(super) struct Prepared {
    pub commit: Commit,
    pub added: Vec<Assembled>,
}

impl PersonCommit {
    pub(super) fn new(person: PersonId, uploads: Vec<Upload>) -> Self {
        let is_written = |upload: &Upload| matches!(upload.work, Work::Written(_));
        let follows = repetitions(&uploads);
        Self {
            person,
            overtaken: 0,
            is_written: uploads.iter().any(is_written),
            bytes: uploads.iter().map(|upload| upload.work.bytes_asked()).sum(),
            requests: uploads
                .into_iter()
                .zip(follows)
                .map(|(upload, follows)| Request {
                    upload,
                    result: None,
                    follows,
                    effect: Effect::default(),
                })
                .collect(),
        }
    }

    /// How many requests it has.
    pub(super) const fn len(&self) -> usize {
        self.requests.len()
    }

    /// Its requests, to be tried again.
    pub(super) fn into_uploads(self) -> impl DoubleEndedIterator<Item = Upload> + ExactSizeIterator {
        self.requests.into_iter().map(|request| request.upload)
    }

    /// The requests whose result is not known yet.
    fn open(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.is_open())
    }

    fn open_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.requests.iter_mut().filter(|request| request.is_open())
    }

    /// What the requests whose rows are in memory ask of each partition.
    fn grouped(&self) -> Vec<GroupedChanges> {
        let mut grouped: Vec<GroupedChanges> = Vec::new();
        for (number, request) in self.requests.iter().enumerate() {
            let partitions = match &request.upload.work {
                Work::Small(partitions) if request.is_open() => partitions,
                _ => continue,
            };
            for partition in partitions {
                let mut known = grouped.iter_mut();
                if let Some(known) = known.find(|known| known.data_type == partition.data_type) {
                    known.add(number, partition);
                    continue;
                }
                let mut first = GroupedChanges {
                    person: self.person,
                    data_type: partition.data_type.clone(),
                    layout: Arc::clone(&partition.layout),
                    asked: OrderedChanges::default(),
                };
                first.add(number, partition);
                grouped.push(first);
            }
        }
        grouped
    }

    /// Gives all open requests this outcome.
    pub(super) fn conclude(&mut self, outcome: &Result<(), CommitError>) {
        for request in self.open_mut() {
            request.result = Some(outcome.clone().map(|()| Receipt {
                upload: request.upload.upload,
                repeated: false,
                effect: Some(request.effect),
            }));
        }
    }

    /// One result for each request, in order.
    pub(super) fn answers(self) -> Vec<Result<Receipt, CommitError>> {
        let forgotten = || Err(CommitError::Broken("a request was forgotten".to_owned()));
        let answer = |request: &Request| {
            let own = request.result.clone();
            own.or_else(|| self.shared_result(request))
                .unwrap_or_else(forgotten)
        };
        self.requests.iter().map(answer).collect()
    }

    /// The result of a request that came with the key of an earlier one.
    fn shared_result(&self, request: &Request) -> Option<Result<Receipt, CommitError>> {
        let first = self.requests.get(request.follows?)?;
        Some(match first.result.clone()? {
            Ok(receipt) if first.fingerprint() == request.fingerprint() => Ok(Receipt {
                repeated: true,
                ..receipt
            }),
            Ok(_) => Err(CommitError::KeyReused),
            // The key remains unused.
            failed => failed,
        })
    }
}

impl Request {
    const fn is_open(&self) -> bool {
        self.result.is_none() && self.follows.is_none()
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        self.upload.key.as_ref().map(|key| key.fingerprint)
    }

    /// What is stored of it.
    fn receipt(&self) -> UploadReceipt {
        let upload = &self.upload;
        UploadReceipt {
            person: upload.person,
            upload: upload.upload,
            key: upload.key.as_ref().map(|key| (key.key.clone(), key.fingerprint)),
            effect: self.effect,
        }
    }
}

impl Committer {
    /// Works out what a job does to the catalogue as it is now. `None` if everything in it is answered
    /// already.
    pub(super) async fn prepare(&self, job: &mut PersonCommit) -> Result<Option<Prepared>, CommitError> {
        self.answer_repeated(job).await;
        if job.open().next().is_none() {
            return Ok(None);
        }
        let mut prepared = Prepared::default();
        for request in job.open_mut() {
            request.effect = Effect::default();
            let sources = request.upload.sources.iter().cloned();
            prepared.commit.sources.extend(sources);
        }
        self.add_written(job, &mut prepared).await?;
        self.merge_small(job, &mut prepared).await?;
        complete(&mut prepared, job.open().map(Request::receipt));
        Ok(Some(prepared))
    }

    /// Adds the changes of requests whose rows are in objects already.
    async fn add_written(&self, job: &mut PersonCommit, prepared: &mut Prepared) -> Result<(), CommitError> {
        for Request { upload, effect, .. } in job.open_mut() {
            if let Work::Written(written) = &mut upload.work {
                let added = assemble::written(&self.shared, upload.person, written).await?;
                *effect = written.effect();
                prepared.added.push(added);
            }
        }
        Ok(())
    }

    /// Adds the changes of all other requests, of which those of one partition become one.
    async fn merge_small(&self, job: &mut PersonCommit, prepared: &mut Prepared) -> Result<(), CommitError> {
        // Where other processes write as well, the state in memory would be outdated too often.
        let looks = if job.overtaken == 0 && self.catalog.is_written_by_the_caller() {
            Looks::AtMemory
        } else {
            Looks::AtCatalogue
        };
        for grouped in job.grouped() {
            let piece = PieceId(self.shared.ids.next());
            let merged = assemble::tail_change(&self.shared.stores, looks, piece, grouped).await?;
            prepared.added.extend(merged.added);
            prepared.commit.unchanged.extend(merged.unchanged);
            for (request, more) in job.requests.iter_mut().zip(merged.effects) {
                request.effect.add(more);
            }
        }
        Ok(())
    }

    /// Answers requests whose key was accepted before, by this node or another.
    async fn answer_repeated(&self, job: &mut PersonCommit) {
        for Request { upload, result, .. } in &mut job.requests {
            let Some(key) = upload.key.as_ref().filter(|_| result.is_none()) else {
                continue;
            };
            *result = match self.catalog.upload_for_key(upload.person, &key.key).await {
                Ok(Some(kept)) if kept.fingerprint == key.fingerprint => Some(Ok(Receipt {
                    upload: kept.upload,
                    repeated: true,
                    effect: kept.effect,
                })),
                Ok(Some(_)) => Some(Err(CommitError::KeyReused)),
                Ok(None) => None,
                Err(error) => Some(Err(error.into())),
            };
        }
    }
}

/// Completes the commit with what is added, and names each source once.
fn complete(prepared: &mut Prepared, receipts: impl Iterator<Item = UploadReceipt>) {
    let Prepared { commit, added } = prepared;
    commit.uploads = receipts.collect();
    let mut known = HashSet::new();
    commit.sources.retain(|source| known.insert(source.clone()));
    commit.changes = added.iter().map(|added| added.change.clone()).collect();
    commit.gathered = added.iter().filter_map(|added| added.gathered.clone()).collect();
}

fn repetitions(uploads: &[Upload]) -> Vec<Option<usize>> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    uploads
        .iter()
        .enumerate()
        .map(|(index, upload)| {
            let key = upload.key.as_ref()?;
            match first.entry(key.key.as_str()) {
                Entry::Occupied(earlier) => Some(*earlier.get()),
                Entry::Vacant(slot) => {
                    slot.insert(index);
                    None
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ingest::upload::IdempotencyKey;
    use crate::model::ids::UploadId;

    const ACCEPTED: UploadId = UploadId(Uuid::from_u128(7));

    fn job(fingerprints: &[u8]) -> PersonCommit {
        let person = PersonId(Uuid::from_u128(1));
        let upload = |fingerprint: &u8| Upload {
            person,
            upload: UploadId(Uuid::from_u128(8)),
            key: Some(IdempotencyKey {
                key: "key".to_owned(),
                fingerprint: [*fingerprint; 32],
            }),
            work: Work::Small(Vec::new()),
            sources: Vec::new(),
            memory: None,
            held: None,
        };
        PersonCommit::new(person, fingerprints.iter().map(upload).collect())
    }

    fn told(job: PersonCommit) -> Vec<String> {
        let told = |answer: Result<Receipt, CommitError>| match answer {
            Ok(receipt) if receipt.repeated => "repeated".to_owned(),
            Ok(_) => "done".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        job.answers().into_iter().map(told).collect()
    }

    #[test]
    fn a_repetition_is_known_although_something_else_came_with_its_key_at_the_same_time() {
        let mut job = job(&[2, 1]);
        let accepted = Receipt {
            upload: ACCEPTED,
            repeated: true,
            effect: None,
        };
        let results = [Err(CommitError::KeyReused), Ok(accepted)];
        for (request, result) in job.requests.iter_mut().zip(results) {
            request.result = Some(result);
        }
        assert_eq!(told(job), ["KeyReused", "repeated"]);
    }

    #[test]
    fn a_key_of_a_request_that_failed_is_not_called_used() {
        let mut job = job(&[2, 1, 2]);
        job.conclude(&Err(CommitError::Busy));
        assert_eq!(told(job), ["Busy", "Busy", "Busy"]);
    }

    #[test]
    fn of_several_requests_with_one_key_the_first_is_done() {
        let mut job = job(&[2, 1, 2]);
        job.conclude(&Ok(()));
        assert_eq!(told(job), ["done", "KeyReused", "repeated"]);
    }
}
