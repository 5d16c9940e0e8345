//! Everything the catalogue knows of one person, as rows that can be written elsewhere and put back: people,
//! ledgers, pieces in their order, dead rows, the bytes of the tail, what people define, write and prefer,
//! and who read what of them.
//!
//! Read in one transaction, page by page, so that it takes the memory of a page; put back in one transaction,
//! and verified against its digests before that commits. Knows tables and columns; knows nothing of what the
//! rows mean, so a new table with a person in it only needs to be listed here.

use serde_json::Value as Json;

use super::Catalog;
use super::database::{Session, Value};
use super::deletions::note_older_manifests;
use super::documents::DocumentKind;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::reading::{read_partitions, verify_partitions};
use super::registers::enrol;
use super::rows::{Ledger, id};
use super::sound_rows::WithDamage;
use super::tables::{
    ACCESS_LOG, DEAD_ROWS, DEFINITIONS, DOCUMENTS, FOLDERS, Kind, LEDGERS, LINKS, MANIFESTS, PARTITIONS,
    PEOPLE, PIECES, SOURCES, Table, UPDATES,
};
use super::verified_rows::VerifiedRow;
use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// The tables with rows of a person, each after those that it refers to. Not `uploads`: idempotency keys mean
/// nothing once the effects of their requests may be lost.
const TABLES: [&Table; 12] = [
    &PEOPLE,
    &LEDGERS,
    &PARTITIONS,
    &PIECES,
    &DEAD_ROWS,
    &UPDATES,
    &SOURCES,
    &DEFINITIONS,
    &DOCUMENTS,
    &LINKS,
    &FOLDERS,
    &ACCESS_LOG,
];
/// The bytes of the tail. Their table has no checksums.
const BLOBS: &str = "blobs";
/// How many rows, and blobs, are on a page. One blob may be large.
const PAGE_ROWS: i64 = 512;
const PAGE_BLOBS: i64 = 1;
/// How many noted manifests one statement lists.
const PAGE_MANIFESTS: usize = 1_000;
/// The blobs of a person's next tail pieces, in the order of their pieces' key.
const PAGE_OF_BLOBS: &str = "SELECT blobs.piece, blobs.blob, pieces.content_checksum, pieces.data_type FROM \
                             pieces JOIN blobs ON blobs.piece = pieces.piece WHERE pieces.person = $1 AND \
                             pieces.path IS NULL AND (pieces.data_type, pieces.piece) > ($2, $3) ORDER BY \
                             pieces.data_type, pieces.piece LIMIT $4";
/// How many of the newest entries of the access log are checked for changes.
const NEWEST_ENTRIES: i64 = 64;

/// Some rows of one table. Bytes are hexadecimal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstatePage {
    pub table: String,
    pub rows: Vec<Vec<Json>>,
}

/// What the newest manifest of a person holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownManifest {
    pub number: i64,
    pub state: i64,
}

/// Reads everything the catalogue knows of a person.
pub struct EstateReader {
    session: Session,
    person: PersonId,
    /// Tells this state of the person's rows apart from others.
    pub state: i64,
    /// The time of the database.
    pub read_at: Instant,
    table: usize,
    /// The values of the last row by which its table is ordered; none before its first page.
    after: Vec<Value>,
    /// Type and id of the piece of the last blob.
    blobs_after: (String, Vec<u8>),
}

/// Puts back what was read of a person.
pub struct EstateWriter {
    session: Session,
    person: PersonId,
    /// The person exists already, but nothing else is known of them.
    is_known: bool,
}

impl Catalog {
    /// Begins to read everything known of a person; `None` if nobody has this id.
    pub async fn read_estate(&self, person: PersonId) -> Result<Option<EstateReader>, CatalogError> {
        let mut session = self.database.read().await?;
        // Not later than anything that is read.
        let read_at = session.now(&*self.time).await?;
        let Some(state) = state_of(&mut session, person).await? else {
            return Ok(None);
        };
        Ok(Some(EstateReader {
            read_at,
            session,
            person,
            state,
            table: 0,
            after: Vec::new(),
            blobs_after: (String::new(), Vec::new()),
        }))
    }

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

