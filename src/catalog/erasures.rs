//! People whose erasure was begun, and what the catalogue still knows of them.
//!
//! Erasing begins with one transaction, after which nobody stores or reads anything of the person, and goes
//! on in small ones that can stop anywhere: what they remove is found again by looking for it. Which tables
//! are somebody's is told by their columns, so that a new one cannot be forgotten. Knows rows; knows nothing
//! of what they mean, and nothing of the object store.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use uuid::Uuid;

use super::Catalog;
use super::committing::{Patience, lock_people};
use super::database::{Session, Value};
use super::deletions::note_to_write_down;
use super::documents::{DocumentKind, read_folder, write_folder};
use super::errors::CatalogError;
use super::granting::MEMBER_OF;
use super::registers::strike;
use super::rows::{id, text};
use super::tables::{
    ACCESS_LOG, ALL, DEFINITIONS, DOCUMENTS, ERASURES, Existing, FOLDERS, Kind, LEDGERS, LINKS, MANIFESTS,
    META, PARTITIONS, PEOPLE, PIECES, RETIRED_OBJECTS, Record, SOURCES, STRAYS, Table,
};
use super::witness::is_repeated;
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// What goes in the first transaction: everything by which something else is found, and everything that is
/// counted, so that what is left of a person never looks like damage.
const FIRST: [&Table; 8] = [
    &LINKS,
    &DOCUMENTS,
    &FOLDERS,
    &SOURCES,
    &DEFINITIONS,
    &MANIFESTS,
    &PARTITIONS,
    &LEDGERS,
];
/// Rows that one step removes.
const ROWS_AT_ONCE: i64 = 1_000;
/// Pieces that one step removes, each perhaps with bytes of the tail.
const PIECES_AT_ONCE: i64 = 64;
/// Rows of others that one step changes.
const MENTIONS_AT_ONCE: i64 = 64;
/// Facts that name objects; no other fact is about a person.
const FACTS_OF_OBJECTS: &str = "(name LIKE 'damage:%' OR name LIKE 'scrub:%')";

/// Somebody is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub mark: ErasureMark,
    /// Who it is, as long as there may be something to look for.
    pub person: Option<PersonId>,
    pub begun_at: Instant,
    /// When somebody began to look for the last time and then left nothing.
    pub purged_at: Option<Instant>,
    /// When it was over.
    pub ended_at: Option<Instant>,
}

/// Rows in which somebody is still to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub table: String,
    pub rows: u64,
}

impl Erasure {
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether a token that was issued at a moment, or nobody knows when, may be accepted.
    #[must_use]
    pub fn admits(&self, issued: Option<Instant>) -> bool {
        self.is_over() && issued.is_some_and(|issued| issued > self.begun_at)
    }

    fn of(record: &Record) -> Result<Self, CatalogError> {
        Ok(Self {
            mark: record.id(0, ErasureMark::from_slice)?,
            person: PersonId::from_slice(record.bytes(1)?),
            begun_at: Instant::from_micros(record.int(2)?),
            purged_at: record.optional_int(3).map(Instant::from_micros),
            ended_at: record.optional_int(4).map(Instant::from_micros),
        })
    }

    fn values(&self) -> Vec<Value> {
        let moment = |moment: Option<Instant>| moment.map_or(Value::NullInt, |at| Value::Int(at.micros()));
        vec![
            Value::Bytes(self.mark.as_bytes().to_vec()),
            Value::Bytes(
                self.person
                    .map_or_else(Vec::new, |person| person.as_bytes().to_vec()),
            ),
            Value::Int(self.begun_at.micros()),
            moment(self.purged_at),
            moment(self.ended_at),
        ]
    }
}

