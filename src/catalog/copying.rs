//! Copies the whole catalogue, from one moment, into a new SQLite file. Works from either database.
//!
//! Damaged rows are copied as they are, with the checksums that give them away: a check of the copy finds the
//! damage, and no other rows are left out because of it.

use std::collections::HashMap;
use std::path::Path;

use futures::StreamExt as _;

use super::damage::{Damage, UnverifiedRow};
use super::database::{Database, Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::rows::is_sound_blob;
use super::tables::{ALL, OF_THIS_STORE, PIECES, Table};
use super::{Catalog, migrations};
use crate::model::ids::PersonId;

/// How many rows one statement writes.
const ROWS_AT_ONCE: usize = 64;

/// What pieces say about the tail: the checksum of each blob, and its owner.
type Tail = HashMap<Vec<u8>, (i64, Option<PersonId>)>;

impl Catalog {
    /// Copies the catalogue into a new SQLite file at `path`, and verifies every row on the way. Returns a
    /// description of the damage: rows that differ from what was written are copied as they are, and rows
    /// that cannot be read are left out. Refuses a path that exists, unless an empty file keeps the place.
    pub async fn copy_to(&self, path: &Path) -> Result<Vec<String>, CatalogError> {
        let is_taken = std::fs::metadata(path).is_ok_and(|found| !found.is_file() || found.len() > 0);
        if is_taken {
            return Err(CatalogError::Exists {
                what: path.display().to_string(),
            });
        }
        let target = Database::open(&format!("sqlite://{}", path.display()), 1).await?;
        migrations::run(&target, self.clock.now()).await?;
        // A damaged row may refer to a person who does not exist.
        target.allow_loose_ends().await?;
        let mut copying = Copying {
            from: self.database.read().await?,
            to: target.write().await?,
            damage: Damage::default(),
            tail: Tail::new(),
        };
        // The migrations have already counted the people of the copy: none.
        copying
            .to
            .execute("DELETE FROM meta".to_owned(), Vec::new())
            .await?;
        let is_copied = |table: &&&Table| !OF_THIS_STORE.iter().any(|other| other.name == table.name);
        for table in ALL.iter().filter(is_copied) {
            copying.table(table).await?;
        }
        copying.blobs().await?;
        let Copying { from, to, damage, .. } = copying;
        to.commit().await?;
        // Nothing was changed there, and after damage the transaction may not end well.
        drop(from);
        target.close().await;
        Ok(damage.descriptions())
    }
}

/// How far the database could read a table.
enum ReadUntil {
    End,
    /// Described by the database.
    Damage(String),
}

/// In which direction a table is read. From its last row only after damage, so some of its rows may have been
/// copied already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    FromTheFirst,
    FromTheLast,
}

struct Copying {
    from: Session,
    to: Session,
    damage: Damage,
    tail: Tail,
}

impl Copying {
    async fn table(&mut self, table: &Table) -> Result<(), CatalogError> {
        let ReadUntil::Damage(what) = self.run_through(table, Pass::FromTheFirst).await? else {
            return Ok(());
        };
        self.damage.cut_short(table.name, &what);
        // Rows behind the damage are reached from the other end.
        self.run_through(table, Pass::FromTheLast).await.map(drop)
    }

    /// Copies rows until the database cannot read on.
    async fn run_through(&mut self, table: &Table, pass: Pass) -> Result<ReadUntil, CatalogError> {
        let order = match pass {
            Pass::FromTheFirst => String::new(),
            Pass::FromTheLast => table.backwards(),
        };
        let mut until = ReadUntil::End;
        let goes_on = self.from.goes_on_after_damage();
        let mut rows = self.from.stream(table.select(&order))?;
        let mut waiting = Vec::with_capacity(ROWS_AT_ONCE);
        while let Some(row) = rows.next().await {
            let row = match row {
                Ok(row) => row,
                Err(CatalogError::Corrupt { what }) if goes_on => {
                    until = ReadUntil::Damage(what);
                    break;
                }
                Err(error) => return Err(error),
            };
            let Some(found) = self.damage.look_at(table, &row)? else {
                continue;
            };
            if table.name == PIECES.name {
                remember_tail(&mut self.tail, &found.values);
            }
            waiting.push(found);
            if waiting.len() == ROWS_AT_ONCE {
                let full = std::mem::replace(&mut waiting, Vec::with_capacity(ROWS_AT_ONCE));
                put(&mut self.to, table, full, &mut self.damage, pass).await?;
            }
        }
        put(&mut self.to, table, waiting, &mut self.damage, pass).await?;
        Ok(until)
    }

