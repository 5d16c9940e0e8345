//! A person's definition of a data type, checked before it becomes one.
//!
//! A definition arrives as JSON, is kept in the catalogue as JSON, and may grow: members can be added and
//! described anew, but nothing that is already stored may change its kind. All faults of a body are reported
//! at once.

mod read;
mod rules;
mod shape;

pub(super) use shape::OF_METRICS;
pub use shape::{Base, Definition, Scale};

use serde_json::Value;

use crate::model::faults::Fault;

impl Definition {
    /// The definition in the body of a creation request.
    pub fn read(base: Base, body: &Value) -> Result<Self, Vec<Fault>> {
        let blank = Self {
            base,
            name: String::new(),
            description: String::new(),
            icon: None,
            default_event_tags: None,
            svc_source: None,
            deprecated: false,
            unit: None,
            aggregation: None,
            scale: None,
            value_map: None,
            schema: None,
        };
        let definition = read::over(blank, body)?;
        let mut faults = rules::faults_of(&definition);
        faults.extend(rules::faults_of_novelty(None, &definition));
        none_of(faults)?;
        none_of(rules::fault_of_length(None, &definition).into_iter().collect())?;
        Ok(definition)
    }

    /// This definition changed by the body of a change request. Only what is sent changes.
    pub fn amended(&self, body: &Value) -> Result<Self, Vec<Fault>> {
        let amended = read::over(self.clone(), body)?;
        let mut faults = rules::faults_of(&amended);
        faults.extend(rules::faults_of_novelty(Some(self), &amended));
        none_of(faults)?;
        Self::grow(self, &amended)?;
        none_of(rules::fault_of_length(Some(self), &amended).into_iter().collect())?;
        Ok(amended)
    }

    /// Whether this can become a type. So can what was defined before there were rules for what is new.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        none_of(rules::faults_of(self))
    }

    /// Whether records stored under `old` keep their meaning under `new`.
    pub fn grow(old: &Self, new: &Self) -> Result<(), Vec<Fault>> {
        none_of(rules::faults_of_growth(old, new))
    }
}

fn none_of(faults: Vec<Fault>) -> Result<(), Vec<Fault>> {
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
