//! Data types that people defined. Their bodies are opaque here.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Catalog;
use super::counted_rows::{CountedRows, DEFINITIONS_KIND, read_counted};
use super::database::Value;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::records::StoredDefinition;
use super::registers::change_register;
use super::rows::{id, text};
use super::tables::DEFINITIONS;
use super::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// Tells the states of a person's definitions apart. The sum of versions grows with every change; the moment
/// differs where a restored catalogue counts up to the same sum again. (In the digest of their register two
/// changes may cancel each other out.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionsStamp {
    definitions: i64,
    versions: i64,
    latest: i64,
}

impl Catalog {
    /// Stores a new definition.
    pub async fn insert_definition(&self, definition: &StoredDefinition) -> Result<(), CatalogError> {
        self.insert_definition_within(definition, u64::MAX)
            .await
            .map(drop)
    }

    /// Stores a new definition, unless its owner already has `limit` definitions: then nothing happens and
    /// this returns `false`.
    pub async fn insert_definition_within(
        &self,
        definition: &StoredDefinition,
        limit: u64,
    ) -> Result<bool, CatalogError> {
        let owner = definition.person;
        let mut session = self.change_of(&BTreeSet::from([owner])).await?;
        let has = read_counted(&mut session, owner, DEFINITIONS_KIND).await?;
        if has.count.unsigned_abs() >= limit {
            session.rollback().await?;
            return Ok(false);
        }
        let written = session
            .insert(&DEFINITIONS, vec![values(definition)], Existing::Refuse)
            .await?;
        let gain = |counted: &mut CountedRows| counted.gain(&written.checksums);
        change_register(&mut session, owner, DEFINITIONS_KIND, gain).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// Stores a changed definition, unless somebody else changed it since version `expected` was read: then
    /// nothing happens and this returns `false`.
    pub async fn update_definition(
        &self,
        definition: &StoredDefinition,
        expected: i64,
    ) -> Result<bool, CatalogError> {
        let owner = definition.person;
        let mut session = self.change_of(&BTreeSet::from([owner])).await?;
        let rest = format!("WHERE definition = $1{}", session.locking());
        let found = session
            .select(&DEFINITIONS, &rest, vec![id(definition.id)])
            .await?;
        let Some(found) = found.first() else {
            return Err(CatalogError::Missing {
                what: format!("definition {}", definition.id),
            });
        };
        if definition_of(found)?.version != expected {
            session.rollback().await?;
            return Ok(false);
        }
        let before = found.checksum;
        let written = session
            .insert(&DEFINITIONS, vec![values(definition)], Existing::Replace)
            .await?;
        let change = |counted: &mut CountedRows| {
            counted.digest = written
                .checksums
                .iter()
                .fold(counted.digest ^ before, |digest, one| digest ^ one);
        };
        change_register(&mut session, owner, DEFINITIONS_KIND, change).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    pub async fn definition(&self, definition: Uuid) -> Result<Option<StoredDefinition>, CatalogError> {
        let found = self
            .database
            .find(&DEFINITIONS, "WHERE definition = $1", vec![id(definition)])
            .await?;
        found.first().map(definition_of).transpose()
    }

    /// A person's definitions, archived ones included, oldest first.
    pub async fn definitions_of(&self, person: PersonId) -> Result<Vec<StoredDefinition>, CatalogError> {
        let counted = (&DEFINITIONS, DEFINITIONS_KIND);
        let rows = self
            .registered(person, counted, "ORDER BY created_at, definition")
            .await?;
        rows.iter().map(definition_of).collect()
    }

    /// The state of a person's definitions, without reading their bodies.
    pub async fn definitions_stamp(&self, person: PersonId) -> Result<DefinitionsStamp, CatalogError> {
        let summed = "SELECT COUNT(*), CAST(COALESCE(SUM(version), 0) AS BIGINT), COALESCE(MAX(updated_at), \
                      0) FROM definitions WHERE person = $1";
        let rows = self
            .database
            .look_up(summed.to_owned(), vec![id(person.0)])
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("a sum has no row"))?;
        Ok(DefinitionsStamp {
            definitions: row.int(0)?,
            versions: row.int(1)?,
            latest: row.int(2)?,
        })
    }
}

fn values(definition: &StoredDefinition) -> Vec<Value> {
    vec![
        id(definition.id),
        id(definition.person.0),
        text(&definition.base),
        text(&definition.body),
        Value::Int(definition.version),
        Value::Int(i64::from(definition.deprecated)),
        Value::Int(definition.created_at.micros()),
        Value::Int(definition.updated_at.micros()),
    ]
}

fn definition_of(row: &VerifiedRow) -> Result<StoredDefinition, CatalogError> {
    Ok(StoredDefinition {
        id: row.id(0, |bytes| Uuid::from_slice(bytes).ok())?,
        person: row.id(1, PersonId::from_slice)?,
        base: row.text(2)?.to_owned(),
        body: row.text(3)?.to_owned(),
        version: row.int(4)?,
        deprecated: row.int(5)? != 0,
        created_at: Instant::from_micros(row.int(6)?),
        updated_at: Instant::from_micros(row.int(7)?),
    })
}
