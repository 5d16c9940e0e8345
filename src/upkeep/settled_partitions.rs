//! What compaction remembers of partitions from one round to the next: one in which there is nothing to do,
//! or nothing that can be done, is left alone until it changes. With a new year there may be something to do
//! without any change.
//!
//! Lives as long as the process, and has an entry only for partitions that may need compaction. Knows how an
//! attempt ended; must not know how partitions are compacted, or who is told.

use std::collections::{BTreeMap, HashMap};

use super::past_years::MergeOutcome;
use super::stores::PartitionKey;
use crate::catalog::records::CompactionCandidate;
use crate::store::StoreError;

/// Partitions that compaction looked at.
#[derive(Clone, Debug, Default)]
pub struct SettledPartitions(HashMap<PartitionKey, LookedAt>);

/// How a partition was when compaction looked at it, and how it was left.
#[derive(Clone, Copy, Debug)]
struct LookedAt {
    version: i64,
    /// The year in which that was.
    year: Option<i32>,
    left: CompactionOutcome,
}

/// How compaction left a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompactionOutcome {
    /// There was nothing to do.
    Done,
    /// It is damaged, or cannot be compacted as it is, so another attempt would only fail again.
    Damaged,
    /// It failed for a reason that may pass.
    Failed,
}

impl SettledPartitions {
    /// The candidates to look at now, in this year, with their versions. Those that failed come last: however
    /// many of them end a round, the others have had their turn. Forgets what was known of other versions.
    pub fn open(
        &mut self,
        candidates: Vec<CompactionCandidate>,
        year: Option<i32>,
    ) -> Vec<(PartitionKey, i64)> {
        let candidates: BTreeMap<PartitionKey, i64> = candidates
            .into_iter()
            .map(|candidate| {
                let key = PartitionKey {
                    person: candidate.person,
                    data_type: candidate.data_type,
                };
                (key, candidate.version)
            })
            .collect();
        self.0.retain(|key, seen| {
            candidates.get(key) == Some(&seen.version)
                && (seen.year == year || seen.left != CompactionOutcome::Done)
        });
        let (failed, others): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .filter(|(key, _)| {
                !matches!(
                    self.left(key),
                    Some(CompactionOutcome::Done | CompactionOutcome::Damaged)
                )
            })
            .partition(|(key, _)| self.left(key) == Some(CompactionOutcome::Failed));
        others.into_iter().chain(failed).collect()
    }

    /// Partitions that are left alone although there may be something to do.
    pub fn damaged(&self) -> impl Iterator<Item = &PartitionKey> {
        self.0
            .iter()
            .filter(|(_, seen)| seen.left == CompactionOutcome::Damaged)
            .map(|(key, _)| key)
    }

    /// Notes how an attempt on a partition ended that had `version` before, and was begun in `year`.
    pub fn note(
        &mut self,
        key: &PartitionKey,
        version: i64,
        year: Option<i32>,
        outcome: &Result<MergeOutcome, StoreError>,
    ) {
        let left = match outcome {
            Ok(MergeOutcome::Nothing) => CompactionOutcome::Done,
            Ok(MergeOutcome::Some | MergeOutcome::Later) => {
                self.0.remove(key);
                return;
            }
            Err(error) if error.may_pass() => CompactionOutcome::Failed,
            Err(_) => CompactionOutcome::Damaged,
        };
        let seen = LookedAt { version, year, left };
        self.0.insert(key.clone(), seen);
    }

