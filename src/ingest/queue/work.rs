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
pub(super) struct Job {
    pub person: PersonId,
    pub uploads: Vec<Upload>,
    /// The results known so far, by the position of the request.
    pub results: Vec<Option<Result<Receipt, CommitError>>>,
    /// For each request the earlier one that came with the same key, whose outcome it shares unless the key
    /// was accepted before both.
    follows: Vec<Option<usize>>,
    /// The effect of each open request, as it was last prepared.
    effects: Vec<Effect>,
    /// How often somebody else came first.
    pub overtaken: usize,
    /// Whether its rows are in objects already.
    pub is_written: bool,
    /// Bytes of what is asked of all partitions.
    pub bytes: usize,
}

/// The result of preparing a job.
#[derive(Default)]
pub(super) struct Prepared {
    pub commit: Commit,
    pub added: Vec<Assembled>,
}

impl Job {
    pub(super) fn new(person: PersonId, uploads: Vec<Upload>) -> Self {
        Self {
            person,
            results: uploads.iter().map(|_| None).collect(),
            follows: repetitions(&uploads),
            effects: vec![Effect::default(); uploads.len()],
            overtaken: 0,
            is_written: uploads
                .iter()
                .any(|upload| matches!(upload.work, Work::Written(_))),
            bytes: uploads.iter().map(|upload| upload.work.bytes_asked()).sum(),
            uploads,
        }
    }

    /// The requests whose result is not known yet.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.uploads.len())
            .filter(|index| self.results[*index].is_none() && self.follows[*index].is_none())
            .collect()
    }

    /// The stored receipt of a request.
    fn receipt(&self, index: usize) -> UploadReceipt {
        let upload = &self.uploads[index];
        UploadReceipt {
            person: upload.person,
            upload: upload.upload,
            key: upload.key.as_ref().map(|key| (key.key.clone(), key.fingerprint)),
            effect: self.effects[index],
        }
    }

    /// What the requests whose rows are in memory ask of each partition.
    fn grouped(&self, open: &[usize]) -> Vec<GroupedChanges> {
        let mut grouped: Vec<GroupedChanges> = Vec::new();
        for index in open.iter().copied() {
            let Work::Small(partitions) = &self.uploads[index].work else {
                continue;
            };
            for partition in partitions {
                let known = grouped
                    .iter()
                    .position(|known| known.data_type == partition.data_type);
                let known = known.unwrap_or_else(|| {
                    grouped.push(GroupedChanges {
                        person: self.person,
                        data_type: partition.data_type.clone(),
                        layout: Arc::clone(&partition.layout),
                        asked: OrderedChanges::default(),
                    });
                    grouped.len() - 1
                });
                grouped[known].add(index, partition);
            }
        }
        grouped
    }

    /// Gives all open requests this outcome.
    pub(super) fn conclude(&mut self, outcome: &Result<(), CommitError>) {
        for index in self.open() {
            let (upload, effect) = (self.uploads[index].upload, self.effects[index]);
            self.results[index] = Some(outcome.clone().map(|()| Receipt {
                upload,
                repeated: false,
                effect: Some(effect),
            }));
        }
    }

    /// One result for each request, in order.
    pub(super) fn answers(mut self) -> Vec<Result<Receipt, CommitError>> {
        let fingerprint = |upload: &Upload| upload.key.as_ref().map(|key| key.fingerprint);
        for (index, first) in self.follows.iter().enumerate() {
            let Some(first) = first.filter(|_| self.results[index].is_none()) else {
                continue;
            };
            let is_same = fingerprint(&self.uploads[index]) == fingerprint(&self.uploads[first]);
            self.results[index] = match self.results[first].clone() {
                Some(Ok(receipt)) if is_same => Some(Ok(Receipt {
                    repeated: true,
                    ..receipt
                })),
                Some(Ok(_)) => Some(Err(CommitError::KeyReused)),
                // The key remains unused.
                failed => failed,
            };
        }
        let unsettled = || Err(CommitError::Broken("a request was forgotten".to_owned()));
        self.results
            .into_iter()
            .map(|result| result.unwrap_or_else(unsettled))
            .collect()
    }
}

impl Committer {
    /// Works out what a job does to the catalogue as it is now. `None` if everything in it is answered
    /// already.
    pub(super) async fn prepare(&self, job: &mut Job) -> Result<Option<Prepared>, CommitError> {
        self.answer_repeated(job).await;
        let open = job.open();
        if open.is_empty() {
            return Ok(None);
        }
        let mut prepared = Prepared::default();
        for index in open.iter().copied() {
            job.effects[index] = Effect::default();
            let sources = job.uploads[index].sources.iter().cloned();
            prepared.commit.sources.extend(sources);
        }
        self.add_written(job, &open, &mut prepared).await?;
        self.merge_small(job, &open, &mut prepared).await?;
        complete(&mut prepared, open.into_iter().map(|index| job.receipt(index)));
        Ok(Some(prepared))
    }

    /// Adds the changes of requests whose rows are in objects already.
    async fn add_written(
        &self,
        job: &mut Job,
        open: &[usize],
        prepared: &mut Prepared,
    ) -> Result<(), CommitError> {
        for index in open.iter().copied() {
            let upload = &mut job.uploads[index];
            if let Work::Written(written) = &mut upload.work {
                let added = assemble::written(&self.shared, upload.person, written).await?;
                job.effects[index] = written.effect();
                prepared.added.push(added);
            }
        }
        Ok(())
    }

    /// Adds the changes of all other requests, of which those of one partition become one.
    async fn merge_small(
        &self,
        job: &mut Job,
        open: &[usize],
        prepared: &mut Prepared,
    ) -> Result<(), CommitError> {
        // Where other processes write as well, the state in memory would be outdated too often.
        let looks = if job.overtaken == 0 && self.catalog.is_written_by_the_caller() {
            Looks::AtMemory
        } else {
            Looks::AtCatalogue
        };
        for grouped in job.grouped(open) {
            let piece = PieceId(self.shared.ids.next());
            let merged = assemble::tail_change(&self.shared.stores, looks, piece, grouped).await?;
            prepared.added.extend(merged.added);
            prepared.commit.unchanged.extend(merged.unchanged);
            for (effect, more) in job.effects.iter_mut().zip(merged.effects) {
                effect.add(more);
            }
        }
        Ok(())
    }

    /// Answers requests whose key was accepted before, by this node or another.
    async fn answer_repeated(&self, job: &mut Job) {
        for (index, upload) in job.uploads.iter().enumerate() {
            let Some(key) = upload.key.as_ref().filter(|_| job.results[index].is_none()) else {
                continue;
            };
            match self.catalog.upload_for_key(upload.person, &key.key).await {
                Ok(Some(kept)) if kept.fingerprint == key.fingerprint => {
                    job.results[index] = Some(Ok(Receipt {
                        upload: kept.upload,
                        repeated: true,
                        effect: kept.effect,
                    }));
                }
                Ok(Some(_)) => job.results[index] = Some(Err(CommitError::KeyReused)),
                Ok(None) => {}
                Err(error) => job.results[index] = Some(Err(error.into())),
            }
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

    fn job(fingerprints: &[u8]) -> Job {
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
        Job::new(person, fingerprints.iter().map(upload).collect())
    }

    fn told(job: Job) -> Vec<String> {
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
        let repeated = true;
        let upload = ACCEPTED;
        job.results = vec![
            Some(Err(CommitError::KeyReused)),
            Some(Ok(Receipt {
                upload,
                repeated,
                effect: None,
            })),
        ];
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
