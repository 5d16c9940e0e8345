//! The only way for records to get into the catalogue.
//!
//! A commit locks the people it touches in the order of their ids, compares the versions of the partitions it
//! changes, and writes everything with a handful of statements, however many people and partitions there are.
//! It happens completely or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Catalog;
use super::database::{Patience, Session, Value};
use super::dated_ahead::is_ahead;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::lock_people;
use super::orphans::{paths_of, refuse_condemned};
use super::records::{Commit, CommitOutcome, NewPlace, PartitionChange, Stamp};
use super::rows::{DeadRow, Ledger, id, piece_of, piece_values, text};
use super::stored_partitions::{Partitions, current_partitions, store_partitions};
use super::stored_sources::store_sources;
use super::tables::{DEAD_ROWS, PIECES, UPDATES, UPLOADS};
use super::updates::{minute_of, take_minutes_from};
use super::verified_rows::one_of;
use super::witness::Attempts;
use crate::model::ids::{PersonId, PieceId};
use crate::model::time::Instant;

/// Pieces removed by one statement.
const PIECES_AT_ONCE: usize = 64;

impl Catalog {
    /// Makes everything in `commit` durable and visible to every node, or nothing of it. People who are new
    /// are created.
    ///
    /// On `Stale` and on errors nothing happened and nothing will, except on `Unknown`: then the connection
    /// broke while the database was confirming, and it could not be asked again.
    pub async fn commit(&self, commit: Commit) -> Result<CommitOutcome, CatalogError> {
        let stamps = self.commit_stamped(&commit).await?;
        Ok(stamps.map_or(CommitOutcome::Stale, |_| CommitOutcome::Done))
    }

    /// Commits, and returns what the changed partitions hold afterwards, in the order of the changes, or
    /// `None` when the commit was stale.
    pub async fn commit_stamped(&self, commit: &Commit) -> Result<Option<Vec<Stamp>>, CatalogError> {
        let mut attempts = Attempts::begin();
        loop {
            let session = self.database.write().await?;
            match self.commit_in(session, commit, Patience::Waits).await {
                Err(error) if attempts.go_on(&error).await => {}
                outcome => return outcome,
            }
        }
    }

    /// Commits for several unrelated people: if somebody else is changing what belongs to one of them, this
    /// fails with `Contended` at once, so that the others need not wait.
    pub async fn commit_together(&self, commit: &Commit) -> Result<Option<Vec<Stamp>>, CatalogError> {
        let session = self.database.write().await?;
        self.commit_in(session, commit, Patience::GoesAway).await
    }

