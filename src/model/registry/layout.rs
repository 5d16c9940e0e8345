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

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema, TimeUnit};
use serde_json::{Map, Value};

use super::data_type::{Layout, OwnersName, ReadColumn, ReadFrom, TimeFields, Undeclared};
use crate::model::columns::{END, EXTRAS, ID, SOURCE, SOURCE_CLASS, START};

const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
const JSON_EXTENSION: &str = "arrow.json";
const UUID_EXTENSION: &str = "arrow.uuid";

/// Columns of a person's own type that describe who measured, where it declares them, by a name among others.
const DESCRIBING_COLUMNS: [&str; 2] = ["device_properties", "source_properties"];
const NAME: &str = "name";

/// Objects nested deeper than this are kept as JSON text.
pub(super) const DEEPEST_STRUCT: usize = 6;

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

/// A column of JSON text. Readers that know the extension type show it as JSON; so do our own JSON outputs.
#[must_use]
pub fn json_text(name: &str) -> Field {
    let metadata = HashMap::from([
        (EXTENSION_NAME.to_owned(), JSON_EXTENSION.to_owned()),
        (EXTENSION_METADATA.to_owned(), String::new()),
    ]);
    Field::new(name, ArrowType::Utf8, true).with_metadata(metadata)
}

/// Whether a column holds JSON text.
#[must_use]
pub fn is_json_text(field: &Field) -> bool {
    is_marked(field, JSON_EXTENSION)
}

/// A column of ids. Readers that know the extension type show them as such; so do our own outputs of text.
#[must_use]
pub fn uuid_field(name: &str) -> Field {
    let metadata = HashMap::from([(EXTENSION_NAME.to_owned(), UUID_EXTENSION.to_owned())]);
    Field::new(name, ArrowType::FixedSizeBinary(16), false).with_metadata(metadata)
}

/// Whether a column holds ids.
#[must_use]
pub fn is_uuid(field: &Field) -> bool {
    *field.data_type() == ArrowType::FixedSizeBinary(16) && is_marked(field, UUID_EXTENSION)
}

fn is_marked(field: &Field, extension: &str) -> bool {
    let name = field.metadata().get(EXTENSION_NAME);
    name.is_some_and(|name| name == extension)
}

/// The type of text columns with few distinct values.
#[must_use]
pub fn dictionary_text() -> ArrowType {
    ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8))
}

/// The type of every time: microseconds in UTC.
#[must_use]
pub fn timestamp() -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The stored column of one property. Always nullable: a required property may have been optional when older
/// records were written.
#[must_use]
pub(super) fn column(name: &str, property: &Value) -> Field {
    column_at(name, property, 0)
}

fn column_at(name: &str, property: &Value, depth: usize) -> Field {
    let flag = |annotation: &str| property.get(annotation) == Some(&Value::Bool(true));
    if flag("x-version") {
        return Field::new(name, dictionary_text(), true);
    }
    if flag("x-yes-no") {
        return Field::new(name, ArrowType::Boolean, true);
    }
    let structs = flag("x-structs");
    let Some(kind) = kind_of(property).or_else(|| object_choice(property).filter(|_| structs)) else {
        return json_text(name);
    };
    let is_dictionary = flag("x-dictionary");
    let format = kind.schema.get("format").and_then(Value::as_str);
    let data_type = match kind.name {
        "string" if format == Some("date-time") => timestamp(),
        "string" if is_dictionary => dictionary_text(),
        "string" => ArrowType::Utf8,
        "number" => ArrowType::Float64,
        "integer" => ArrowType::Int64,
        "boolean" => ArrowType::Boolean,
        "array" => {
            let items = kind.schema.get("items");
            let item = items.and_then(scalar).or_else(|| {
                items
                    .filter(|_| structs)
                    .and_then(|items| structure(items, depth))
            });
            match item {
                Some(item) => ArrowType::List(Arc::new(Field::new("item", item, true))),
                None => return json_text(name),
            }
        }
        "object" if depth < DEEPEST_STRUCT => {
            match kind.schema.get("properties").and_then(Value::as_object) {
                Some(members) if !members.is_empty() => ArrowType::Struct(
                    members
                        .iter()
                        .map(|(name, property)| Arc::new(column_at(name, property, depth + 1)))
                        .collect::<Fields>(),
                ),
                _ => return json_text(name),
            }
        }
        _ => return json_text(name),
    };
    Field::new(name, data_type, true)
}

/// The type of a list's items, if they are plain values.
fn scalar(items: &Value) -> Option<ArrowType> {
    let item = column_at("item", items, DEEPEST_STRUCT);
    let is_plain =
        !is_json_text(&item) && !matches!(item.data_type(), ArrowType::List(_) | ArrowType::Struct(_));
    is_plain.then(|| item.data_type().clone())
}

/// The type of a list's items, if they can be objects with known members.
fn structure(items: &Value, depth: usize) -> Option<ArrowType> {
    let item = column_at("item", object_choice(items)?.schema, depth + 1);
    matches!(item.data_type(), ArrowType::Struct(_)).then(|| item.data_type().clone())
}

/// The object that a schema admits, whatever else it admits.
fn object_choice(property: &Value) -> Option<Kind<'_>> {
    let is_object = |schema: &&Value| kind_of(schema).is_some_and(|kind| kind.name == "object");
    let choices = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| property.get(keyword)?.as_array());
    let schema = std::iter::once(property)
        .chain(choices.flatten())
        .find(is_object)?;
    kind_of(schema)
}

/// A schema that admits one JSON type, apart from null.
pub(super) struct Kind<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
}

pub(super) fn kind_of(property: &Value) -> Option<Kind<'_>> {
    if let Some(kind) = property.get("type") {
        let names: Vec<&str> = match kind {
            Value::String(name) => vec![name],
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| *name != "null")
                .collect(),
            _ => vec![],
        };
        return match names.as_slice() {
            &[name] => Some(Kind {
                name,
                schema: property,
            }),
            _ => None,
        };
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = property.get(keyword).and_then(Value::as_array) {
            let mut others = choices
                .iter()
                .filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
            return match (others.next(), others.next()) {
                (Some(only), None) => kind_of(only),
                _ => None,
            };
        }
    }
    let choices = property.get("enum").and_then(Value::as_array)?;
    let is_text = choices.iter().any(Value::is_string)
        && choices
            .iter()
            .all(|choice| choice.is_string() || choice.is_null());
    is_text.then_some(Kind {
        name: "string",
        schema: property,
    })
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

fn is_flagged(property: &Value, annotation: &str) -> bool {
    property.get(annotation) == Some(&Value::Bool(true))
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
