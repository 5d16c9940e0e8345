//! Creates and changes a person's own types, and brings back those that come from elsewhere.
//!
//! Knows definitions and their versions; knows nothing of names, or of the rows stored under a type.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::{OwnType, Types, TypesError, definition_of};
use crate::catalog::records::StoredDefinition;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, DataType, Definition};
use crate::people::attempts::repeat_while_overtaken;
use crate::people::condition::Condition;
use crate::people::documents::BroughtBack;

impl Types {
    /// Creates a type of `owner` from the body of a request.
    pub async fn create(&self, owner: PersonId, base: Base, body: &Value) -> Result<OwnType, TypesError> {
        let definition = Definition::read(base, body).map_err(TypesError::Invalid)?;
        let now = self.clock.now();
        let id = self.ids.next();
        let stored = StoredDefinition {
            id,
            person: owner,
            base: base.as_str().to_owned(),
            body: text_of(id, &definition)?,
            version: 1,
            deprecated: definition.deprecated,
            created_at: now,
            updated_at: now,
        };
        let made = self.made_from(stored)?;
        let is_new = self
            .catalog
            .insert_definition_within(&made.definition, self.limit);
        if is_new.await? {
            Ok(made)
        } else {
            Err(TypesError::LimitReached(self.limit))
        }
    }

    /// Changes the parts of `owner`'s type that `body` contains; stored records stay as they are.
    pub async fn change(
        &self,
        owner: PersonId,
        base: Base,
        id: Uuid,
        body: &Value,
        condition: &Condition,
    ) -> Result<OwnType, TypesError> {
        let attempt = || self.try_change(owner, base, id, body, condition);
        repeat_while_overtaken(attempt).await
    }

    async fn try_change(
        &self,
        owner: PersonId,
        base: Base,
        id: Uuid,
        body: &Value,
        condition: &Condition,
    ) -> Result<OwnType, TypesError> {
        let unknown = || TypesError::Unknown {
            name: format!("{base}/{id}"),
            nearest: None,
        };
        let own = self
            .own(owner, id)
            .await?
            .filter(|own| own.definition.base == base.as_str())
            .ok_or_else(unknown)?;
        condition.hold().await?;
        let amended = definition_of(&own.definition)?
            .amended(body)
            .map_err(TypesError::Invalid)?;
        let before = own.definition.version;
        let stored = StoredDefinition {
            body: text_of(id, &amended)?,
            version: before + 1,
            deprecated: amended.deprecated,
            updated_at: self.clock.now(),
            ..own.definition
        };
        let made = self.made_from(stored)?;
        if self.catalog.update_definition(&made.definition, before).await? {
            Ok(made)
        } else {
            Err(TypesError::Overtaken)
        }
    }

    /// The type that a definition from elsewhere would be; fails if the definition cannot be brought back.
    pub fn judge(&self, stored: StoredDefinition) -> Result<Arc<DataType>, TypesError> {
        if Base::named(&stored.base).is_none() {
            return Err(TypesError::Damaged {
                id: stored.id,
                reason: format!("{} is no base of own types", stored.base),
            });
        }
        // As whoever defines it here is told.
        definition_of(&stored)?.validate().map_err(TypesError::Invalid)?;
        Ok(self.made_from(stored)?.data_type)
    }

    /// Brings back a definition as it was elsewhere. The later of two states counts.
    pub async fn bring_back(&self, stored: StoredDefinition) -> Result<BroughtBack, TypesError> {
        let stored = self.made_from(stored)?.definition;
        let Some(here) = self.catalog.definition(stored.id).await? else {
            self.catalog.insert_definition(&stored).await?;
            return Ok(BroughtBack::New);
        };
        let stored = StoredDefinition {
            version: here.version,
            ..stored
        };
        if stored == here {
            return Ok(BroughtBack::Same);
        }
        if here.updated_at > stored.updated_at {
            return Ok(BroughtBack::Outdated);
        }
        let replacing = StoredDefinition {
            version: here.version + 1,
            ..stored
        };
        if self.catalog.update_definition(&replacing, here.version).await? {
            Ok(BroughtBack::Replaced)
        } else {
            Err(TypesError::Overtaken)
        }
    }
}

fn text_of(id: Uuid, definition: &Definition) -> Result<String, TypesError> {
    serde_json::to_string(definition).map_err(|error| TypesError::Damaged {
        id,
        reason: error.to_string(),
    })
}
