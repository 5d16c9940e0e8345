//! Validates a record against the schema of its type, and reports faults under the names that the sender
//! used.

use serde_json::Value;

use super::reading::Reading;
use crate::ingest::coerce::{is_coercible, outside_of_times};
use crate::ingest::faults::{self, MOST_FAULTS_OF_A_RECORD};
use crate::ingest::json;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::registry::schema::weighed::weighing;
use crate::model::weighed_pattern::CostlyText;

impl Reading<'_, '_> {
    pub(super) fn validate(&mut self) -> Result<(), Vec<Fault>> {
        let document = Value::Object(std::mem::take(&mut self.document));
        let names = self.compiled.names.weigh(&document);
        let is_valid = names.and_then(|()| weighing(|| self.compiled.validator.is_valid(&document)));
        let too_costly =
            |costly: CostlyText| vec![Fault::new(self.loc.clone(), "pattern", costly.to_string())];
        if !is_valid.map_err(too_costly)? {
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
                self.name_conversion(fault);
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

    /// Of a value that was converted, shows what was sent and what became of it.
    fn name_conversion(&self, fault: &mut Fault) {
        let plan = &self.compiled.plan;
        let given = |field: Option<usize>| self.given.get(field?)?.as_ref();
        let (Some(converted), Some(value), Some(unit)) =
            (self.converted, given(plan.value), given(plan.unit))
        else {
            return;
        };
        let place = fault.loc.get(self.loc.len()..).unwrap_or_default();
        if !matches!(place, [LocPart::Name(name)] if *name == value.name) {
            return;
        }
        let expected = self.compiled.data_type.metric.as_ref();
        let expected = expected.and_then(|metric| metric.unit.as_deref());
        let (Some(expected), Some(unit), Ok(sent)) = (
            expected,
            json::text(unit.raw),
            serde_json::from_str::<Value>(value.raw),
        ) else {
            return;
        };
        let (number, unit) = (beginning(value.raw), beginning(&unit));
        let conversion = format!("; {number} {unit} is {converted} {expected}");
        fault.message.push_str(&conversion);
        *fault = fault.clone().with_value(sent);
    }

    /// Mentions coercion where it would have made the value acceptable; where it was asked for, says why it
    /// did not.
    fn name_coercion(&self, fault: &mut Fault) {
        let [LocPart::Name(name)] = fault.loc.get(self.loc.len()..).unwrap_or_default() else {
            return;
        };
        let plan = &self.compiled.plan;
        let given = plan.field(name).and_then(|field| self.given.get(field)?.as_ref());
        let Some(given) = given else { return };
        match self.coercion {
            None if is_coercible(plan, name, given.raw) => {
                fault.message.push_str("; with coerce=true it is taken as it is");
            }
            None => {}
            Some(epoch) => {
                if let Some(reason) = outside_of_times(plan, name, given.raw, epoch) {
                    fault.message.push_str("; ");
                    fault.message.push_str(&reason);
                }
            }
        }
    }
}