    /// Begins to put back a person's rows; `None` if something is known of them already.
    pub async fn restore_estate(&self, person: PersonId) -> Result<Option<EstateWriter>, CatalogError> {
        let mut session = self.database.write().await?;
        let known = session
            .select(&PEOPLE, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let ledger = session
            .select(&LEDGERS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let folders = session
            .select(&FOLDERS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let only_sessions = folders.iter().all(|folder| {
            folder
                .text(1)
                .is_ok_and(|kind| kind == DocumentKind::Session.as_str())
        });
        let is_blank = match ledger.first() {
            Some(ledger) => Ledger::of(ledger)?.holds_nothing() && only_sessions,
            None => known.is_empty(),
        };
        if !is_blank {
            session.rollback().await?;
            return Ok(None);
        }
        // A token made meanwhile is not among what comes back; another one can be made.
        for table in [LINKS.name, DOCUMENTS.name, FOLDERS.name] {
            let sql = format!("DELETE FROM {table} WHERE person = $1");
            session.execute(sql, vec![id(person.0)]).await?;
        }
        Ok(Some(EstateWriter {
            session,
            person,
            is_known: !known.is_empty(),
        }))
    }

    /// What the newest manifest of a person holds, as far as it was noted here.
    pub async fn known_manifest(&self, person: PersonId) -> Result<Option<KnownManifest>, CatalogError> {
        let found = self
            .database
            .find_once(&MANIFESTS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        found
            .first()
            .map(|row| {
                Ok(KnownManifest {
                    number: row.int(1)?,
                    state: row.int(2)?,
                })
            })
            .transpose()
    }

    /// The numbers of the newest manifests that were noted here, by person, of those after `after`; a
    /// thousand at most. Damaged notes are set aside; nothing sound is the end.
    pub async fn known_manifests(
        &self,
        after: Option<PersonId>,
    ) -> Result<WithDamage<(PersonId, i64)>, CatalogError> {
        let after = after.map_or_else(|| Value::Bytes(Vec::new()), |person| id(person.0));
        let rest = "WHERE person > $1 ORDER BY person";
        let found = self.sound_page(&MANIFESTS, rest, vec![after], PAGE_MANIFESTS);
        found
            .await?
            .try_map(|row| Ok((row.id(0, PersonId::from_slice)?, row.int(1)?)))
    }

    /// Notes a manifest, unless one with a higher number was noted. `older`: there are older ones. Returns
    /// whether it was noted.
    pub async fn note_manifest(
        &self,
        person: PersonId,
        manifest: KnownManifest,
        older: bool,
    ) -> Result<bool, CatalogError> {
        let mut session = self.database.write().await?;
        let now = session.now(&*self.time).await?;
        let row = vec![
            id(person.0),
            Value::Int(manifest.number),
            Value::Int(manifest.state),
            Value::Int(now.micros()),
        ];
        // A row that is not there cannot be locked, so one is made before it is looked at.
        let made = session
            .insert(&MANIFESTS, vec![row.clone()], Existing::Keep)
            .await?;
        if made.rows == 0 {
            if noted_number(&mut session, person).await? > Some(manifest.number) {
                session.rollback().await?;
                return Ok(false);
            }
            session.insert(&MANIFESTS, vec![row], Existing::Replace).await?;
        }
        if older {
            note_older_manifests(&mut session, person, now).await?;
        }
        session.commit().await?;
        Ok(true)
    }
}

/// The number of the newest manifest of a person that was noted, which stays so until the transaction ends.
async fn noted_number(session: &mut Session, person: PersonId) -> Result<Option<i64>, CatalogError> {
    let rest = format!("WHERE person = $1{}", session.locking());
    match session.select(&MANIFESTS, &rest, vec![id(person.0)]).await {
        // What is damaged says nothing.
        Err(CatalogError::Corrupt { .. }) => Ok(None),
        found => found?.first().map(|row| row.int(1)).transpose(),
    }
}

impl EstateReader {
    /// The tables that pages may come from, each with the names of its columns.
    #[must_use]
    pub fn columns() -> Vec<(&'static str, Vec<&'static str>)> {
        let mut columns: Vec<_> = TABLES
            .iter()
            .map(|table| (table.name, table.columns.iter().map(|(name, _)| *name).collect()))
            .collect();
        columns.push((BLOBS, vec!["piece", "blob"]));
        columns
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<EstatePage>, CatalogError> {
        while let Some(table) = TABLES.get(self.table) {
            let page = self.page(table).await?;
            // One that is not full is the last of its table.
            if (page.len() as i64) < PAGE_ROWS {
                self.table += 1;
                self.after = Vec::new();
            } else if let Some(last) = page.last() {
                self.after = last.values_of(table, &order_of(table));
            }
            if page.is_empty() {
                continue;
            }
            return Ok(Some(EstatePage {
                table: table.name.to_owned(),
                rows: page
                    .into_iter()
                    .map(|row| row.into_values().into_iter().map(json_of).collect())
                    .collect(),
            }));
        }
        self.blobs().await
    }

    /// Ends the reading.
    pub async fn end(self) -> Result<(), CatalogError> {
        self.session.commit().await
    }

    async fn page(&mut self, table: &Table) -> Result<Vec<VerifiedRow>, CatalogError> {
        let mut values = vec![id(self.person.0), Value::Int(PAGE_ROWS)];
        values.extend_from_slice(&self.after);
        let rest = page_of(table, self.after.is_empty());
        self.session.select(table, &rest, values).await
    }

    async fn blobs(&mut self) -> Result<Option<EstatePage>, CatalogError> {
        let (data_type, piece) = self.blobs_after.clone();
        let values = vec![
            id(self.person.0),
            Value::Text(data_type),
            Value::Bytes(piece),
            Value::Int(PAGE_BLOBS),
        ];
        let mut rows = Vec::new();
        for row in self.session.fetch(PAGE_OF_BLOBS.to_owned(), values).await? {
            let (piece, blob) = (row.bytes(0)?, row.bytes(1)?);
            if i64::from(crc32fast::hash(&blob)) != row.int(2)? {
                return Err(CatalogError::corrupt(
                    "a tail piece differs from what was written",
                ));
            }
            self.blobs_after = (row.text(3)?, piece.clone());
            rows.push(vec![
                Json::String(hexadecimal(&piece)),
                Json::String(hexadecimal(&blob)),
            ]);
        }
        Ok((!rows.is_empty()).then(|| EstatePage {
            table: BLOBS.to_owned(),
            rows,
        }))
    }
}

impl EstateWriter {
    /// Puts rows back.
    pub async fn put(&mut self, page: EstatePage) -> Result<(), CatalogError> {
        if page.table == BLOBS {
            let mut blobs = Vec::with_capacity(page.rows.len());
            for row in page.rows {
                let mut parts = row
                    .into_iter()
                    .map(|part| part.as_str().and_then(bytes_of).ok_or_else(unreadable));
                let (Some(piece), Some(blob)) = (parts.next(), parts.next()) else {
                    return Err(unreadable());
                };
                blobs.push((piece?, blob?));
            }
            return self.session.insert_blobs(blobs).await;
        }
        let table = TABLES
            .iter()
            .find(|table| table.name == page.table)
            .ok_or_else(unreadable)?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            if row.len() != table.columns.len() {
                return Err(unreadable());
            }
            let values = table.columns.iter().zip(row);
            let values = values
                .map(|((_, kind), value)| value_of(*kind, value).ok_or_else(unreadable))
                .collect::<Result<Vec<_>, _>>()?;
            let owner = table.columns.iter().position(|(name, _)| *name == "person");
            if owner.and_then(|owner| values.get(owner)) != Some(&id(self.person.0)) {
                return Err(unreadable());
            }
            rows.push(values);
        }
        if table.name == PEOPLE.name && !self.is_known {
            enrol(&mut self.session, rows).await?;
        } else {
            let existing = match table.name {
                name if name == PEOPLE.name || name == LEDGERS.name => Existing::Replace,
                _ => Existing::Refuse,
            };
            self.session.insert(table, rows, existing).await?;
        }
        Ok(())
    }

    /// Makes the rows durable, if they are all of one state, with nothing missing and nothing extra.
    pub async fn finish(mut self) -> Result<(), CatalogError> {
        let rows = verify_partitions(&mut self.session, self.person).await?;
        read_partitions(&mut self.session, self.person, rows).await?;
        self.session.commit().await
    }

    /// Rolls back and leaves the catalogue as it was.
    pub async fn give_up(self) -> Result<(), CatalogError> {
        self.session.rollback().await
    }
}

/// The columns by which a person's rows of a table are read page by page. Together they are unique, and after
/// the person they are the beginning of an index: so no page walks past the rows before it.
fn order_of(table: &Table) -> Vec<&'static str> {
    if table.name == DOCUMENTS.name {
        // Their key begins with the kind, so it would lead through the documents of everybody.
        return vec!["kind", "created_at", "document"];
    }
    let key = table.columns.iter().take(table.key).map(|(name, _)| *name);
    key.filter(|name| *name != "person").collect()
}

/// The rest of the statement that reads a page of a table: of the person `$1`, at most `$2` rows, and unless
/// it is the first, those after the values from `$3` on.
fn page_of(table: &Table, is_first: bool) -> String {
    let order = order_of(table);
    if order.is_empty() {
        return "WHERE person = $1 LIMIT $2".to_owned();
    }
    let columns = order.join(", ");
    if is_first {
        return format!("WHERE person = $1 ORDER BY {columns} LIMIT $2");
    }
    let marks: Vec<String> = (0..order.len()).map(|index| format!("${}", index + 3)).collect();
    let marks = marks.join(", ");
    format!("WHERE person = $1 AND ({columns}) > ({marks}) ORDER BY {columns} LIMIT $2")
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

async fn state_of(session: &mut Session, person: PersonId) -> Result<Option<i64>, CatalogError> {
    let mut sum = StateSum::default();
    for (table, rest) in parts_of_state() {
        sum.add(table, &session.select(table, &rest, vec![id(person.0)]).await?);
    }
    Ok(sum.state())
}

fn unreadable() -> CatalogError {
    CatalogError::corrupt("what was written down of a person is not what this release writes")
}

fn json_of(value: Value) -> Json {
    match value {
        Value::Int(value) => Json::from(value),
        Value::Text(value) => Json::String(value),
        Value::Bytes(value) => Json::String(hexadecimal(&value)),
        Value::NullInt | Value::NullText => Json::Null,
    }
}

fn value_of(kind: Kind, value: Json) -> Option<Value> {
    match (kind, value) {
        (Kind::Int | Kind::OptionalInt, Json::Number(value)) => value.as_i64().map(Value::Int),
        (Kind::Text | Kind::OptionalText, Json::String(value)) => Some(Value::Text(value)),
        (Kind::Bytes, Json::String(value)) => bytes_of(&value).map(Value::Bytes),
        (Kind::OptionalInt, Json::Null) => Some(Value::NullInt),
        (Kind::OptionalText, Json::Null) => Some(Value::NullText),
        _ => None,
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let value = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(value(high)? << 4 | value(low)?))
        .collect()
}
