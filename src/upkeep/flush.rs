//! Flush: turns the tail of a partition into objects, one per calendar year.

use std::collections::HashMap;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::merge_pieces::living;
use super::settings::UpkeepSettings;
use super::stores::{Input, PartitionKey, UpkeepStores};
use crate::catalog::records::{CommitOutcome, Piece, Place, TailBacklog};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::arrange::{united, with_columns};
use crate::store::blocking::run_blocking;
use crate::store::piece::{Target, write_batch};
use crate::store::tail;

/// A tail of at least this many pieces slows down every read of its partition.
const MOST_PIECES: i64 = 256;
/// A tail whose rows take this many times the flush size in memory is flushed, however well it is compressed.
const MOST_EXPANDED: i64 = 4;
/// How many bytes the rows of all tails together may take. A question about a tail reads all of it, and keeps
/// it in memory while there is room. With larger tails, each question would read its own again.
const ALL_EXPANDED: i64 = 16 << 20;
/// When all tails together are too large, those with fewer bytes of rows are still left to wait: they are
/// read in no time, and would become objects hardly larger than their metadata.
const LEAST_EXPANDED: i64 = 64 << 10;
/// How many bytes of rows in memory are flushed at once. More are flushed in several steps.
const AT_ONCE: usize = 8 << 20;
/// How many people's tails are flushed at once while their rows fit into that. Most of the time that a small
/// tail takes is waiting, for the disk or for a store that is far away.
pub const PEOPLE_AT_ONCE: usize = 8;
/// How often a partition is tried that others keep changing.
const ATTEMPTS: usize = 5;
/// A flush is overtaken when writes merge small pieces. From then on it leaves pieces with fewer rows than
/// the next of these numbers to the writes, except for those that last.
const LEFT_TO_WRITES: [i64; 2] = [256, 4096];
/// Pieces that have been there for so long last: writes do not seem to come near them, because few records
/// are added, or most of the writes replace records of others.
const LASTS: Duration = Duration::from_secs(5);

/// The tails of one person that are to be flushed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTails {
    pub person: PersonId,
    pub partitions: Vec<PartitionKey>,
    /// How many bytes of rows one of them, the largest, has in memory.
    memory: i64,
}

/// How many KiB of rows tails that are flushed at once may have together.
const ROOM: u32 = (AT_ONCE >> 10) as u32;

/// What tails that are flushed at once share.
#[derive(Debug)]
pub struct Room(Semaphore);

impl Default for Room {
    fn default() -> Self {
        Self(Semaphore::new(ROOM as usize))
    }
}

impl Room {
    /// Waits until the tails of `due` fit in, one after the other.
    pub async fn enter(&self, due: &DueTails) -> Option<SemaphorePermit<'_>> {
        let wanted = u32::try_from(due.memory >> 10).unwrap_or(ROOM);
        self.0.acquire_many(wanted.clamp(1, ROOM)).await.ok()
    }
}

/// The tails to flush now, by person: those that have waited long enough or are too large to wait, and the
/// largest of the others if these are too large together.
#[must_use]
pub fn due(backlog: Vec<TailBacklog>, settings: &UpkeepSettings, now: Instant) -> Vec<DueTails> {
    let mut people: Vec<DueTails> = Vec::new();
    let mut places: HashMap<PersonId, usize> = HashMap::new();
    for tail in due_tails(backlog, settings, now) {
        let place = *places.entry(tail.person).or_insert(people.len());
        if place == people.len() {
            people.push(DueTails {
                person: tail.person,
                partitions: Vec::new(),
                memory: 0,
            });
        }
        let due = &mut people[place];
        due.memory = due.memory.max(tail.memory);
        due.partitions.push(PartitionKey {
            person: tail.person,
            data_type: tail.data_type,
        });
    }
    people
}

fn due_tails(backlog: Vec<TailBacklog>, settings: &UpkeepSettings, now: Instant) -> Vec<TailBacklog> {
    let (mut due, mut others): (Vec<_>, Vec<_>) =
        backlog.into_iter().partition(|tail| is_due(tail, settings, now));
    others.sort_by_key(|tail| tail.memory);
    let mut together: i64 = others.iter().map(|tail| tail.memory).sum();
    while together > ALL_EXPANDED
        && let Some(largest) = others.pop_if(|tail| tail.memory >= LEAST_EXPANDED)
    {
        together -= largest.memory;
        due.push(largest);
    }
    due
}

/// Whether a tail has waited long enough, or is too large to wait.
fn is_due(backlog: &TailBacklog, settings: &UpkeepSettings, now: Instant) -> bool {
    let size = i64::try_from(settings.flush_size).unwrap_or(i64::MAX);
    backlog.pieces >= MOST_PIECES
        || backlog.bytes >= size
        || backlog.memory >= size.saturating_mul(MOST_EXPANDED)
        || backlog.oldest <= now.before(settings.flush_age)
        // Written by a node whose clock is ahead of this one.
        || backlog.oldest > now
}

