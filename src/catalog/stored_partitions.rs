//! Reads and writes the rows of partitions in a transaction that has locked their people, and keeps the
//! ledgers true to them. Knows nothing of why they change.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::database::{Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::PEOPLE_AT_ONCE;
use super::rows::{Ledger, PartitionRow, id, text};
use super::tables::{LEDGERS, PARTITIONS};
use super::verified_rows::one_of;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// Rows of partitions, each with the checksum it is stored under, or `None` if it is new.
pub(super) type Partitions = HashMap<(PersonId, TypeId), (PartitionRow, Option<u32>)>;

/// The rows of the partitions that a commit names, each with the checksum it is stored under, or `None` if it
/// is new.
pub(super) async fn current_partitions(
    session: &mut Session,
    named: impl Iterator<Item = (PersonId, &TypeId)>,
    now: Instant,
) -> Result<Partitions, CatalogError> {
    let mut partitions = Partitions::new();
    let mut types_of: BTreeMap<PersonId, Vec<Value>> = BTreeMap::new();
    for (person, data_type) in named {
        let empty = PartitionRow::empty(person, data_type.clone(), now);
        partitions.insert((person, data_type.clone()), (empty, None));
        types_of.entry(person).or_default().push(text(&data_type.0));
    }
    let types_of: Vec<(PersonId, Vec<Value>)> = types_of.into_iter().collect();
    for some in types_of.chunks(PEOPLE_AT_ONCE) {
        let mut conditions = String::from("WHERE ");
        let mut values = Vec::new();
        for (person, types) in some {
            let person_at = values.len() + 1;
            let (list, mut names) = one_of(person_at + 1, types.clone());
            let or = if person_at == 1 { "" } else { " OR " };
            let _ = write!(conditions, "{or}(person = ${person_at} AND data_type IN {list})");
            values.push(id(person.0));
            values.append(&mut names);
        }
        for verified in session.select(&PARTITIONS, &conditions, values).await? {
            let row = PartitionRow::of(&verified)?;
            partitions.insert(
                (row.person, row.data_type.clone()),
                (row, Some(verified.checksum)),
            );
        }
    }
    Ok(partitions)
}

/// Writes partition rows, and the ledgers updated to match.
pub(super) async fn store_partitions(
    session: &mut Session,
    rows: Vec<(PartitionRow, Option<u32>)>,
    ledgers: &mut BTreeMap<PersonId, Ledger>,
) -> Result<(), CatalogError> {
    for (row, stored) in &rows {
        let Some(ledger) = ledgers.get_mut(&row.person) else {
            continue;
        };
        ledger.digest ^= row.checksum() ^ stored.unwrap_or(0);
        ledger.partitions += i64::from(stored.is_none());
    }
    session
        .insert(
            &PARTITIONS,
            rows.iter().map(|(row, _)| row.values()).collect(),
            Existing::Replace,
        )
        .await?;
    session
        .insert(
            &LEDGERS,
            ledgers.values().map(Ledger::values).collect(),
            Existing::Replace,
        )
        .await?;
    Ok(())
}
