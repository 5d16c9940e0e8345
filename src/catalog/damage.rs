//! Counts damaged rows by table and owner, so that a check and a copy report the same damage alike.
//!
//! Lives as long as one pass over the tables. Knows nothing of what rows mean, or of what is done about them.

use std::collections::BTreeMap;

use futures::StreamExt as _;

use super::database::{Row, Session, Value};
use super::errors::CatalogError;
use super::tables::{ALL, Table};
use crate::model::ids::PersonId;

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// It can be read, but does not match its checksum.
    Differs,
    /// It holds what no row of its table can hold.
    Unreadable,
    /// It has the key of another row, so only one of the two can be copied.
    Doubled,
}

/// A row that could be read, unverified, with the checksum that it carries.
pub(super) struct UnverifiedRow {
    pub values: Vec<Value>,
    pub checksum: i64,
}

/// The damage found so far.
#[derive(Debug, Default)]
pub(super) struct Damage {
    rows: BTreeMap<(&'static str, Option<PersonId>, Fault), u64>,
    others: Vec<String>,
}

impl Damage {
    /// Looks at every row of a table. Does not page: the way to the row behind a damaged key may lead back,
    /// or past others.
    pub(super) async fn look_through(
        &mut self,
        session: &mut Session,
        table: &Table,
    ) -> Result<(), CatalogError> {
        let goes_on = session.goes_on_after_damage();
        let mut rows = session.stream(table.select(""))?;
        while let Some(row) = rows.next().await {
            match row {
                Ok(row) => drop(self.look_at(table, &row)?),
                Err(CatalogError::Corrupt { what }) if goes_on => {
                    self.cut_short(table.name, &what);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A row that `Table::select` returned, if it can be read; notes what is wrong with it.
    pub(super) fn look_at(
        &mut self,
        table: &Table,
        row: &Row,
    ) -> Result<Option<UnverifiedRow>, CatalogError> {
        let found = table
            .values(row)
            .and_then(|values| Ok((values, row.int(table.columns.len())?)));
        match found {
            Ok((values, checksum)) => {
                if checksum != i64::from(table.checksum(&values)) {
                    self.note(table, owner_in(table, &values), Fault::Differs);
                }
                Ok(Some(UnverifiedRow { values, checksum }))
            }
            Err(CatalogError::Corrupt { .. }) => {
                let owner = table.owner_column().and_then(|column| row.bytes(column).ok());
                let owner = owner.and_then(|bytes| PersonId::from_slice(&bytes));
                self.note(table, owner, Fault::Unreadable);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that a row has the same key as another.
    pub(super) fn doubled(&mut self, table: &Table, values: &[Value]) {
        self.note(table, owner_in(table, values), Fault::Doubled);
    }

    /// Notes that the database cannot read all of a table.
    pub(super) fn cut_short(&mut self, table: &str, what: &str) {
        self.others
            .push(format!("table {table}: some of it cannot be read: {what}"));
    }

    pub(super) fn say(&mut self, what: String) {
        self.others.push(what);
    }

    /// All of it, a sentence each.
    pub(super) fn descriptions(self) -> Vec<String> {
        let rows = self.rows.into_iter().map(|((table, owner, fault), count)| {
            let owner = owner.map_or_else(String::new, |person| format!(", person {person}"));
            let what = match (fault, count) {
                (Fault::Differs, 1) => "row differs from what was written",
                (Fault::Differs, _) => "rows differ from what was written",
                (Fault::Unreadable, 1) => "row cannot be read",
                (Fault::Unreadable, _) => "rows cannot be read",
                (Fault::Doubled, 1) => "row has the key of another one",
                (Fault::Doubled, _) => "rows have the keys of others",
            };
            format!("table {table}{owner}: {count} {what}")
        });
        rows.chain(self.others).collect()
    }

    fn note(&mut self, table: &Table, owner: Option<PersonId>, fault: Fault) {
        *self.rows.entry((table.name, owner, fault)).or_default() += 1;
    }
}

/// A description of damage, unless it says that a row differs from what was written: whoever looks through
/// all tables has told of each such row, and whose it is.
pub(super) fn besides_rows(what: String) -> Option<String> {
    let is_of_row = ALL.iter().any(|table| what == table.row_differs());
    (!is_of_row).then_some(what)
}

/// The owner of a row, if it names one.
fn owner_in(table: &Table, values: &[Value]) -> Option<PersonId> {
    match values.get(table.owner_column()?)? {
        Value::Bytes(bytes) => PersonId::from_slice(bytes),
        _ => None,
    }
}