/// Turns the present tail of a partition into objects, in steps that fit into memory. Returns how many tail
/// pieces are gone; zero when there were none, or when others kept changing it.
pub async fn flush(stores: &UpkeepStores, key: &PartitionKey) -> Result<usize, StoreError> {
    let mut overtaken = 0;
    let mut flushed = 0;
    let mut waiting: Option<usize> = None;
    while overtaken < ATTEMPTS {
        let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
        let mut tail: Vec<&Piece> = pieces
            .iter()
            .filter(|piece| matches!(piece.place, Place::Tail { .. }))
            .collect();
        // Pieces that arrive during the work are left for the next round.
        let waiting = waiting.get_or_insert(tail.len());
        if overtaken > 0 {
            let now = stores.catalog.now().await?;
            let lasting = lasting(&tail, overtaken, now);
            if !lasting.is_empty() {
                tail = lasting;
            } else if flushed > 0 {
                // What is left is young and small.
                break;
            }
        }
        if tail.is_empty() || flushed >= *waiting {
            break;
        }
        let Some(part) = read_part(stores, key.person, &tail).await? else {
            overtaken += 1;
            continue;
        };
        let inputs = inputs_of(&part);
        let target = target_of(key, &part);
        let rows = run_blocking(move || living_rows(&part)).await?;
        let output = if rows.num_rows() == 0 {
            Vec::new()
        } else {
            write_batch(stores.objects(), stores.ids.as_ref(), target, &rows).await?
        };
        if stores.replace(key, &inputs, output).await? == CommitOutcome::Done {
            flushed += inputs.len();
        } else {
            overtaken += 1;
        }
    }
    if overtaken == ATTEMPTS {
        let (person, data_type) = (key.person, &key.data_type);
        tracing::debug!(%person, %data_type, flushed, "others keep changing a tail that is flushed");
    }
    Ok(flushed)
}

/// The pieces that a flush can expect to find again when it has read them, after it was overtaken so often.
fn lasting<'p>(tail: &[&'p Piece], overtaken: usize, now: Instant) -> Vec<&'p Piece> {
    // Creation times in the future are from a wrong clock, and say that a piece was there before.
    let age = |piece: &Piece| u128::from(now.micros().abs_diff(piece.created_at.micros()));
    let at_least = |fewest: i64| {
        let lasts = |piece: &&Piece| piece.rows >= fewest || age(piece) >= LASTS.as_micros();
        tail.iter().copied().filter(lasts).collect::<Vec<&Piece>>()
    };
    let by_size = LEFT_TO_WRITES.iter().take(overtaken).rev();
    by_size
        .map(|fewest| at_least(*fewest))
        .find(|lasting| !lasting.is_empty())
        .unwrap_or_default()
}

/// The pieces of a part, as they are replaced.
fn inputs_of(part: &[(Piece, RecordBatch)]) -> Vec<Input> {
    part.iter().map(|(piece, _)| Input::of(piece)).collect()
}

/// What the objects of a part are written for.
fn target_of(key: &PartitionKey, part: &[(Piece, RecordBatch)]) -> Target {
    let versions = part.iter().map(|(piece, _)| piece.layout_version);
    Target {
        person: key.person,
        data_type: key.data_type.clone(),
        layout_version: versions.max().unwrap_or(0),
    }
}

/// As many pieces as fit into memory, at least one, with their rows. `None`: one of them is gone.
async fn read_part(
    stores: &UpkeepStores,
    person: PersonId,
    tail: &[&Piece],
) -> Result<Option<Vec<(Piece, RecordBatch)>>, StoreError> {
    let mut part = Vec::new();
    let mut bytes = 0;
    for piece in tail {
        if bytes >= AT_ONCE {
            break;
        }
        let Some(blob) = stores.catalog.tail_blob(piece.id).await? else {
            return Ok(None);
        };
        let key = stores
            .snapshots
            .opener(person, std::iter::once(blob.as_slice()))
            .await?;
        let piece = (*piece).clone();
        let opened = run_blocking(move || tail::open(&piece, &blob, key.as_ref()).map(|rows| (piece, rows)));
        let (piece, rows) = opened.await?;
        bytes += rows.get_array_memory_size();
        part.push((piece, rows));
    }
    Ok(Some(part))
}

