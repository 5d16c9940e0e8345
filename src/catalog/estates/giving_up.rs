//! Takes what is there of a person for all that there must be, where rows were lost that nobody brings back.
//!
//! Counts and digests become those of what is there, and what belongs to nothing any more goes. Done only for
//! an operator who gives the lost rows up; fails while any row differs from what was written. Knows what is
//! counted; knows nothing of what the rows mean.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::catalog::counted_rows::{
    CountedRows, DEFINITIONS_KIND, SOURCES_KIND, read_counted, write_counted,
};
use crate::catalog::database::{Patience, Session};
use crate::catalog::documents::{DocumentKind, counted_documents};
use crate::catalog::erasure::refuse_erased;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::ledgers::lock_if_known;
use crate::catalog::rows::{DeadRow, Ledger, PartitionRow, id, piece_of};
use crate::catalog::tables::{DEAD_ROWS, DEFINITIONS, LEDGERS, PARTITIONS, PIECES, SOURCES};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// What belongs to nothing of the person any more, and how it is removed: first the pieces.
const OF_NOTHING: [(&str, &str); 3] = [
    (
        "tail pieces without their bytes",
        "DELETE FROM pieces WHERE person = $1 AND path IS NULL AND NOT EXISTS (SELECT 1 FROM blobs WHERE \
         blobs.piece = pieces.piece)",
    ),
    (
        "dead rows of no piece",
        "DELETE FROM dead_rows WHERE person = $1 AND NOT EXISTS (SELECT 1 FROM pieces WHERE pieces.person = \
         dead_rows.person AND pieces.data_type = dead_rows.data_type AND pieces.piece = dead_rows.piece)",
    ),
    (
        "links of no document",
        "DELETE FROM links WHERE person = $1 AND NOT EXISTS (SELECT 1 FROM documents WHERE \
         documents.document = links.document AND documents.person = links.person)",
    ),
];
/// Bytes that no piece names belong to nobody. Neither database looks through all pieces for each of them.
const BYTES_OF_NOTHING: &str = "SELECT piece FROM blobs EXCEPT SELECT piece FROM pieces";
const OF_PERSON: &str = "WHERE person = $1";

/// Partitions as their own rows say, with the checksums of these.
type StoredPartitions = BTreeMap<TypeId, (PartitionRow, u32)>;

impl Catalog {
    /// Describes what is lost of a person, as far as rows are counted. `Corrupt` if a row differs from what
    /// was written.
    pub async fn lost_of(&self, person: PersonId) -> Result<Option<String>, CatalogError> {
        let Some(mut estate) = self.read_estate(person).await? else {
            return Ok(None);
        };
        while estate.next().await?.is_some() {}
        match estate.end().await {
            Err(CatalogError::Corrupt { what }) => Ok(Some(what)),
            ended => ended.map(|()| None),
        }
    }

    /// Whether there are bytes of tail pieces whose rows were lost.
    pub async fn has_bytes_of_nothing(&self) -> Result<bool, CatalogError> {
        let any = format!("{BYTES_OF_NOTHING} LIMIT 1");
        Ok(!self.database.fetch(any, Vec::new()).await?.is_empty())
    }

    /// Removes these bytes; returns of how many pieces. Call it only when no row is known to differ from what
    /// was written: such a row may be what names them.
    pub async fn remove_bytes_of_nothing(&self) -> Result<u64, CatalogError> {
        let mut session = self.database.write().await?;
        let removing = format!("DELETE FROM blobs WHERE piece IN ({BYTES_OF_NOTHING})");
        let removed = session.execute(removing, Vec::new()).await?;
        self.conclude(session).await?;
        Ok(removed)
    }

