//! Commits what was prepared: several people together, one alone, or one with everybody else kept out.

use std::time::Instant as Moment;

use crate::catalog::CatalogError;
use crate::catalog::records::{Commit, Stamp};

use super::committer::{CommitError, Committer, GroupOutcome, GroupReport};
use super::work::{PersonCommit, Prepared};

/// How a job left a step.
pub(super) enum StepOutcome {
    /// Every result in it is known.
    Done(PersonCommit),
    /// To be committed together with others.
    Prepared(PersonCommit, Prepared),
    /// Somebody else came first; the job has to be prepared again.
    Overtaken(PersonCommit),
    /// The job failed; some of its requests may not be to blame.
    Failed(PersonCommit, CommitError),
}

impl Committer {
    pub(super) async fn prepare_job(&self, mut job: PersonCommit) -> StepOutcome {
        match self.prepare(&mut job).await {
            Ok(Some(prepared)) => StepOutcome::Prepared(job, prepared),
            Ok(None) => StepOutcome::Done(job),
            Err(error) => failed(job, error),
        }
    }

    /// Commits several jobs in one transaction. If that fails, they come back unchanged.
    pub(super) async fn commit_together(&self, jobs: Vec<(PersonCommit, Prepared)>) -> Vec<StepOutcome> {
        let begun = Moment::now();
        let mut commit = Commit::default();
        for (_, prepared) in &jobs {
            commit.changes.extend(prepared.commit.changes.iter().cloned());
            commit.gathered.extend(prepared.commit.gathered.iter().cloned());
            commit.unchanged.extend(prepared.commit.unchanged.iter().cloned());
            commit.uploads.extend(prepared.commit.uploads.iter().cloned());
            commit.sources.extend(prepared.commit.sources.iter().cloned());
        }
        let outcome = self.catalog.commit_together(&commit).await;
        match outcome {
            Ok(Some(stamps)) => {
                self.count(begun, &commit, jobs.len(), GroupOutcome::Committed);
                let mut stamps = stamps.into_iter();
                jobs.into_iter()
                    .map(|(job, prepared)| self.done(job, prepared, &mut stamps))
                    .collect()
            }
            // None of these jobs is to blame, and each alone would fail the same way.
            Err(
                error @ (CatalogError::Unknown { .. }
                | CatalogError::Unavailable { .. }
                | CatalogError::Full { .. }),
            ) => {
                self.count(begun, &commit, jobs.len(), GroupOutcome::Failed);
                let error = CommitError::from(error);
                jobs.into_iter()
                    .map(|(mut job, _)| {
                        job.conclude(&Err(error.clone()));
                        StepOutcome::Done(job)
                    })
                    .collect()
            }
            outcome => match <[(PersonCommit, Prepared); 1]>::try_from(jobs) {
                Ok([(job, prepared)]) => vec![self.alone_anyway(begun, job, prepared, outcome)],
                Err(jobs) => jobs
                    .into_iter()
                    .map(|(job, prepared)| StepOutcome::Prepared(job, prepared))
                    .collect(),
            },
        }
    }

    /// The outcome of a group of one that was not committed. If it needs a lock, it waits where it delays
    /// nobody.
    fn alone_anyway(
        &self,
        begun: Moment,
        mut job: PersonCommit,
        prepared: Prepared,
        outcome: Result<Option<Vec<Stamp>>, CatalogError>,
    ) -> StepOutcome {
        match outcome {
            Ok(Some(stamps)) => self.done(job, prepared, &mut stamps.into_iter()),
            Ok(None) => {
                job.overtaken += 1;
                let overtaken = GroupOutcome::Overtaken(job.overtaken);
                self.count(begun, &prepared.commit, 1, overtaken);
                StepOutcome::Overtaken(job)
            }
            Err(CatalogError::Contended { .. }) => StepOutcome::Prepared(job, prepared),
            Err(error) => failed(job, error.into()),
        }
    }

    /// Commits one job.
    pub(super) async fn commit_alone(&self, mut job: PersonCommit, prepared: Prepared) -> StepOutcome {
        let begun = Moment::now();
        let outcome = self.catalog.commit_stamped(&prepared.commit).await;
        let counted = match &outcome {
            Ok(Some(_)) => GroupOutcome::Committed,
            Ok(None) => {
                job.overtaken += 1;
                GroupOutcome::Overtaken(job.overtaken)
            }
            Err(_) => GroupOutcome::Failed,
        };
        self.count(begun, &prepared.commit, 1, counted);
        match outcome {
            Ok(Some(stamps)) => self.done(job, prepared, &mut stamps.into_iter()),
            Ok(None) => StepOutcome::Overtaken(job),
            Err(error) => failed(job, error.into()),
        }
    }

    /// Prepares and commits one job while nobody else can change the person's data.
    pub(super) async fn commit_held(&self, mut job: PersonCommit) -> StepOutcome {
        let begun = Moment::now();
        let hold = match self.catalog.hold(job.person).await {
            Ok(hold) => hold,
            Err(error) => return failed(job, error.into()),
        };
        let prepared = match self.prepare(&mut job).await {
            Ok(Some(prepared)) => prepared,
            outcome => {
                if let Err(error) = hold.give_back().await {
                    tracing::debug!(%error, "a person who was held is let go when the connection ends");
                }
                return match outcome {
                    Err(error) => failed(job, error),
                    Ok(_) => StepOutcome::Done(job),
                };
            }
        };
        let outcome = self.catalog.commit_held(hold, &prepared.commit).await;
        let counted = match &outcome {
            Ok(Some(_)) => GroupOutcome::Committed,
            Ok(None) | Err(_) => GroupOutcome::Failed,
        };
        self.count(begun, &prepared.commit, 1, counted);
        match outcome {
            Ok(Some(stamps)) => self.done(job, prepared, &mut stamps.into_iter()),
            Ok(None) => {
                let reason = "other writers keep changing the same records".to_owned();
                failed(job, CommitError::Unavailable(reason))
            }
            Err(error) => failed(job, error.into()),
        }
    }

    /// `stamps` begins with those of the partitions that the job changed.
    fn done(
        &self,
        mut job: PersonCommit,
        prepared: Prepared,
        stamps: &mut impl Iterator<Item = Stamp>,
    ) -> StepOutcome {
        for (added, stamp) in prepared.added.into_iter().zip(stamps) {
            let snapshots = &self.shared.stores.snapshots;
            let gathered = added.gathered.as_ref();
            let gathered = gathered.map_or(&[][..], |gathered| &gathered.pieces);
            snapshots.committed(&added.change, added.rows, gathered, stamp);
        }
        job.conclude(&Ok(()));
        StepOutcome::Done(job)
    }

    fn count(&self, begun: Moment, commit: &Commit, jobs: usize, outcome: GroupOutcome) {
        let pieces = || commit.changes.iter().flat_map(|change| &change.add);
        (self.report)(GroupReport {
            requests: commit.uploads.len().max(jobs),
            rows: pieces().map(|piece| piece.rows).sum(),
            bytes: pieces().map(|piece| piece.bytes).sum(),
            elapsed: begun.elapsed(),
            outcome,
        });
    }
}

/// An unknown outcome must not be retried, because the commit may have happened; and where the store fails,
/// trying each request individually helps nobody.
fn failed(mut job: PersonCommit, error: CommitError) -> StepOutcome {
    if matches!(error, CommitError::Corrupt(_) | CommitError::Broken(_)) {
        return StepOutcome::Failed(job, error);
    }
    job.conclude(&Err(error));
    StepOutcome::Done(job)
}