fn living_rows(tail: &[(Piece, RecordBatch)]) -> Result<RecordBatch, StoreError> {
    let schema = united(tail.iter().map(|(_, rows)| rows.schema_ref()))?;
    let batches = tail
        .iter()
        .map(|(piece, rows)| living(&with_columns(rows, &schema)?, &piece.dead))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::model::registry::TypeId;

    const NOW: Instant = Instant::from_micros(1_700_000_000_000_000);

    fn settings() -> UpkeepSettings {
        UpkeepSettings {
            enabled: true,
            interval: Duration::from_secs(1),
            flush_age: Duration::from_mins(10),
            flush_size: 8 << 20,
            grace_period: Duration::from_mins(1),
            search_interval: Duration::from_hours(1),
            purge_deleted_after: Duration::from_hours(1),
            collect_anyway: false,
        }
    }

    /// The tail of a person whose rows take `memory` bytes.
    fn tail(person: usize, memory: i64) -> TailBacklog {
        TailBacklog {
            person: PersonId(Uuid::from_u128(person as u128)),
            data_type: TypeId::new("HeartRate"),
            pieces: 1,
            rows: memory / 64,
            bytes: memory / 4,
            memory,
            oldest: NOW,
        }
    }

    fn people(due: &[DueTails]) -> Vec<u128> {
        due.iter().map(|due| due.person.0.as_u128()).collect()
    }

    #[test]
    fn tails_are_due_by_person_and_take_the_room_of_the_largest() {
        let waited = |person, data_type: &str, memory| TailBacklog {
            data_type: TypeId::new(data_type),
            oldest: Instant::from_micros(0),
            ..tail(person, memory)
        };
        let tails = vec![
            waited(2, "HeartRate", 5),
            waited(1, "StepCount", 7),
            waited(2, "StepCount", 9),
        ];
        let due = due(tails, &settings(), NOW);
        assert_eq!(people(&due), [2, 1], "the longest waiting first");
        let types = |due: &DueTails| {
            due.partitions
                .iter()
                .map(|key| key.data_type.as_str().to_owned())
                .collect()
        };
        assert_eq!(
            due.iter().map(types).collect::<Vec<Vec<String>>>(),
            [vec!["HeartRate", "StepCount"], vec!["StepCount"]]
        );
        assert_eq!(due[0].memory, 9);
    }

    #[tokio::test]
    async fn small_tails_are_flushed_beside_each_other_and_a_large_one_alone() {
        let room = Room::default();
        let of = |memory| DueTails {
            person: PersonId(Uuid::nil()),
            partitions: Vec::new(),
            memory,
        };
        let mib = 1 << 20;
        let (first, second) = (room.enter(&of(0)).await, room.enter(&of(3 * mib)).await);
        assert!(room.enter(&of(400 * mib)).now_or_never().is_none());
        drop((first, second));
        let whole = room.enter(&of(400 * mib)).now_or_never().flatten();
        assert!(whole.is_some());
        assert!(room.enter(&of(0)).now_or_never().is_none());
    }

    #[test]
    fn the_largest_tails_do_not_wait_where_all_are_too_much() {
        let mib = 1 << 20;
        let few = vec![tail(1, 5 * mib), tail(2, 6 * mib), tail(3, 5 * mib)];
        assert!(due(few.clone(), &settings(), NOW).is_empty(), "just enough");
        let more = [few, vec![tail(4, 2 * mib), tail(5, mib)]].concat();
        assert_eq!(people(&due(more, &settings(), NOW)), [2]);
    }

    #[test]
    fn tails_that_waited_do_not_count_among_those_that_are_too_much() {
        let mut waited = tail(1, 15 << 20);
        waited.oldest = Instant::from_micros(NOW.micros() - 601_000_000);
        let tails = vec![waited, tail(2, 10 << 20)];
        assert_eq!(people(&due(tails, &settings(), NOW)), [1]);
    }

    proptest! {
        #[test]
        fn what_is_left_is_little_or_small(
            sizes in prop::collection::vec(prop_oneof![1_i64..100_000, 100_000_i64..4_000_000], 0..300)
        ) {
            let tails: Vec<TailBacklog> =
                sizes.iter().enumerate().map(|(person, memory)| tail(person, *memory)).collect();
            let gone: Vec<usize> =
                people(&due(tails, &settings(), NOW)).into_iter().map(|person| person as usize).collect();
            let is_gone = |person: &usize| gone.contains(person);
            let left: Vec<i64> =
                (0..sizes.len()).filter(|person| !is_gone(person)).map(|person| sizes[person]).collect();
            let together: i64 = left.iter().sum();
            prop_assert!(together <= ALL_EXPANDED || left.iter().all(|size| *size < LEAST_EXPANDED));
            // No more than that was needed, and nothing larger stayed.
            if let Some(last) = gone.last() {
                prop_assert!(together + sizes[*last] > ALL_EXPANDED);
                prop_assert!(left.iter().all(|size| *size <= sizes[*last]));
            }
        }
    }
}
