//! Tells an object that cannot be read, or a person whose key is lost, from a store or keys that fail.
//!
//! The former are missing in a copy, and the rest is copied. With the latter nothing could be, so a copy of
//! what happened to be read before would pass for one of everything. Copies nothing itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;
use crate::store::sealing::PersonKeys;
use crate::upkeep::identity;
use crate::upkeep::round::FAILURES_IN_A_ROW;

/// What could not be read while one copy is made.
pub(super) struct Unreadable<'a> {
    objects: &'a ObjectStorage,
    keys: Option<&'a Arc<PersonKeys>>,
    /// Of whom something could not be read since anything could be.
    in_a_row: BTreeSet<PersonId>,
    told: BTreeSet<String>,
}

impl<'a> Unreadable<'a> {
    pub(super) const fn new(objects: &'a ObjectStorage, keys: Option<&'a Arc<PersonKeys>>) -> Self {
        Self {
            objects,
            keys,
            in_a_row: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    /// Something was read.
    pub(super) fn has_read(&mut self) {
        self.in_a_row.clear();
    }

    /// Takes an error of reading an object of a person's. Describes what cannot be read, unless that was
    /// described before; an error here means that everything fails.
    pub(super) async fn judge(
        &mut self,
        person: PersonId,
        path: &str,
        error: StoreError,
    ) -> Result<Option<String>, StoreError> {
        let StoreError::Unavailable { detail } = error else {
            return Err(error);
        };
        identity::answers(self.objects).await?;
        let key = self.key_trouble(person).await?;
        self.in_a_row.insert(person);
        if self.in_a_row.len() >= FAILURES_IN_A_ROW {
            return Err(StoreError::Unavailable { detail });
        }
        let what = key.map_or_else(
            || format!("person {person}, object {path}: it cannot be read, so it was not copied: {detail}"),
            |trouble| format!("person {person}: what is encrypted was not copied: {trouble}"),
        );
        Ok(self.told.insert(what.clone()).then_some(what))
    }

    /// Why the key of a person cannot be used, if that is so; an error where no key can be.
    async fn key_trouble(&self, person: PersonId) -> Result<Option<String>, StoreError> {
        let Some(keys) = self.keys else { return Ok(None) };
        keys.try_some().await?;
        Ok(match keys.key_of(person).await {
            Ok(_) => None,
            Err(StoreError::Unavailable { detail }) => Some(detail),
            Err(error) => Some(error.to_string()),
        })
    }
}