    fn left(&self, key: &PartitionKey) -> Option<CompactionOutcome> {
        self.0.get(key).map(|seen| seen.left)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::catalog::CatalogError;
    use crate::model::ids::PersonId;
    use crate::model::registry::TypeId;

    fn key(person: u128) -> PartitionKey {
        PartitionKey {
            person: PersonId(Uuid::from_u128(person)),
            data_type: TypeId::new("HeartRate"),
        }
    }

    const YEAR: Option<i32> = Some(2024);

    /// The people with open partitions, of people with these versions of theirs.
    fn open(settled: &mut SettledPartitions, versions: &[(u128, i64)]) -> Vec<u128> {
        open_in(settled, YEAR, versions)
    }

    fn open_in(settled: &mut SettledPartitions, year: Option<i32>, versions: &[(u128, i64)]) -> Vec<u128> {
        let candidates = versions.iter().map(|(person, version)| CompactionCandidate {
            person: key(*person).person,
            data_type: key(*person).data_type,
            version: *version,
        });
        let open = settled.open(candidates.collect(), year);
        open.iter().map(|(key, _)| key.person.0.as_u128()).collect()
    }

    fn damaged(settled: &SettledPartitions) -> Vec<u128> {
        settled.damaged().map(|key| key.person.0.as_u128()).collect()
    }

    fn away() -> StoreError {
        StoreError::Unavailable {
            detail: "it is away".to_owned(),
        }
    }

    #[test]
    fn where_there_is_nothing_to_do_nobody_looks_until_it_changes() {
        let mut settled = SettledPartitions::default();
        settled.note(&key(1), 5, YEAR, &Ok(MergeOutcome::Nothing));
        settled.note(&key(2), 5, YEAR, &Ok(MergeOutcome::Later));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5), (3, 5)]), [2, 3]);
        assert_eq!(open(&mut settled, &[(1, 6), (2, 5)]), [1, 2]);
        assert_eq!(open(&mut settled, &[(1, 5)]), [1], "that version is forgotten");
    }

    #[test]
    fn in_another_year_there_may_be_something_to_do() {
        let mut settled = SettledPartitions::default();
        settled.note(&key(1), 5, YEAR, &Ok(MergeOutcome::Nothing));
        settled.note(&key(2), 5, YEAR, &Err(StoreError::corrupt("a page")));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5)]), Vec::<u128>::new());
        assert_eq!(open_in(&mut settled, Some(2025), &[(1, 5), (2, 5)]), [1]);
        assert_eq!(damaged(&settled), [2]);
    }

    #[test]
    fn what_is_damaged_is_left_alone_and_known_until_it_changes() {
        let mut settled = SettledPartitions::default();
        settled.note(&key(1), 5, YEAR, &Err(StoreError::corrupt("a page")));
        let what = "a row".to_owned();
        settled.note(&key(2), 5, YEAR, &Err(CatalogError::Corrupt { what }.into()));
        let path = "data/lost".to_owned();
        settled.note(&key(3), 5, YEAR, &Err(StoreError::Missing { path }));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5), (3, 5), (4, 1)]), [4]);
        let mut known = damaged(&settled);
        known.sort_unstable();
        assert_eq!(known, [1, 2, 3]);
        assert_eq!(open(&mut settled, &[(1, 6), (3, 5)]), [1]);
        assert_eq!(damaged(&settled), [3]);
        assert_eq!(open(&mut settled, &[]), Vec::<u128>::new());
        assert_eq!(damaged(&settled), Vec::<u128>::new());
    }

    #[test]
    fn what_may_pass_is_tried_again_after_all_others() {
        let mut settled = SettledPartitions::default();
        let busy = CatalogError::Contended {
            detail: "others use it".to_owned(),
        };
        settled.note(&key(1), 5, YEAR, &Err(away()));
        settled.note(&key(2), 5, YEAR, &Err(busy.into()));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5), (3, 5)]), [3, 1, 2]);
        assert_eq!(damaged(&settled), Vec::<u128>::new());
        settled.note(&key(1), 5, YEAR, &Ok(MergeOutcome::Some));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5), (3, 5)]), [1, 3, 2]);
        settled.note(&key(2), 5, YEAR, &Ok(MergeOutcome::Nothing));
        assert_eq!(open(&mut settled, &[(1, 5), (2, 5), (3, 5)]), [1, 3]);
    }
}
