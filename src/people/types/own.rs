//! A person's own types, as they were at one moment.
//!
//! Knows definitions and what was made of them; must not know where they are stored.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::records::StoredDefinition;
use crate::model::registry::{DataType, TypeId};
use crate::model::text::composed;

/// The memory that an own type takes besides its definition and what was made of it: its place, its id, and
/// its name in a list.
const TYPE_BYTES: usize = 512;
/// The memory that a list takes besides its types.
const LIST_BYTES: usize = 256;

/// An own type with its stored definition.
#[derive(Clone, Debug)]
pub struct OwnType {
    pub definition: StoredDefinition,
    pub data_type: Arc<DataType>,
    /// About how many bytes `data_type` takes.
    pub(super) memory: usize,
}

impl OwnType {
    /// Whether it was made of this definition, whenever that was stored.
    pub(super) fn is_made_of(&self, stored: &StoredDefinition) -> bool {
        let definition = &self.definition;
        definition.person == stored.person
            && definition.version == stored.version
            && definition.base == stored.base
            && definition.body == stored.body
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        TYPE_BYTES + self.definition.body.len() + self.memory
    }
}

/// All own types of a person, archived ones too.
#[derive(Debug, Default)]
pub struct OwnTypes {
    /// The oldest first.
    all: Vec<OwnType>,
    /// The ids of those that are not archived, by name in the composed form: older names are stored as they
    /// were sent.
    named: HashMap<String, Vec<TypeId>>,
    /// About how many bytes they take.
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
        let bytes = all.iter().map(OwnType::bytes);
        Self {
            bytes: LIST_BYTES + bytes.sum::<usize>(),
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

    /// About how many bytes they take.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}
