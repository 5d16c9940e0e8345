//! A person's own types, as they were at one moment.
//!
//! Knows definitions and what was made of them; must not know where they are stored.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::records::StoredDefinition;
use crate::model::registry::{DataType, TypeId};
use crate::model::text::composed;

/// The memory that an own type takes in a list besides its definition.
const TYPE_BYTES: usize = 512;

/// An own type with its stored definition.
#[derive(Clone, Debug)]
pub struct OwnType {
    pub definition: StoredDefinition,
    pub data_type: Arc<DataType>,
}

/// All own types of a person, archived ones too.
#[derive(Debug, Default)]
pub struct OwnTypes {
    /// The oldest first.
    all: Vec<OwnType>,
    /// The ids of those that are not archived, by name in the composed form: older names are stored as they
    /// were sent.
    named: HashMap<String, Vec<TypeId>>,
    /// What they take, without what was made of their definitions.
    bytes: usize,
}

impl OwnTypes {
    /// `all`: the oldest first.
    pub(super) fn new(all: Vec<OwnType>) -> Self {
        let mut named: HashMap<String, Vec<TypeId>> = HashMap::with_capacity(all.len());
        for own in all.iter().filter(|own| !own.definition.deprecated) {
            let name = composed(&own.data_type.name).into_owned();
            named.entry(name).or_default().push(own.data_type.id.clone());
        }
        let bytes = all.iter().map(|own| TYPE_BYTES + own.definition.body.len());
        Self {
            bytes: bytes.sum(),
            all,
            named,
        }
    }

    /// The types, the oldest first, archived ones too.
    pub fn iter(&self) -> impl Iterator<Item = &OwnType> {
        self.all.iter()
    }

    /// The types that are not archived, the oldest first.
    pub fn live(&self) -> impl Iterator<Item = &OwnType> {
        self.iter().filter(|own| !own.definition.deprecated)
    }

    /// The ids of the types called `name` that are not archived.
    #[must_use]
    pub fn called(&self, name: &str) -> &[TypeId] {
        self.named.get(&*composed(name)).map_or(&[], Vec::as_slice)
    }

    /// How many bytes they take, without what was made of their definitions.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}
