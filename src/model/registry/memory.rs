//! About how much memory a type takes, for those who keep types within a limit.
//!
//! Much of it repeats what the base brings: an own type whose definition is a short line takes thousands of
//! bytes. Knows how types are built; knows nothing of who keeps them.

use serde_json::Value;

use super::data_type::{DataType, Layout};
use super::schema::RecordSchema;

/// What a piece of memory takes besides its content.
const AROUND: usize = 24;
/// What a member of an object takes besides its name and value: its hash, and its place in the index.
const MEMBER: usize = size_of::<String>() + size_of::<usize>() + 2 * AROUND;
/// What a column of an answer takes, with its names.
const READ_COLUMN: usize = 160;
/// What a name takes by which something is found.
const NAME: usize = 64;
/// How many names of times and texts of a metric each type has at most, beside those that are counted.
const OTHER_NAMES: usize = 12;

impl DataType {
    /// About how many bytes the type takes, with all that belongs to it.
    #[must_use]
    pub fn memory(&self) -> usize {
        let icon = self.icon.as_ref().map_or(0, String::len);
        let texts = self.id.0.len() + self.name.len() + self.description.len() + icon;
        let names = self.categories.len() + self.aliases.len() + OTHER_NAMES;
        size_of::<Self>()
            + texts
            + names * NAME
            + of_json(&self.record_spec)
            + self.schema.memory()
            + self.layout.memory()
    }
}

impl Layout {
    fn memory(&self) -> usize {
        let pairs = self.aliases.len() + self.owners_names.len();
        let names = self.id.len() + 2 * pairs + self.private.len() + self.throughout.len();
        size_of::<Self>() + self.storage.fields().size() + self.read.len() * READ_COLUMN + names * NAME
    }
}

impl RecordSchema {
    /// One that is made on first use is made for this.
    fn memory(&self) -> usize {
        let as_value = || of_json(&self.value());
        self.text().map_or_else(as_value, |text| AROUND + text.len())
    }
}

fn of_json(value: &Value) -> usize {
    let within: usize = match value {
        Value::String(text) => AROUND + text.len(),
        Value::Array(items) => AROUND + items.iter().map(of_json).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| MEMBER + name.len() + of_json(value);
            2 * AROUND + members.iter().map(member).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + within
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::model::ids::PersonId;
    use crate::model::registry::{Base, Definition, Registry};

    fn own(body: &Value) -> DataType {
        let registry = Registry::builtin().unwrap();
        let definition = Definition::read(Base::Event, body).unwrap();
        let base = registry.get("Event").unwrap();
        DataType::from_definition(PersonId(Uuid::nil()), Uuid::nil(), base, &definition, 1).unwrap()
    }

    #[test]
    fn a_type_weighs_what_its_base_brings_and_what_is_defined() {
        let plain = own(&json!({"name": "tea"})).memory();
        assert!((4_000..16_000).contains(&plain), "{plain}");
        let mut properties = serde_json::Map::new();
        for number in 0..100 {
            properties.insert(format!("cup_{number}"), json!({"type": "integer", "minimum": 0}));
        }
        let schema = json!({"type": "object", "properties": properties});
        let wide = own(&json!({"name": "tea", "record_spec": {"schema": schema}})).memory();
        assert!(wide > plain + 100 * 500, "{wide}");
    }
}