    /// Takes what is there of a person for all that there must be; describes what was given up.
    pub async fn give_up_lost(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.write().await?;
        // First, so that nothing of the person changes until the transaction ends.
        lock_if_known(&mut session, person).await?;
        refuse_erased(&mut session, person, Patience::Waits).await?;
        let now = session.now(&*self.time).await?;
        let given_up = take_for_all(&mut session, person, now).await?;
        if given_up.is_empty() {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(given_up)
    }
}

/// Makes the counts and digests of a person those of what is there; describes what was given up.
pub(super) async fn take_for_all(
    session: &mut Session,
    person: PersonId,
    now: Instant,
) -> Result<Vec<String>, CatalogError> {
    let mut given_up = Vec::new();
    for (what, sql) in OF_NOTHING {
        let removed = session.execute(sql.to_owned(), vec![id(person.0)]).await?;
        if removed > 0 {
            given_up.push(format!("{what}: {removed} were removed"));
        }
    }
    for kind in DocumentKind::ALL {
        let found = counted_documents(session, person, kind).await?;
        take_counted(session, person, kind.as_str(), found, &mut given_up).await?;
    }
    for (table, kind) in [(&SOURCES, SOURCES_KIND), (&DEFINITIONS, DEFINITIONS_KIND)] {
        let rows = session.select(table, OF_PERSON, vec![id(person.0)]).await?;
        take_counted(session, person, kind, CountedRows::of(&rows), &mut given_up).await?;
    }
    take_partitions(session, person, now, &mut given_up).await?;
    Ok(given_up)
}

async fn take_counted(
    session: &mut Session,
    person: PersonId,
    kind: &str,
    found: CountedRows,
    given_up: &mut Vec<String>,
) -> Result<(), CatalogError> {
    let said = read_counted(session, person, kind).await?;
    if said == found {
        return Ok(());
    }
    given_up.push(difference(kind, found, said));
    write_counted(session, person, kind, found).await
}

/// Makes each partition what its pieces and dead rows are, and the ledger what the partitions are. Last,
/// since the ledger counts changes of whatever is the person's.
async fn take_partitions(
    session: &mut Session,
    person: PersonId,
    now: Instant,
    given_up: &mut Vec<String>,
) -> Result<(), CatalogError> {
    let ledgers = session.select(&LEDGERS, OF_PERSON, vec![id(person.0)]).await?;
    let ledger = ledgers
        .first()
        .map_or_else(|| Ok(Ledger::empty(person)), Ledger::of)?;
    let (mut said, stored) = stored_partitions(session, person).await?;
    let in_ledger = CountedRows {
        count: ledger.partitions,
        digest: ledger.digest,
    };
    if stored != in_ledger {
        given_up.push(difference("partitions", stored, in_ledger));
    }
    let (found, sequence) = partitions_there(session, person, now, &said).await?;
    let mut there = CountedRows::default();
    for (data_type, found) in found {
        let said = said.remove(&data_type);
        if let Some((said, checksum)) = &said
            && (said.pieces, said.dead, said.digest) == (found.pieces, found.dead, found.digest)
        {
            there.gain(&[*checksum]);
            continue;
        }
        given_up.push(difference_of_pieces(&found, said.as_ref().map(|(said, _)| said)));
        let partition = PartitionRow {
            version: found.version + 1,
            changed_at: now,
            ..found
        };
        let row = vec![partition.values()];
        there.gain(
            &session
                .insert(&PARTITIONS, row, Existing::Replace)
                .await?
                .checksums,
        );
    }
    if given_up.is_empty() {
        return Ok(());
    }
    let ledger = Ledger {
        sequence: ledger.sequence.max(sequence) + 1,
        partitions: there.count,
        digest: there.digest,
        ..ledger
    };
    let row = vec![ledger.values()];
    session.insert(&LEDGERS, row, Existing::Replace).await?;
    Ok(())
}

/// The partitions as their own rows say, and how many there are.
async fn stored_partitions(
    session: &mut Session,
    person: PersonId,
) -> Result<(StoredPartitions, CountedRows), CatalogError> {
    let (mut partitions, mut counted) = (StoredPartitions::new(), CountedRows::default());
    for row in session.select(&PARTITIONS, OF_PERSON, vec![id(person.0)]).await? {
        counted.gain(&[row.checksum]);
        let partition = PartitionRow::of(&row)?;
        partitions.insert(partition.data_type.clone(), (partition, row.checksum));
    }
    Ok((partitions, counted))
}

/// The partitions as their pieces and dead rows are, and the last number in the sequence of these.
async fn partitions_there(
    session: &mut Session,
    person: PersonId,
    now: Instant,
    said: &StoredPartitions,
) -> Result<(BTreeMap<TypeId, PartitionRow>, i64), CatalogError> {
    let mut last = 0;
    let mut found: BTreeMap<TypeId, PartitionRow> = said
        .iter()
        .map(|(data_type, (said, _))| {
            let empty = PartitionRow::empty(person, data_type.clone(), now);
            let partition = PartitionRow {
                version: said.version,
                current_minute: said.current_minute,
                current_count: said.current_count,
                ..empty
            };
            (data_type.clone(), partition)
        })
        .collect();
    for row in session.select(&PIECES, OF_PERSON, vec![id(person.0)]).await? {
        let (data_type, piece) = (TypeId(row.text(1)?.into()), piece_of(&row)?);
        let partition = found
            .entry(data_type.clone())
            .or_insert_with(|| PartitionRow::empty(person, data_type, now));
        partition.pieces += 1;
        partition.records += piece.rows;
        partition.bytes += piece.bytes;
        partition.digest ^= row.checksum;
        let bounds = partition
            .bounds
            .map_or(piece.bounds, |bounds| bounds.union(piece.bounds));
        partition.bounds = Some(bounds);
        last = last.max(piece.sequence);
    }
    for row in session.select(&DEAD_ROWS, OF_PERSON, vec![id(person.0)]).await? {
        if let Some(partition) = found.get_mut(&DeadRow::of(&row)?.data_type) {
            partition.dead += 1;
            partition.records -= 1;
            partition.digest ^= row.checksum;
            last = last.max(row.int(4)?);
        }
    }
    Ok((found, last))
}

/// Says how the pieces and dead rows of a partition differ from those that it counted.
fn difference_of_pieces(found: &PartitionRow, said: Option<&PartitionRow>) -> String {
    let (pieces, dead) = said.map_or((0, 0), |said| (said.pieces, said.dead));
    let returns = if found.dead < dead {
        ": what was deleted or replaced may be read again"
    } else {
        ""
    };
    format!(
        "{}: there are {} pieces and {} dead rows, not {pieces} and {dead}{returns}",
        found.data_type, found.pieces, found.dead
    )
}

fn difference(what: &str, found: CountedRows, said: CountedRows) -> String {
    if found.count == said.count {
        return format!("{what} are not those that were written");
    }
    format!("{what}: there are {}, not {}", found.count, said.count)
}
