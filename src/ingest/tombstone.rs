//! Decodes records that delete records.
//!
//! A tombstone is validated like any other record, and is never stored: the record that it names is deleted
//! by the commit that accepts it. Knows what a tombstone says; does not know whether the record exists.

use std::sync::Arc;

use super::body::RecordPosition;
use super::bounds;
use super::columns::Cell;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::decode::too_much;
use super::general;
use crate::model::faults::Fault;
use crate::model::ids::RecordId;
use crate::model::registry::{Layout, TypeId};

/// The type whose records delete records.
pub const TOMBSTONE_TYPE: &str = "DeletedRecord";

/// Whether records of a type delete records. A name as it was sent says nothing of this: the type has others.
#[must_use]
pub fn are_tombstones(data_type: &TypeId) -> bool {
    data_type.as_str() == TOMBSTONE_TYPE
}

/// A record to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub record: RecordId,
    /// The type of the record, as it was written. It need not exist.
    pub data_type: String,
    pub place: RecordPosition,
}

/// Where the records are that a tombstone for some type may delete.
#[derive(Clone, Debug)]
pub struct Target {
    /// The type whose partition it is.
    pub data_type: TypeId,
    pub layout: Arc<Layout>,
    /// The definition that a record must belong to, as the source that names it, where those of others are in
    /// the same partition.
    pub definition: Option<Arc<str>>,
}

impl Target {
    /// Where it deletes, which tells it apart from other targets.
    #[must_use]
    pub fn place(&self) -> TargetPlace {
        (self.data_type.clone(), self.definition.clone())
    }
}

/// A partition, and the definition in it.
pub type TargetPlace = (TypeId, Option<Arc<str>>);

/// Decodes the tombstone `json`, which stands at `place`. `compiled` is the tombstone type.
pub fn decode_tombstone(
    compiled: &CompiledType,
    context: &DecodeContext,
    place: impl Into<RecordPosition>,
    json: &[u8],
) -> Result<Tombstone, Vec<Fault>> {
    let place = place.into();
    bounds::admit(json, 1).map_err(|reason| vec![too_much(place, reason)])?;
    let record = general::decode(compiled, context, place, json, None)?;
    let text = |name: &str| {
        let column = compiled
            .plan
            .columns
            .iter()
            .position(|column| column.name() == name);
        match column.and_then(|column| record.cells.get(column)) {
            Some(Cell::Text(text)) => Ok(text.as_ref()),
            _ => Err(fault_at(place, name, "missing", format!("{name} is missing"))),
        }
    };
    let deleted = text("deleted_id")?
        .parse()
        .map_err(|_| fault_at(place, "deleted_id", "format", "not a uuid".to_owned()))?;
    Ok(Tombstone {
        record: deleted,
        data_type: text("deleted_type")?.to_owned(),
        place,
    })
}

fn fault_at(place: RecordPosition, name: &str, kind: &'static str, message: String) -> Vec<Fault> {
    let mut loc = place.loc();
    loc.push(name.into());
    vec![Fault::new(loc, kind, message)]
}
