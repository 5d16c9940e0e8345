//! Tells states of everything known of a person apart, by the checksums of few rows.

use crate::catalog::Catalog;
use crate::catalog::database::Session;
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::id;
use crate::catalog::tables::{ACCESS_LOG, FOLDERS, LEDGERS, PEOPLE, Table};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// How many of the newest entries of the access log are checked for changes.
const NEWEST_ENTRIES: i64 = 64;

impl Catalog {
    /// Tells the present state of everything known of a person apart from others. Without a transaction: what
    /// changes meanwhile is seen now or by the next look. Asked of all people in turn, so the rows are not
    /// kept.
    pub async fn estate_state(&self, person: PersonId) -> Result<Option<i64>, CatalogError> {
        let mut sum = StateSum::default();
        for (table, rest) in parts_of_state() {
            let rows = self.database.find_once(table, &rest, vec![id(person.0)]).await?;
            sum.add(table, &rows);
        }
        Ok(sum.state())
    }
}

/// The rows that change with everything that belongs to a person.
fn parts_of_state() -> [(&'static Table, String); 4] {
    let whole = |order: &str| format!("WHERE person = $1 ORDER BY {order}");
    [
        (&PEOPLE, whole("person")),
        // When pieces are replaced, their partitions change without the ledger's other columns, but never
        // without its digest.
        (&LEDGERS, whole("person")),
        (&FOLDERS, whole("kind")),
        // The log grows without a count of its own; entries that get completed are among the newest.
        (
            &ACCESS_LOG,
            format!("{} DESC LIMIT {NEWEST_ENTRIES}", whole("entry")),
        ),
    ]
}

/// Combines the checksums of those rows.
#[derive(Default)]
struct StateSum {
    hasher: crc32fast::Hasher,
    sum: u32,
    is_known: bool,
}

impl StateSum {
    fn add(&mut self, table: &Table, rows: &[VerifiedRow]) {
        self.is_known |= table.name == PEOPLE.name && !rows.is_empty();
        for row in rows {
            self.hasher.update(&row.checksum.to_le_bytes());
            self.sum = self.sum.wrapping_mul(31).wrapping_add(row.checksum);
        }
    }

    /// `None`: nobody has this id.
    fn state(self) -> Option<i64> {
        let state = (i64::from(self.hasher.finalize()) << 31) ^ i64::from(self.sum);
        self.is_known.then_some(state)
    }
}

pub(super) async fn state_of(session: &mut Session, person: PersonId) -> Result<Option<i64>, CatalogError> {
    let mut sum = StateSum::default();
    for (table, rest) in parts_of_state() {
        sum.add(table, &session.select(table, &rest, vec![id(person.0)]).await?);
    }
    Ok(sum.state())
}
