//! Derives from the JSON Schema of a record the columns it is stored in and the columns it is read as.
//!
//! The same derivation serves built-in types and those a person defines. Annotations in built-in schemas tell
//! the product what a property is: `x-role` (`id`, `start`, `end`, `moment`, `recorded_at`, `unit`,
//! `extras`), `x-aliases` (other spellings), `x-dictionary` (few distinct values), `x-hidden` (stored, not
//! part of an answer), `x-span` (read as start and end together), `x-structs` (an object among several
//! choices decides the column, and a list of objects is a list of structs), `x-yes-no` (1 and 0 stand for
//! true and false), `x-version` (a list of numbers or a text, stored as text and read as a list), `x-private`
//! (for the owner alone), `x-names-owner` (tells whose record it is), `x-throughout` (true of every part of a
//! record).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use serde_json::{Map, Value};

use super::column::{column, dictionary_text, is_flagged, json_text, object_choice, timestamp};
use super::data_type::{Layout, OwnersName, ReadColumn, ReadFrom, TimeFields, Undeclared};
use crate::model::columns::{END, EXTRAS, ID, SOURCE, SOURCE_CLASS, START};

/// Columns of a person's own type that describe who measured, where it declares them, by a name among others.
const DESCRIBING_COLUMNS: [&str; 2] = ["device_properties", "source_properties"];
const NAME: &str = "name";

/// Why a schema has no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("a schema of records must be an object with properties")]
    NoProperties,
    #[error("no property says when a record happened")]
    NoTime,
    #[error("unknown role {0:?} of a property")]
    UnknownRole(String),
}

/// What is collected while going through the properties.
#[derive(Default)]
struct Draft {
    own: Vec<Field>,
    read: Vec<ReadColumn>,
    id: Vec<String>,
    start: Vec<String>,
    end: Vec<String>,
    moment: Option<TimeFields>,
    aliases: Vec<(String, String)>,
    private: Vec<String>,
    owners_names: Vec<OwnersName>,
    throughout: Vec<String>,
    /// Lists of texts without a column in an answer.
    hidden: Vec<String>,
}

impl Layout {
    /// The layout of records that `schema` describes. With a `unit`, the unit column is that text in every
    /// row and is not stored.
    pub fn from_schema(
        schema: &Value,
        unit: Option<&str>,
        version: u32,
        undeclared: Undeclared,
    ) -> Result<Self, LayoutError> {
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .ok_or(LayoutError::NoProperties)?;
        let mut draft = Draft::default();
        for (name, property) in properties {
            draft.add(name, property, unit, is_required(schema, name))?;
        }
        draft.show_hidden();
        let times = match draft.moment {
            Some(moment) => moment,
            None if draft.start.is_empty() => return Err(LayoutError::NoTime),
            None => TimeFields::StartEnd {
                start: draft.start,
                end: draft.end,
            },
        };
        let mut columns = vec![
            Field::new(ID, ArrowType::FixedSizeBinary(16), false),
            Field::new(START, timestamp(), false),
            Field::new(END, timestamp(), false),
        ];
        columns.extend(draft.own);
        columns.push(Field::new(SOURCE, dictionary_text(), true));
        columns.push(Field::new(SOURCE_CLASS, ArrowType::Int8, true));
        columns.push(json_text(EXTRAS));
        // Undeclared members may contain anything.
        draft.private.push(EXTRAS.to_owned());
        if undeclared == Undeclared::AsGiven {
            draft.owners_names.extend(DESCRIBING_COLUMNS.map(name_in));
        }
        let storage = Arc::new(Schema::new(columns));
        let mut state = DefaultHasher::new();
        (version, storage.fields()).hash(&mut state);
        Ok(Self {
            version,
            storage,
            read: draft.read,
            times,
            id: draft.id,
            aliases: draft.aliases,
            undeclared,
            private: draft.private,
            owners_names: draft.owners_names,
            throughout: draft.throughout,
            state: state.finish(),
        })
    }
}

impl Draft {
    fn add(
        &mut self,
        name: &str,
        property: &Value,
        unit: Option<&str>,
        required: bool,
    ) -> Result<(), LayoutError> {
        let from = self.place(name, property, unit, required)?;
        self.note_flags(name, property);
        let is_list = |field: &Field| matches!(field.data_type(), ArrowType::List(_));
        if is_flagged(property, "x-hidden") {
            let last = self
                .own
                .last()
                .filter(|field| field.name() == name && is_list(field));
            self.hidden.extend(last.map(|field| field.name().clone()));
        } else {
            self.read.push(ReadColumn {
                name: name.to_owned(),
                from,
            });
        }
        Ok(())
    }