    /// Keeps everybody else from changing a person's partitions until the hold is used or given back.
    pub async fn hold(&self, person: PersonId) -> Result<Hold, CatalogError> {
        let people = BTreeSet::from([person]);
        let mut attempts = Attempts::begin();
        loop {
            let mut session = self.database.write().await?;
            match lock_people(&mut session, &people, &*self.time, Patience::Waits).await {
                Ok(_) => return Ok(Hold { session }),
                Err(error) if attempts.go_on(&error).await => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Commits what was prepared under a hold. It cannot be stale.
    pub async fn commit_held(&self, hold: Hold, commit: &Commit) -> Result<Option<Vec<Stamp>>, CatalogError> {
        self.commit_in(hold.session, commit, Patience::Waits).await
    }

    async fn commit_in(
        &self,
        mut session: Session,
        commit: &Commit,
        patience: Patience,
    ) -> Result<Option<Vec<Stamp>>, CatalogError> {
        let ledgers = lock_people(&mut session, &people_of(commit), &*self.time, patience).await?;
        // The nodes' clocks may differ, and those who come later must not count as earlier: so the time is
        // the database's, and read once nobody else can change what belongs to these people.
        let now = session.now(&*self.time).await?;
        let outcome = match apply_commit(&mut session, commit, ledgers, now).await? {
            Some(stamps) if store_uploads(&mut session, commit, now).await? => Some(stamps),
            _ => None,
        };
        match outcome {
            Some(_) => self.conclude(session).await?,
            None => session.rollback().await?,
        }
        Ok(outcome)
    }
}

/// A person's partitions, locked so that nobody else can change them.
pub struct Hold {
    session: Session,
}

impl Hold {
    pub async fn give_back(self) -> Result<(), CatalogError> {
        self.session.rollback().await
    }
}

async fn apply_commit(
    session: &mut Session,
    commit: &Commit,
    mut ledgers: BTreeMap<PersonId, Ledger>,
    now: Instant,
) -> Result<Option<Vec<Stamp>>, CatalogError> {
    let Some(mut partitions) = partitions_as_seen(session, commit, now).await? else {
        return Ok(None);
    };
    let since = remove_gathered(session, commit, &mut partitions).await?;
    for ledger in ledgers.values_mut() {
        ledger.sequence += 1;
    }
    let inserted = insert_pieces_and_dead_rows(session, commit, &ledgers, &since, now).await?;
    let added = commit.changes.iter().flat_map(|change| &change.add);
    refuse_condemned(session, paths_of(added)).await?;
    end_minutes_ahead(session, commit, &mut partitions, now).await?;
    let updated = update_partitions(commit, &mut partitions, inserted, now);
    store_partitions(session, partitions.into_values().collect(), &mut ledgers).await?;
    session
        .insert(&UPDATES, updated.finished_minutes, Existing::Refuse)
        .await?;
    store_sources(session, &commit.sources, now).await?;
    Ok(Some(updated.stamps))
}

/// Stores the requests that carried an idempotency key; `false` if one of the keys is taken. The database's
/// clock measures how long a key is remembered, as it does for everything that is forgotten with time.
async fn store_uploads(session: &mut Session, commit: &Commit, now: Instant) -> Result<bool, CatalogError> {
    let keyed: Vec<Vec<Value>> = commit
        .uploads
        .iter()
        .filter_map(|upload| {
            let (key, fingerprint) = upload.key.as_ref()?;
            // The effect follows the fingerprint in the same column.
            let effect = upload.effect.to_bytes();
            Some(vec![
                id(upload.person.0),
                text(key),
                id(upload.upload.0),
                Value::Bytes([fingerprint.as_slice(), &effect].concat()),
                Value::Int(now.micros()),
            ])
        })
        .collect();
    let expected = keyed.len() as u64;
    Ok(session.insert(&UPLOADS, keyed, Existing::Keep).await?.rows == expected)
}

/// Everybody whom a commit concerns.
fn people_of(commit: &Commit) -> BTreeSet<PersonId> {
    let changed = commit.changes.iter().map(|change| change.person);
    let unchanged = commit.unchanged.iter().map(|seen| seen.person);
    let uploads = commit.uploads.iter().map(|upload| upload.person);
    let sources = commit.sources.iter().map(|source| source.person);
    changed.chain(unchanged).chain(uploads).chain(sources).collect()
}

/// The partitions that a commit changes, as they are now. `None` when one of those that it names is no longer
/// as it was seen.
async fn partitions_as_seen(
    session: &mut Session,
    commit: &Commit,
    now: Instant,
) -> Result<Option<Partitions>, CatalogError> {
    let changed = commit
        .changes
        .iter()
        .map(|change| (change.person, &change.data_type));
    let unchanged = commit.unchanged.iter().map(|seen| (seen.person, &seen.data_type));
    let mut partitions = current_partitions(session, changed.chain(unchanged), now).await?;
    if partitions.len() < commit.changes.len() + commit.unchanged.len() {
        return Err(CatalogError::Refused {
            detail: "a commit names the same partition twice".to_owned(),
        });
    }
    let is_as_seen = |change: &PartitionChange| {
        partitions
            .get(&(change.person, change.data_type.clone()))
            .is_some_and(|(row, _)| change.expected.is_none_or(|seen| row.stamp() == seen))
    };
    if !commit.changes.iter().all(is_as_seen) {
        return Ok(None);
    }
    for seen in &commit.unchanged {
        let now = partitions.remove(&(seen.person, seen.data_type.clone()));
        if now.is_none_or(|(row, _)| row.stamp() != seen.stamp) {
            return Ok(None);
        }
    }
    Ok(Some(partitions))
}

/// The checksums of rows that were inserted, in the order in which a commit names them.
struct InsertedChecksums {
    pieces: Vec<u32>,
    dead_rows: Vec<u32>,
}

async fn insert_pieces_and_dead_rows(
    session: &mut Session,
    commit: &Commit,
    ledgers: &BTreeMap<PersonId, Ledger>,
    since: &HashMap<PieceId, Instant>,
    now: Instant,
) -> Result<InsertedChecksums, CatalogError> {
    let sequence_of = |person: PersonId| ledgers.get(&person).map_or(0, |ledger| ledger.sequence);
    let (mut pieces, mut dead, mut blobs) = (Vec::new(), Vec::new(), Vec::new());
    for change in &commit.changes {
        let sequence = sequence_of(change.person);
        for piece in &change.add {
            pieces.push(piece_values(
                change.person,
                &change.data_type,
                piece,
                sequence,
                since.get(&piece.id).copied().unwrap_or(now),
            ));
            if let NewPlace::Tail { blob, .. } = &piece.place {
                blobs.push((piece.id.as_bytes().to_vec(), blob.to_vec()));
            }
        }
        dead.extend(change.dead.iter().map(|(piece, record)| {
            DeadRow::values(change.person, &change.data_type, *piece, *record, sequence)
        }));
    }
    let pieces = session.insert(&PIECES, pieces, Existing::Refuse).await?.checksums;
    let dead_rows = session
        .insert(&DEAD_ROWS, dead, Existing::Refuse)
        .await?
        .checksums;
    session.insert_blobs(blobs).await?;
    Ok(InsertedChecksums { pieces, dead_rows })
}

/// What becomes of the partitions that a commit changes.
struct UpdatedPartitions {
    /// What each holds afterwards, in the order of the changes.
    stamps: Vec<Stamp>,
    /// Counts of updates in minutes that are over, as rows.
    finished_minutes: Vec<Vec<Value>>,
}

/// Counts as of now what was updated in minutes that have not come yet, because a clock was ahead. So every
/// minute that is over lies before the one that is counted, and none is over twice.
async fn end_minutes_ahead(
    session: &mut Session,
    commit: &Commit,
    partitions: &mut Partitions,
    now: Instant,
) -> Result<(), CatalogError> {
    let minute = minute_of(now);
    for change in commit.changes.iter().filter(|change| change.updates != 0) {
        let row = partitions.get_mut(&(change.person, change.data_type.clone()));
        if let Some((row, _)) = row
            && is_ahead(Instant::from_micros(row.current_minute), now)
        {
            row.current_count += take_minutes_from(session, change.person, &change.data_type, minute).await?;
            row.current_minute = minute;
        }
    }
    Ok(())
}

fn update_partitions(
    commit: &Commit,
    partitions: &mut Partitions,
    inserted: InsertedChecksums,
    now: Instant,
) -> UpdatedPartitions {
    let minute = minute_of(now);
    let mut piece_checksums = inserted.pieces.into_iter();
    let mut dead_checksums = inserted.dead_rows.into_iter();
    let mut updated = UpdatedPartitions {
        stamps: Vec::with_capacity(commit.changes.len()),
        finished_minutes: Vec::new(),
    };
    for change in &commit.changes {
        let Some((row, _)) = partitions.get_mut(&(change.person, change.data_type.clone())) else {
            continue;
        };
        row.version += 1;
        row.records += change.records_delta;
        row.changed_at = now;
        if change.updates != 0
            && let Some((minute, count)) = row.count(minute, change.updates)
        {
            updated.finished_minutes.push(vec![
                id(change.person.0),
                Value::Int(minute),
                text(&change.data_type.0),
                Value::Int(count),
            ]);
        }
        for (piece, checksum) in change.add.iter().zip(piece_checksums.by_ref()) {
            row.gain(piece, checksum);
        }
        for (_, checksum) in change.dead.iter().zip(dead_checksums.by_ref()) {
            row.dead += 1;
            row.digest ^= checksum;
        }
        updated.stamps.push(row.stamp());
    }
    updated
}

/// Removes the pieces that were gathered; returns for each resulting piece since when its oldest rows have
/// waited. The partition's bounds stay, because no row is lost.
async fn remove_gathered(
    session: &mut Session,
    commit: &Commit,
    partitions: &mut Partitions,
) -> Result<HashMap<PieceId, Instant>, CatalogError> {
    let mut since: HashMap<PieceId, Instant> = HashMap::new();
    for gathered in &commit.gathered {
        let changes = &commit.changes;
        let is_changed_here = |change: &&PartitionChange| {
            change.person == gathered.person
                && change.data_type == gathered.data_type
                && change.expected.is_some()
                && change.add.iter().any(|piece| piece.id == gathered.into)
                && !change
                    .dead
                    .iter()
                    .any(|(piece, _)| gathered.pieces.contains(piece))
        };
        let key = (gathered.person, gathered.data_type.clone());
        let row = changes.iter().find(is_changed_here).and(partitions.get_mut(&key));
        let Some((row, _)) = row else {
            return Err(CatalogError::Refused {
                detail: "pieces are put together by no change of their partition".to_owned(),
            });
        };
        for some in gathered.pieces.chunks(PIECES_AT_ONCE) {
            let ids: Vec<Value> = some.iter().map(|piece| id(piece.0)).collect();
            let (list, mut values) = one_of(3, ids.clone());
            values.splice(0..0, [id(gathered.person.0), text(&gathered.data_type.0)]);
            let rest = format!("WHERE person = $1 AND data_type = $2 AND piece IN {list}");
            let stored = session.select(&PIECES, &rest, values.clone()).await?;
            if stored.len() != some.len() {
                return Err(CatalogError::corrupt("a piece of the tail is lost"));
            }
            for verified in stored {
                let piece = piece_of(&verified)?;
                row.lose(&piece, verified.checksum);
                let oldest = since.entry(gathered.into).or_insert(piece.created_at);
                *oldest = piece.created_at.min(*oldest);
            }
            session
                .execute(format!("DELETE FROM {} {rest}", PIECES.name), values)
                .await?;
            let (list, values) = one_of(1, ids);
            session
                .execute(format!("DELETE FROM blobs WHERE piece IN {list}"), values)
                .await?;
        }
    }
    Ok(since)
}