impl Catalog {
    /// Begins to erase somebody, unless that is under way already. When this returns `Ok`, nothing of theirs
    /// is found any more, and nothing is stored for them until the erasure is over.
    pub async fn begin_erasure(&self, person: PersonId) -> Result<Erasure, CatalogError> {
        let mut attempt = 0;
        loop {
            match self.try_begin_erasure(person).await {
                Err(error) if is_repeated(&error, attempt).await => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn try_begin_erasure(&self, person: PersonId) -> Result<Erasure, CatalogError> {
        let mut session = self.database.write().await?;
        let mark = ErasureMark::of(person);
        // Not verified: damage to what somebody stored is no reason to keep it.
        let ledger = format!(
            "SELECT person FROM ledgers WHERE person = $1{}",
            session.locking()
        );
        session.fetch(ledger.clone(), vec![id(person.0)]).await?;
        session.lock_alone(ERASURES.name).await?;
        // Somebody may have stored the first thing of theirs until then.
        session.fetch(ledger, vec![id(person.0)]).await?;
        if let Some(under_way) = read(&mut session, mark).await?.filter(|found| !found.is_over()) {
            session.rollback().await?;
            return Ok(under_way);
        }
        for table in FIRST {
            let sql = format!("DELETE FROM {} WHERE person = $1", table.name);
            session.execute(sql, vec![id(person.0)]).await?;
        }
        let erasure = Erasure {
            mark,
            person: Some(person),
            begun_at: session.now(&*self.time).await?,
            purged_at: None,
            ended_at: None,
        };
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        self.conclude(session).await?;
        Ok(erasure)
    }

    /// What is known of somebody's erasure, under way or over.
    pub async fn erasure_of(&self, person: PersonId) -> Result<Option<Erasure>, CatalogError> {
        self.erasure_marked(ErasureMark::of(person)).await
    }

    /// The same of somebody of whom only the mark is known.
    pub async fn erasure_marked(&self, mark: ErasureMark) -> Result<Option<Erasure>, CatalogError> {
        let values = vec![Value::Bytes(mark.as_bytes().to_vec())];
        let found = self.database.find(&ERASURES, "WHERE mark = $1", values).await?;
        found.first().map(Erasure::of).transpose()
    }

    /// Those that are not over, the longest under way first.
    pub async fn erasures_under_way(&self) -> Result<Vec<Erasure>, CatalogError> {
        let rest = "WHERE ended_at IS NULL ORDER BY begun_at, mark";
        let found = self.database.select(&ERASURES, rest, Vec::new()).await?;
        found.iter().map(Erasure::of).collect()
    }

    /// Takes note of how far an erasure has come.
    pub async fn note_erasure(&self, erasure: &Erasure) -> Result<(), CatalogError> {
        let mut session = self.database.write().await?;
        session.lock_alone(ERASURES.name).await?;
        session
            .insert(&ERASURES, vec![erasure.values()], Existing::Replace)
            .await?;
        self.conclude(session).await
    }

    /// Removes some of what is left of somebody. `false` when nothing was.
    pub async fn purge_some(&self, person: PersonId) -> Result<bool, CatalogError> {
        // Each table after those that refer to it.
        for table in ALL.iter().rev().filter(|table| is_purged(table)) {
            if self.purge_rows(table, person).await? > 0 {
                return Ok(true);
            }
        }
        if self.purge_paths(person).await? > 0
            || self.purge_links(person).await? > 0
            || self.purge_memberships().await? > 0
            || self.purge_bodies(person).await? > 0
            || self.purge_log(person).await? > 0
        {
            return Ok(true);
        }
        let mut session = self.database.write().await?;
        let was_there = strike(&mut session, person).await?;
        self.conclude(session).await?;
        Ok(was_there)
    }

    /// Where somebody is still to be found, in any column of any table.
    pub async fn traces_of(&self, person: PersonId) -> Result<Vec<Trace>, CatalogError> {
        let is_under_way = self
            .erasure_of(person)
            .await?
            .is_some_and(|erasure| !erasure.is_over());
        let mut traces = Vec::new();
        // An erasure that is under way has to know whose it is.
        for table in ALL
            .iter()
            .filter(|table| !(is_under_way && table.name == ERASURES.name))
        {
            let (condition, values) = mentioning(table, person);
            let sql = format!("SELECT COUNT(*) FROM {} WHERE {condition}", table.name);
            self.trace(table.name, sql, values, &mut traces).await?;
        }
        let strange = "SELECT COUNT(*) FROM blobs WHERE NOT EXISTS \
                       (SELECT 1 FROM pieces WHERE pieces.piece = blobs.piece)";
        let whose = "blobs, of no piece: nobody can tell whose,";
        self.trace(whose, strange.to_owned(), Vec::new(), &mut traces)
            .await?;
        Ok(traces)
    }

    async fn trace(
        &self,
        table: &str,
        sql: String,
        values: Vec<Value>,
        traces: &mut Vec<Trace>,
    ) -> Result<(), CatalogError> {
        let rows = self.database.fetch(sql, values).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        if count > 0 {
            traces.push(Trace {
                table: table.to_owned(),
                rows: count.unsigned_abs(),
            });
        }
        Ok(())
    }

    /// Overwrites what removed rows leave behind in the database's own files, where the database can be told
    /// to.
    pub async fn scour(&self) -> Result<(), CatalogError> {
        self.database.scour().await
    }

    async fn purge_rows(&self, table: &Table, person: PersonId) -> Result<u64, CatalogError> {
        let mut session = self.database.write().await?;
        let key = table.key_columns();
        let some = |limit: i64| {
            format!(
                "({key}) IN (SELECT {key} FROM {} WHERE person = $1 ORDER BY {key} LIMIT {limit})",
                table.name
            )
        };
        let limit = if table.name == PIECES.name {
            let blobs = format!(
                "DELETE FROM blobs WHERE piece IN (SELECT piece FROM pieces WHERE person = $1 ORDER BY {key} \
                 LIMIT {PIECES_AT_ONCE})"
            );
            session.execute(blobs, vec![id(person.0)]).await?;
            PIECES_AT_ONCE
        } else {
            ROWS_AT_ONCE
        };
        let sql = format!("DELETE FROM {} WHERE {}", table.name, some(limit));
        let removed = session.execute(sql, vec![id(person.0)]).await?;
        self.conclude_if(session, removed).await
    }

    /// What names objects of the person.
    async fn purge_paths(&self, person: PersonId) -> Result<u64, CatalogError> {
        let mut session = self.database.write().await?;
        let named = || vec![text(&format!("%/{person}/%"))];
        let mut removed = 0;
        for table in [&RETIRED_OBJECTS, &STRAYS] {
            let sql = format!("DELETE FROM {} WHERE path LIKE $1", table.name);
            removed += session.execute(sql, named()).await?;
        }
        let sql = format!(
            "DELETE FROM {} WHERE {FACTS_OF_OBJECTS} AND (name LIKE $1 OR value LIKE $1)",
            META.name
        );
        removed += session.execute(sql, vec![text(&format!("%{person}%"))]).await?;
        self.conclude_if(session, removed).await
    }

    /// Links of other people's documents that lead to the person: shares with them, invitations.
    async fn purge_links(&self, person: PersonId) -> Result<u64, CatalogError> {
        let rest = "WHERE target = $1 AND person <> $1 ORDER BY document LIMIT $2";
        let values = vec![id(person.0), Value::Int(MENTIONS_AT_ONCE)];
        let found = self.database.select(&LINKS, rest, values).await?;
        let mut changed = 0;
        for link in found {
            let owner = link.id(3, PersonId::from_slice)?;
            let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
            let mut session = self.locked(owner).await?;
            let of_kind = "WHERE document = $1 AND person = $2";
            let documents = session
                .select(&DOCUMENTS, of_kind, vec![id(document), id(owner.0)])
                .await?;
            let of_link = "WHERE kind = $1 AND target = $2 AND document = $3";
            let key = vec![text(link.text(0)?), id(person.0), id(document)];
            let present = session.select(&LINKS, of_link, key.clone()).await?;
            session
                .execute(format!("DELETE FROM {} {of_link}", LINKS.name), key)
                .await?;
            if let (Some(document), Some(link)) = (documents.first(), present.first()) {
                recount(&mut session, owner, document.text(0)?, 0, link.checksum).await?;
            }
            note_to_write_down(&mut session, owner).await?;
            self.conclude(session).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Memberships in groups that are gone, such as those of the person.
    async fn purge_memberships(&self) -> Result<u64, CatalogError> {
        let group = DocumentKind::Group.as_str();
        let rest = format!(
            "WHERE kind = $1 AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.kind = '{group}' AND \
             d.document = links.target) ORDER BY document LIMIT $2"
        );
        let values = vec![text(MEMBER_OF), Value::Int(MENTIONS_AT_ONCE)];
        let found = self.database.select(&LINKS, &rest, values).await?;
        let mut removed = 0;
        for link in found {
            let owner = link.id(3, PersonId::from_slice)?;
            let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
            let mut session = self.locked(owner).await?;
            let of_document = "WHERE document = $1 AND person = $2";
            let key = vec![id(document), id(owner.0)];
            let mut digest = 0;
            for table in [&LINKS, &DOCUMENTS] {
                let rows = session.select(table, of_document, key.clone()).await?;
                digest = rows.iter().fold(digest, |digest, row| digest ^ row.checksum);
                let sql = format!("DELETE FROM {} {of_document}", table.name);
                let gone = session.execute(sql, key.clone()).await?;
                if table.name == DOCUMENTS.name && gone > 0 {
                    let kind = DocumentKind::Membership.as_str();
                    recount(&mut session, owner, kind, -1, digest).await?;
                }
            }
            note_to_write_down(&mut session, owner).await?;
            self.conclude(session).await?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Other people's documents that name the person.
    async fn purge_bodies(&self, person: PersonId) -> Result<u64, CatalogError> {
        let rest = format!("WHERE person <> $1 AND {} LIMIT $3", says("body", 2));
        let values = vec![
            id(person.0),
            text(&person.to_string()),
            Value::Int(MENTIONS_AT_ONCE),
        ];
        let found = self.database.select(&DOCUMENTS, &rest, values).await?;
        let mut changed = 0;
        for document in found {
            let owner = document.id(2, PersonId::from_slice)?;
            let kind = document.text(0)?.to_owned();
            let mut session = self.locked(owner).await?;
            let current = session
                .select(
                    &DOCUMENTS,
                    "WHERE kind = $1 AND document = $2",
                    document.key(&DOCUMENTS),
                )
                .await?;
            if let Some(current) = current.into_iter().next() {
                let before = current.checksum;
                let body = without(current.text(4)?, person);
                let version = current.int(5)? + 1;
                let mut row = current.into_values();
                if let Some(value) = row.get_mut(4) {
                    *value = Value::Text(body);
                }
                if let Some(value) = row.get_mut(5) {
                    *value = Value::Int(version);
                }
                let written = session.insert(&DOCUMENTS, vec![row], Existing::Replace).await?;
                let after = written.checksums.first().copied().unwrap_or_default();
                recount(&mut session, owner, &kind, 0, before ^ after).await?;
            }
            note_to_write_down(&mut session, owner).await?;
            self.conclude(session).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Entries of other people's logs that name the person: they stay, and say that it was somebody.
    async fn purge_log(&self, person: PersonId) -> Result<u64, CatalogError> {
        let mut session = self.database.write().await?;
        let rest = format!(
            "WHERE person <> $1 AND (actor = $1 OR {}) LIMIT $3{}",
            says("body", 2),
            session.locking()
        );
        let values = vec![
            id(person.0),
            text(&person.to_string()),
            Value::Int(MENTIONS_AT_ONCE),
        ];
        let found = session.select(&ACCESS_LOG, &rest, values).await?;
        let changed = found.len() as u64;
        let mut rows = Vec::with_capacity(found.len());
        for entry in found {
            let body = without(entry.text(4)?, person);
            note_to_write_down(&mut session, entry.id(0, PersonId::from_slice)?).await?;
            let mut row = entry.into_values();
            if let Some(actor) = row.get_mut(3).filter(|actor| **actor == id(person.0)) {
                *actor = id(Uuid::nil());
            }
            if let Some(value) = row.get_mut(4) {
                *value = Value::Text(body);
            }
            rows.push(row);
        }
        session.insert(&ACCESS_LOG, rows, Existing::Replace).await?;
        self.conclude_if(session, changed).await
    }

    /// Commits what changed so many rows, if any; returns how many.
    async fn conclude_if(&self, session: Session, changed: u64) -> Result<u64, CatalogError> {
        if changed == 0 {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(changed)
    }

    /// A transaction in which nobody else changes what is `owner`'s.
    async fn locked(&self, owner: PersonId) -> Result<Session, CatalogError> {
        let mut session = self.database.write().await?;
        let people = BTreeSet::from([owner]);
        lock_people(&mut session, &people, self.clock.now(), Patience::Waits).await?;
        Ok(session)
    }
}

/// Refuses to make somebody whose erasure is under way. From here to the end of the transaction none begins.
pub(super) async fn refuse_erased(session: &mut Session, person: PersonId) -> Result<(), CatalogError> {
    session.lock_shared(ERASURES.name).await?;
    match read(session, ErasureMark::of(person)).await? {
        Some(erasure) if !erasure.is_over() => Err(CatalogError::Erased { person }),
        _ => Ok(()),
    }
}

async fn read(session: &mut Session, mark: ErasureMark) -> Result<Option<Erasure>, CatalogError> {
    let values = vec![Value::Bytes(mark.as_bytes().to_vec())];
    let found = session.select(&ERASURES, "WHERE mark = $1", values).await?;
    found.first().map(Erasure::of).transpose()
}

/// Tables whose rows are somebody's and go with them, except for the one that everything else refers to.
fn is_purged(table: &Table) -> bool {
    table.has_owner() && table.name != PEOPLE.name && table.name != ERASURES.name
}

/// Changes how many documents of a kind somebody has, and what must be among them.
async fn recount(
    session: &mut Session,
    owner: PersonId,
    kind: &str,
    more: i64,
    digest: u32,
) -> Result<(), CatalogError> {
    let mut folder = read_folder(session, owner, kind).await?;
    folder.documents += more;
    folder.digest ^= digest;
    write_folder(session, owner, kind, folder).await
}

/// Whether a column of text has parameter `number` in it, letter by letter, in the words of both databases.
fn says(column: &str, number: usize) -> String {
    format!("replace({column}, ${number}, '') <> {column}")
}

/// The condition under which a row has anything of a person in it, and its values.
fn mentioning(table: &Table, person: PersonId) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut numbered = |value: Value| {
        values.push(value);
        values.len()
    };
    for (column, kind) in table.columns {
        match kind {
            Kind::Int | Kind::OptionalInt => {}
            Kind::Bytes => conditions.push(format!("{column} = ${}", numbered(id(person.0)))),
            Kind::Text | Kind::OptionalText => {
                for written in [person.to_string(), person.0.simple().to_string()] {
                    let number = numbered(text(&written));
                    conditions.push(says(&format!("lower({column})"), number));
                }
            }
        }
    }
    (conditions.join(" OR "), values)
}

/// JSON text that does not name the person: they are taken out of lists, and are nobody elsewhere.
fn without(body: &str, person: PersonId) -> String {
    let name = person.to_string();
    let stripped = serde_json::from_str::<Json>(body).map_or_else(
        |_| body.to_owned(),
        |mut value| {
            strip(&mut value, &name);
            value.to_string()
        },
    );
    stripped.replace(&name, &Uuid::nil().to_string())
}

fn strip(value: &mut Json, name: &str) {
    match value {
        Json::Array(items) => {
            items.retain(|item| item.as_str() != Some(name));
            for item in items {
                strip(item, name);
            }
        }
        Json::Object(members) => {
            for member in members.values_mut() {
                strip(member, name);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_a_person_says_the_same_of_everybody_else() {
        let [gone, stays] = [1, 2].map(|number| PersonId(Uuid::from_u128(number)));
        let body = format!(r#"{{"invited":["{gone}","{stays}"],"owner":"{gone}","title":"{stays}"}}"#);
        let nobody = Uuid::nil();
        assert_eq!(
            without(&body, gone),
            format!(r#"{{"invited":["{stays}"],"owner":"{nobody}","title":"{stays}"}}"#)
        );
        assert_eq!(without("no JSON at all", gone), "no JSON at all");
    }

    #[test]
    fn every_table_with_a_person_in_it_is_purged() {
        let kept: Vec<&str> = ALL
            .iter()
            .filter(|table| table.has_owner() && !is_purged(table))
            .map(|table| table.name)
            .collect();
        assert_eq!(kept, ["people", "erasures"]);
    }

    #[test]
    fn a_token_is_admitted_again_when_the_erasure_is_over_and_it_is_younger() {
        let moment = Instant::from_micros;
        let erasure = |ended_at| Erasure {
            mark: ErasureMark::of(PersonId(Uuid::nil())),
            person: None,
            begun_at: moment(10),
            purged_at: Some(moment(20)),
            ended_at,
        };
        let (under_way, over) = (erasure(None), erasure(Some(moment(30))));
        assert!(!under_way.admits(Some(moment(25))));
        assert!(over.admits(Some(moment(11))));
        assert!(!over.admits(Some(moment(10))));
        assert!(!over.admits(None));
    }
}