    /// Gives a property its place among what is stored, by its role, and says from where it is read.
    fn place(
        &mut self,
        name: &str,
        property: &Value,
        unit: Option<&str>,
        required: bool,
    ) -> Result<ReadFrom, LayoutError> {
        let spellings = || -> Vec<String> {
            std::iter::once(name.to_owned())
                .chain(aliases_of(property))
                .collect()
        };
        Ok(match property.get("x-role").and_then(Value::as_str) {
            None => self.place_in_column(name, property),
            Some("id") => {
                self.id = spellings();
                ReadFrom::Id
            }
            Some("start") => {
                self.start = spellings();
                ReadFrom::Start
            }
            Some("end") => {
                self.end = spellings();
                ReadFrom::End
            }
            Some("moment") => {
                self.moment = Some(TimeFields::Moment {
                    at: spellings(),
                    optional: !required,
                });
                ReadFrom::Start
            }
            Some("recorded_at") => {
                self.moment = Some(TimeFields::RecordedAt);
                if is_flagged(property, "x-span") {
                    ReadFrom::Span
                } else {
                    ReadFrom::Start
                }
            }
            Some("unit") => {
                if unit.is_none() {
                    self.own.push(column(name, property));
                }
                unit.map_or_else(
                    || ReadFrom::Column(name.to_owned()),
                    |unit| ReadFrom::Constant(unit.to_owned()),
                )
            }
            Some("extras") => ReadFrom::Column(EXTRAS.to_owned()),
            Some(other) => return Err(LayoutError::UnknownRole(other.to_owned())),
        })
    }

    /// Gives a property without a role a column of its own.
    fn place_in_column(&mut self, name: &str, property: &Value) -> ReadFrom {
        self.own.push(column(name, property));
        self.aliases
            .extend(aliases_of(property).map(|alias| (alias, name.to_owned())));
        let (column, members) = (name.to_owned(), versions_in(property));
        if members.is_empty() {
            ReadFrom::Column(column)
        } else {
            ReadFrom::Versions { column, members }
        }
    }

    /// Notes whether a property, or which of its members, is for the owner alone or tells who that is, and
    /// whether its value holds for every part of a record.
    fn note_flags(&mut self, name: &str, property: &Value) {
        if is_flagged(property, "x-private") {
            self.private.push(name.to_owned());
        }
        if is_flagged(property, "x-throughout") {
            self.throughout.push(name.to_owned());
        }
        let members = property.get("properties").and_then(Value::as_object);
        self.private.extend(
            members
                .into_iter()
                .flatten()
                .filter(|(_, member)| is_flagged(member, "x-private"))
                .map(|(member, _)| format!("{name}.{member}")),
        );
        self.owners_names.extend(owners_names_in(name, property));
    }

    /// Makes answers show columns without a place of their own among the extras.
    fn show_hidden(&mut self) {
        let hidden = std::mem::take(&mut self.hidden);
        for column in &mut self.read {
            if !hidden.is_empty() && column.from == ReadFrom::Column(EXTRAS.to_owned()) {
                column.from = ReadFrom::Extras {
                    hidden: hidden.clone(),
                };
            }
        }
    }
}

/// The names of the owner that a property is, or that the objects it admits have, alone or in a list.
fn owners_names_in(column: &str, property: &Value) -> Vec<OwnersName> {
    let name = |member: Option<&String>, property: &Value| {
        let where_true = match property.get("x-names-owner")? {
            Value::Bool(true) => None,
            Value::String(beside) => Some(beside.clone()),
            _ => return None,
        };
        Some(OwnersName {
            column: column.to_owned(),
            member: member.cloned(),
            where_true,
        })
    };
    let objects = [Some(property), property.get("items")].into_iter().flatten();
    let members = objects
        .filter_map(|object| object_choice(object)?.schema.get("properties")?.as_object())
        .flatten();
    let of_members = members.filter_map(|(member, property)| name(Some(member), property));
    name(None, property).into_iter().chain(of_members).collect()
}

/// The name in a column that describes who measured.
fn name_in(column: &str) -> OwnersName {
    OwnersName {
        column: column.to_owned(),
        member: Some(NAME.to_owned()),
        where_true: None,
    }
}

/// The members of an object that are versions.
fn versions_in(property: &Value) -> Vec<String> {
    let members = property.get("properties").and_then(Value::as_object);
    let versions = members
        .into_iter()
        .flatten()
        .filter(|(_, member)| is_flagged(member, "x-version"));
    versions.map(|(name, _)| name.clone()).collect()
}

fn aliases_of(property: &Value) -> impl Iterator<Item = String> + '_ {
    property
        .get("x-aliases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

/// The members of a schema, for changing it.
pub(super) fn members_mut(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    schema.get_mut("properties").and_then(Value::as_object_mut)
}
