//! Validates a record against the schema of its type, and reports faults under the names that the sender
//! used.

use serde_json::Value;

use super::Reading;
use crate::ingest::coerce::is_coercible;
use crate::ingest::faults::{self, MOST_FAULTS_OF_A_RECORD};
use crate::model::faults::{Fault, LocPart};

impl Reading<'_, '_> {
    pub(super) fn validate(&mut self) -> Result<(), Vec<Fault>> {
        let document = Value::Object(std::mem::take(&mut self.document));
        if !self.compiled.validator.is_valid(&document) {
            let mut found = Vec::new();
            for error in self
                .compiled
                .validator
                .iter_errors(&document)
                .take(MOST_FAULTS_OF_A_RECORD)
            {
                faults::from_schema(&error, &self.loc, &mut found);
            }
            for fault in &mut found {
                self.name_as_given(fault);
                self.name_coercion(fault);
            }
            found.truncate(MOST_FAULTS_OF_A_RECORD);
            if found.is_empty() {
                found.push(Fault::new(
                    self.loc.clone(),
                    "schema",
                    "not valid against the schema of its type",
                ));
            }
            return Err(found);
        }
        if let Value::Object(document) = document {
            self.document = document;
        }
        Ok(())
    }

    /// Replaces the schema's name of a field with the one that was sent, so that the caller finds it.
    fn name_as_given(&self, fault: &mut Fault) {
        let Some(LocPart::Name(name)) = fault.loc.get_mut(self.loc.len()) else {
            return;
        };
        let given = self
            .compiled
            .plan
            .field(name)
            .and_then(|field| self.given.get(field)?.as_ref());
        if let Some(given) = given {
            *name = given.name.to_string();
        }
    }

    /// Mentions coercion where it would have made the value acceptable.
    fn name_coercion(&self, fault: &mut Fault) {
        let [LocPart::Name(name)] = fault.loc.get(self.loc.len()..).unwrap_or_default() else {
            return;
        };
        let plan = &self.compiled.plan;
        let given = plan.field(name).and_then(|field| self.given.get(field)?.as_ref());
        if given.is_some_and(|given| is_coercible(plan, name, given.raw)) {
            fault.message.push_str("; with coerce=true it is taken as it is");
        }
    }
}