    /// The bytes of the tail. Their checksums are in the rows of their pieces.
    async fn blobs(&mut self) -> Result<(), CatalogError> {
        let goes_on = self.from.goes_on_after_damage();
        let mut rows = self.from.stream("SELECT piece, blob FROM blobs".to_owned())?;
        let mut waiting = Vec::with_capacity(ROWS_AT_ONCE);
        while let Some(row) = rows.next().await {
            let read = row.and_then(|row| Ok((row.bytes(0)?, row.bytes(1)?)));
            let (piece, blob) = match read {
                Ok(read) => read,
                Err(CatalogError::Corrupt { what }) if goes_on => {
                    self.damage.cut_short("blobs", &what);
                    break;
                }
                Err(error) => return Err(error),
            };
            // One that no piece names is copied all the same: its piece may be what is damaged.
            if let Some((checksum, owner)) = self.tail.remove(&piece)
                && !is_sound_blob(&blob, checksum)
            {
                self.damage
                    .say(of_tail(&piece, owner, "differs from what was written"));
            }
            waiting.push((piece, blob));
            if waiting.len() == ROWS_AT_ONCE {
                self.to.insert_blobs(std::mem::take(&mut waiting)).await?;
            }
        }
        self.to.insert_blobs(waiting).await?;
        for (piece, (_, owner)) in &self.tail {
            self.damage.say(of_tail(piece, *owner, "is lost"));
        }
        Ok(())
    }
}

fn remember_tail(tail: &mut Tail, piece: &[Value]) {
    let column = |name| {
        let place = PIECES.columns.iter().position(|(column, _)| *column == name);
        place.and_then(|place| piece.get(place))
    };
    if let (Some(Value::Bytes(id)), Some(Value::Int(checksum)), Some(Value::NullText)) =
        (column("piece"), column("content_checksum"), column("path"))
    {
        let owner = match column("person") {
            Some(Value::Bytes(person)) => PersonId::from_slice(person),
            _ => None,
        };
        tail.insert(id.clone(), (*checksum, owner));
    }
}

fn of_tail(piece: &[u8], owner: Option<PersonId>, what: &str) -> String {
    let owner = owner.map_or_else(String::new, |person| format!(" of person {person}"));
    let piece = uuid::Uuid::from_slice(piece).unwrap_or_default();
    format!("tail piece {piece}{owner} {what}")
}

/// Writes rows with the checksums that they carry, whether these match or not.
async fn put(
    to: &mut Session,
    table: &Table,
    rows: Vec<UnverifiedRow>,
    damage: &mut Damage,
    pass: Pass,
) -> Result<(), CatalogError> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = |row: &UnverifiedRow| {
        let mut values = row.values.clone();
        values.push(Value::Int(row.checksum));
        values
    };
    let all = table.insert(rows.len(), Existing::Refuse, to.marks());
    match to.execute(all, rows.iter().flat_map(values).collect()).await {
        Ok(_) => return Ok(()),
        // A refused statement changed nothing.
        Err(CatalogError::Exists { .. }) => {}
        Err(error) => return Err(error),
    }
    let one = table.insert(1, Existing::Keep, to.marks());
    for row in &rows {
        if to.execute(one.clone(), values(row)).await? == 0 && pass == Pass::FromTheFirst {
            damage.doubled(table, &row.values);
        }
    }
    Ok(())
}
