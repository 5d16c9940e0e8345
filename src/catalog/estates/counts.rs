//! Holds what is read of a person against the counts and digests that commits keep: a catalogue that has lost
//! rows must not be written down over what was written down while it still had them.
//!
//! Counts the rows as they pass by, an exclusive or for each, so it takes no statement and the memory of a
//! few numbers for each type and kind. Knows nothing of what rows mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalog::counted_rows::{CountedRows, DEFINITIONS_KIND, REGISTERS, SOURCES_KIND};
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{Ledger, PartitionRow, path_of};
use crate::catalog::tables::{
    DEAD_ROWS, DEFINITIONS, DOCUMENTS, FOLDERS, LEDGERS, LINKS, PARTITIONS, PIECES, SOURCES, Table,
};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// The rows of a person that passed by, and those that must exist.
#[derive(Debug, Default)]
pub(super) struct EstateCounts {
    partitions: Count,
    /// Pieces and dead rows. Types without a partition have none: what is left of them is of an erasure.
    of_types: BTreeMap<String, TypeCount>,
    /// Documents, sources and definitions.
    of_kinds: BTreeMap<String, Count>,
    /// A link does not say of which kind its document is, so the digests of all kinds are compared together.
    links: u32,
}

/// Which rows are lost: by what they are, how many and the exclusive or of their checksums. Stays the same
/// until more are lost: what is written meanwhile changes what must exist and what is there alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRows(BTreeMap<String, (i64, u32)>);

#[derive(Debug, Default)]
struct Count {
    said: CountedRows,
    found: CountedRows,
}

impl Count {
    /// How many rows are lost, and the exclusive or of their checksums.
    const fn lost(&self) -> (i64, u32) {
        (
            self.said.count - self.found.count,
            self.said.digest ^ self.found.digest,
        )
    }
}

#[derive(Debug, Default)]
struct TypeCount {
    rows: Count,
    /// Tail pieces of which the bytes did not pass by so far.
    without_bytes: i64,
}

impl EstateCounts {
    /// Counts rows of a table. Those of partitions come before those of pieces.
    pub(super) fn add(&mut self, table: &Table, rows: &[VerifiedRow]) -> Result<(), CatalogError> {
        for row in rows {
            self.add_row(table, row)?;
        }
        Ok(())
    }

    fn add_row(&mut self, table: &Table, row: &VerifiedRow) -> Result<(), CatalogError> {
        let checksum = [row.checksum];
        match table.name {
            name if name == LEDGERS.name => {
                let ledger = Ledger::of(row)?;
                self.partitions.said = CountedRows {
                    count: ledger.partitions,
                    digest: ledger.digest,
                };
            }
            name if name == PARTITIONS.name => {
                self.partitions.found.gain(&checksum);
                let partition = PartitionRow::of(row)?;
                let mut count = TypeCount::default();
                count.rows.said = CountedRows {
                    count: partition.pieces + partition.dead,
                    digest: partition.digest,
                };
                self.of_types.insert(partition.data_type.0.to_string(), count);
            }
            name if name == PIECES.name => {
                if let Some(count) = self.of_types.get_mut(row.text(1)?) {
                    count.rows.found.gain(&checksum);
                    count.without_bytes += i64::from(path_of(row).is_none());
                }
            }
            name if name == DEAD_ROWS.name => {
                if let Some(count) = self.of_types.get_mut(row.text(1)?) {
                    count.rows.found.gain(&checksum);
                }
            }
            name if name == SOURCES.name => self.of_kind(SOURCES_KIND).found.gain(&checksum),
            name if name == DEFINITIONS.name => self.of_kind(DEFINITIONS_KIND).found.gain(&checksum),
            name if name == DOCUMENTS.name => self.of_kind(row.text(0)?).found.gain(&checksum),
            name if name == LINKS.name => self.links ^= row.checksum,
            name if name == FOLDERS.name => self.of_kind(row.text(1)?).said = CountedRows::read(row)?,
            _ => {}
        }
        Ok(())
    }

    /// Counts the bytes of a tail piece of this type, which were verified.
    pub(super) fn add_bytes(&mut self, data_type: &str) {
        if let Some(count) = self.of_types.get_mut(data_type) {
            count.without_bytes -= 1;
        }
    }

    fn of_kind(&mut self, kind: &str) -> &mut Count {
        self.of_kinds.entry(kind.to_owned()).or_default()
    }

    /// What did not pass by of what must exist.
    pub(super) fn lost(&self) -> LostRows {
        let mut lost = BTreeMap::from([("partitions".to_owned(), self.partitions.lost())]);
        for (data_type, count) in &self.of_types {
            lost.insert(format!("pieces of {data_type}"), count.rows.lost());
            lost.insert(format!("bytes of {data_type}"), (count.without_bytes, 0));
        }
        let mut digest = self.links;
        for (kind, count) in &self.of_kinds {
            let (rows, of_kind) = count.lost();
            lost.insert(kind.clone(), (rows, 0));
            digest ^= of_kind;
        }
        lost.insert("documents and their links".to_owned(), (0, digest));
        lost.retain(|_, lost| *lost != (0, 0));
        LostRows(lost)
    }

    /// `Corrupt`, unless everything passed by that must exist, and nothing else.
    pub(super) fn verify(&self, person: PersonId) -> Result<(), CatalogError> {
        let lost = |what: String| Err(CatalogError::corrupt(format!("person {person}: {what}")));
        if self.partitions.said != self.partitions.found {
            return lost("partitions were lost or invented".to_owned());
        }
        for (data_type, count) in &self.of_types {
            if count.rows.said != count.rows.found {
                return lost(format!("pieces of {data_type} were lost or invented"));
            }
            if count.without_bytes != 0 {
                return lost(format!("the bytes of a tail piece of {data_type} are lost"));
            }
        }
        let mut digest = self.links;
        for (kind, Count { said, found }) in &self.of_kinds {
            let is_register = REGISTERS.contains(&kind.as_str());
            if said.count != found.count || is_register && said.digest != found.digest {
                return lost(format!("{kind} are not those that were written"));
            }
            digest ^= said.digest ^ found.digest;
        }
        if digest == 0 {
            return Ok(());
        }
        lost("documents or their links are not those that were written".to_owned())
    }
}
