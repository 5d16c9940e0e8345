//! Removes a person's own rows, in small steps.
//!
//! Each step finds its work by looking for it, so it does not matter where the last one stopped. Knows which
//! tables have an owner, and which name objects.

use crate::catalog::Catalog;
use crate::catalog::erasure::Erasure;
use crate::catalog::errors::CatalogError;
use crate::catalog::facts::{DAMAGE, SCRUB_FACTS};
use crate::catalog::roster::strike;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{ALL, ERASURES, META, ORPHANS, PEOPLE, PIECES, RETIRED_OBJECTS, Table};
use crate::catalog::verified_rows::one_of;
use crate::model::ids::PersonId;

/// How many rows one step removes.
const ROWS_AT_ONCE: i64 = 1_000;
/// How many pieces one step removes, each perhaps with bytes of the tail.
const PIECES_AT_ONCE: i64 = 64;
/// How many rows one statement removes by their keys.
const KEYS_AT_ONCE: usize = 64;

impl Catalog {
    /// Removes some of the person's own rows. `false` when there were none, or the erasure is over.
    pub async fn erase_own(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let Some(person) = erasure.person else {
            return Ok(false);
        };
        // Each table after those that refer to it.
        for table in ALL.iter().rev().filter(|table| goes_with_person(table)) {
            if self.erase_rows(erasure, table, person).await? > 0 {
                return Ok(true);
            }
        }
        if self.erase_paths(erasure, person).await? > 0 {
            return Ok(true);
        }
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(false);
        };
        let was_there = strike(&mut session, person).await?;
        self.conclude(session).await?;
        Ok(was_there)
    }

    async fn erase_rows(
        &self,
        erasure: &Erasure,
        table: &Table,
        person: PersonId,
    ) -> Result<u64, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(0);
        };
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

    /// Removes rows that name the person's objects.
    async fn erase_paths(&self, erasure: &Erasure, person: PersonId) -> Result<u64, CatalogError> {
        let objects = format!("%/{person}/%");
        let mut removed = 0;
        for table in [&RETIRED_OBJECTS, &ORPHANS] {
            removed += self.erase_named(erasure, table, "path LIKE $1", &objects).await?;
        }
        // Facts that name objects or people; no other fact names a person.
        let of_person = format!(
            "(name LIKE '{DAMAGE}%' OR name LIKE '{SCRUB_FACTS}%') AND (name LIKE $1 OR value LIKE $1)"
        );
        removed += self
            .erase_named(erasure, &META, &of_person, &format!("%{person}%"))
            .await?;
        Ok(removed)
    }

    /// Removes the rows of a table that fit a condition on `pattern`, `$1`. All of the table is looked at for
    /// them, before each transaction: nobody else's changes wait for that.
    async fn erase_named(
        &self,
        erasure: &Erasure,
        table: &Table,
        condition: &str,
        pattern: &str,
    ) -> Result<u64, CatalogError> {
        let (name, key) = (table.name, table.key_columns());
        let next = format!(
            "SELECT {key} FROM {name} WHERE {condition} AND {key} > $2 ORDER BY {key} LIMIT {ROWS_AT_ONCE}"
        );
        let (mut removed, mut after) = (0, String::new());
        loop {
            let values = vec![text(pattern), text(&after)];
            let mut keys = Vec::new();
            for row in self.database.fetch(next.clone(), values).await? {
                keys.push(row.text(0)?);
            }
            let Some(last) = keys.last() else {
                return Ok(removed);
            };
            after.clone_from(last);
            let Some(mut session) = self.while_under_way(erasure).await? else {
                return Ok(removed);
            };
            let mut gone = 0;
            for some in keys.chunks(KEYS_AT_ONCE) {
                let (list, mut values) = one_of(2, some.iter().map(|key| text(key)).collect());
                values.insert(0, text(pattern));
                let sql = format!("DELETE FROM {name} WHERE {condition} AND {key} IN {list}");
                gone += session.execute(sql, values).await?;
            }
            removed += self.conclude_if(session, gone).await?;
        }
    }
}

/// Whether the rows of a table belong to a person and go with them. Not `people`, which goes last, nor
/// `erasures`, which stays.
fn goes_with_person(table: &Table) -> bool {
    table.has_owner() && table.name != PEOPLE.name && table.name != ERASURES.name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_with_a_person_in_it_goes_with_them() {
        let kept: Vec<&str> = ALL
            .iter()
            .filter(|table| table.has_owner() && !goes_with_person(table))
            .map(|table| table.name)
            .collect();
        assert_eq!(kept, ["people", "erasures"]);
    }
}
