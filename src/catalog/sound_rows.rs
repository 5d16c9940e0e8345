//! Lists rows without the damaged ones, for jobs that work for everybody: the damage of one person must not
//! hold up the others.
//!
//! Whoever answers a question of one person reads rows elsewhere, where damage is an error. Knows no table in
//! particular, and nothing of what rows mean.

use std::collections::BTreeSet;

use super::Catalog;
use super::database::{Row, Value};
use super::errors::CatalogError;
use super::subject::Subject;
use super::tables::Table;
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

/// The result of a listing, without the rows that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound<T> {
    pub sound: Vec<T>,
    /// Whose rows are damaged: a person's, a partition's, or where neither can be told, some of a table.
    pub set_aside: BTreeSet<Subject>,
}

impl<T> Default for Sound<T> {
    fn default() -> Self {
        Self {
            sound: Vec::new(),
            set_aside: BTreeSet::new(),
        }
    }
}

impl<T> Sound<T> {
    /// What is made of each row.
    pub(super) fn try_map<R>(
        self,
        make: impl FnMut(T) -> Result<R, CatalogError>,
    ) -> Result<Sound<R>, CatalogError> {
        Ok(Sound {
            sound: self.sound.into_iter().map(make).collect::<Result<_, _>>()?,
            set_aside: self.set_aside,
        })
    }

    /// What is sound, for somebody who counts no damage: it is reported here.
    pub fn reported(self) -> Vec<T> {
        for whose in &self.set_aside {
            let whose = whose.to_string();
            tracing::error!(whose, "something is damaged and left alone; run `almanac check`");
        }
        self.sound
    }
}

impl Catalog {
    /// Rows of a table without the damaged ones.
    pub(super) async fn sound_rows(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Sound<VerifiedRow>, CatalogError> {
        sound_among(table, &self.database.fetch(table.select(rest), values).await?)
    }

    /// A few rows of a table by their keys, without the damaged ones.
    pub(super) async fn find_sound_rows(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
    ) -> Result<Sound<VerifiedRow>, CatalogError> {
        sound_among(table, &self.database.look_up(table.select(rest), values).await?)
    }

    /// The sound rows of the first page that has any, and whose damaged rows were passed over. A page has
    /// `length` rows. Nothing sound is the end.
    pub(super) async fn sound_page(
        &self,
        table: &Table,
        rest: &str,
        values: Vec<Value>,
        length: usize,
    ) -> Result<Sound<VerifiedRow>, CatalogError> {
        let mut set_aside = BTreeSet::new();
        for skipped in (0_usize..).step_by(length.max(1)) {
            let rest = format!("{rest} LIMIT {length} OFFSET {skipped}");
            let mut rows = self.sound_rows(table, &rest, values.clone()).await?;
            let is_last = rows.set_aside.is_empty() || !rows.sound.is_empty();
            set_aside.append(&mut rows.set_aside);
            // An empty answer is the end for whoever asks, so a page of damaged rows must not be one.
            if is_last {
                rows.set_aside = set_aside;
                return Ok(rows);
            }
        }
        Ok(Sound::default())
    }
}

/// The rows that are what was written, and whose the others are.
pub(super) fn sound_among(table: &Table, rows: &[Row]) -> Result<Sound<VerifiedRow>, CatalogError> {
    let mut listed = Sound::default();
    for row in rows {
        match table.verify(row) {
            Ok(verified) => listed.sound.push(verified),
            Err(CatalogError::Corrupt { .. }) => {
                listed.set_aside.insert(whose(table, row));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listed)
}

/// Whose a damaged row is, as well as it tells.
fn whose(table: &Table, row: &Row) -> Subject {
    let place = |name: &str| table.columns.iter().position(|(column, _)| *column == name);
    let owner = place("person").and_then(|place| row.bytes(place).ok());
    let Some(person) = owner.and_then(|bytes| PersonId::from_slice(&bytes)) else {
        return Subject::Table(table.name);
    };
    match place("data_type").and_then(|place| row.text(place).ok()) {
        Some(data_type) if !data_type.is_empty() => Subject::Partition(person, TypeId::new(&data_type)),
        _ => Subject::Person(person),
    }
}
