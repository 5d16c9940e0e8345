//! Plans where each field of a record goes: computed once per type from its layout and schema.
//!
//! Immutable, shared by every request that brings records of the type. Knows layouts and schemas; knows
//! nothing of a record's text.

use ahash::{HashMap, HashMapExt, HashSet};

use arrow::datatypes::{DataType as ColumnType, Field, FieldRef};
use serde_json::Value;

use super::extras::{ORIGINAL_UNIT, ORIGINAL_VALUE};
use super::scalar::{self, ScalarRule};
use crate::model::columns::EXTRAS;
use crate::model::registry::{
    Base, Canonical, DataType, ReadFrom, TimeFields, TypeId, Undeclared, is_json_text,
};

/// `id`, `start_time`, `end_time` precede a type's own columns.
pub(super) const LEADING_COLUMNS: usize = 3;
/// `source`, `source_class`, `extras` follow them.
pub(super) const TRAILING_COLUMNS: usize = 3;

/// Where a field of a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Id,
    Start,
    End,
    /// Start and end at once.
    Moment,
    /// A moment, or an object with `start_time` and `end_time`.
    RecordedAt,
    /// A stored column, by its position among the type's own.
    Column(usize),
    /// The unit of a metric whose unit is fixed: checked, converted from, not stored.
    Unit,
    /// An object whose members become extras.
    Extras,
    /// Computed for answers; not stored when it comes back.
    Computed,
}

/// A field that the type knows.
#[derive(Clone, Debug)]
pub(super) struct KnownField {
    /// The schema's name of the field.
    pub name: String,
    pub role: Role,
    required: bool,
    /// What the schema requires of it, if that can be checked without the schema.
    pub rule: Option<ScalarRule>,
    /// Whether the schema admits every object in it.
    pub takes_every_object: bool,
    /// Which parts of it are kept in one spelling.
    pub canonical: Canonical,
    /// Answers show it among the extras, and it may come back there.
    pub in_extras: bool,
    /// The time, as JSON, that null stands for.
    pub unknown: Option<&'static str>,
}

impl KnownField {
    /// Whether `value` among the extras stands for this field.
    pub(super) fn is_meant_in_extras(&self, value: &Value) -> bool {
        self.in_extras && is_list_of_texts(value)
    }

    /// The number that is stored for `value`.
    pub(super) fn stored(&self, value: f64) -> f64 {
        if self.canonical == Canonical::Longitude {
            return western(value);
        }
        value
    }
}

/// Whether a field of `tags` or `sources` can hold the value.
fn is_list_of_texts(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().all(Value::is_string))
}

/// The longitude, with -180 for the meridian that has two names.
pub(super) fn western(longitude: f64) -> f64 {
    if longitude.to_bits() == 180.0_f64.to_bits() {
        return -180.0;
    }
    longitude
}

#[derive(Clone, Debug)]
pub(super) struct FieldPlan {
    pub fields: Vec<KnownField>,
    spellings: HashMap<String, usize>,
    /// The type's own columns.
    pub columns: Vec<FieldRef>,
    /// The fields that hold a metric's value and its unit.
    pub value: Option<usize>,
    pub unit: Option<usize>,
    /// Columns that say where a record comes from.
    pub source_columns: [Option<usize>; 3],
    /// The column to fill from `sources` where the record leaves it out.
    pub source_id: Option<usize>,
    /// Columns that answers compute where a record belongs to a definition.
    pub of_definition: [Option<usize>; 2],
    /// One bit for each required field, if there are enough bits.
    pub required: u64,
    /// Whether the schema as a whole requires nothing beyond its fields' own rules.
    pub fields_are_independent: bool,
    /// Whether answers show the members of extras beside the others.
    pub spreads_extras: bool,
    /// Whether null says nothing in a member that is no field. Answers show a base with what its definitions
    /// declare, null in records of the base itself, and these come back so.
    pub null_is_absent: bool,
    /// Whether the schema lets pass what it does not name.
    admits_undeclared: bool,
    /// Members that the schema names, though they are no fields.
    only_in_schema: HashSet<String>,
}

/// A layout that no record can be decoded into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldPlanError {
    #[error("the layout of {0} lacks the columns that every layout has")]
    Layout(TypeId),
}

/// Types with more known fields than there are bits to mark given ones are decoded the complete way.
const MOST_FIELDS_ON_THE_FAST_WAY: usize = 64;

impl FieldPlan {
    pub(super) fn new(data_type: &DataType) -> Result<Self, FieldPlanError> {
        let storage = data_type.layout.storage.fields();
        let own = storage
            .get(LEADING_COLUMNS..storage.len().saturating_sub(TRAILING_COLUMNS))
            .filter(|_| storage.last().is_some_and(|field| field.name() == EXTRAS))
            .ok_or_else(|| FieldPlanError::Layout(data_type.id.clone()))?;
        let schema = data_type.schema.value();
        let fields = FieldList::of(data_type, &schema, own);
        let column = |name: &str| own.iter().position(|column| column.name() == name);
        let metric_field = |name: &str| {
            fields
                .spellings
                .get(name)
                .copied()
                .filter(|_| data_type.metric.is_some())
        };
        let sources = column("sources");
        Ok(Self {
            value: metric_field("value"),
            unit: metric_field("unit"),
            source_columns: [column("source_properties"), column("device_properties"), sources],
            source_id: column("source_id").filter(|column| {
                sources.is_some() && own.get(*column).is_some_and(|field| holds_texts(field))
            }),
            of_definition: ["source_name", "metadata"].map(|name| column(name).filter(|_| data_type.is_base)),
            columns: own.to_vec(),
            fields_are_independent: scalar::fields_are_independent(&schema)
                && fields.list.len() <= MOST_FIELDS_ON_THE_FAST_WAY
                && fields.hold_all_that_is_required(),
            spreads_extras: data_type.layout.undeclared == Undeclared::AsGiven,
            null_is_absent: data_type.is_base && Base::named(data_type.id.as_str()).is_some(),
            admits_undeclared: scalar::admits_undeclared(&schema),
            only_in_schema: fields.only_in_schema(),
            required: required_bits(&fields.list),
            fields: fields.list,
            spellings: fields.spellings,
        })
    }

    /// The field that a record calls `name`.
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.spellings.get(name).copied()
    }

    /// Whether a member of this name, which is no field, is valid whatever its value.
    pub(super) fn is_free(&self, name: &str) -> bool {
        self.admits_undeclared && !self.only_in_schema.contains(name)
    }

    /// Whether a member, which is no field, is what was kept of a value when its unit was converted. It comes
    /// back with a row that was read, and is no member of which a schema could know.
    pub(super) fn is_original(&self, name: &str, value: &Value) -> bool {
        let unit = self.unit.and_then(|unit| self.fields.get(unit));
        let is_converted = unit.is_some_and(|unit| unit.role == Role::Unit);
        is_converted
            && match name {
                ORIGINAL_VALUE => value.is_number(),
                ORIGINAL_UNIT => value.is_string(),
                _ => false,
            }
    }
}

/// Whether a column can be filled with any text. A person's own type may declare it to be something else.
fn holds_texts(column: &Field) -> bool {
    matches!(column.data_type(), ColumnType::Utf8 | ColumnType::Dictionary(..)) && !is_json_text(column)
}

/// The time that stands for an unknown one, as JSON, where `property` says that it may be unknown.
fn unknown_time(property: &Value, role: Role) -> Option<&'static str> {
    let may_be_unknown = property.get("x-unknown") == Some(&Value::Bool(true));
    match role {
        Role::Start if may_be_unknown => Some(r#""0001-01-01T00:00:00Z""#),
        Role::End if may_be_unknown => Some(r#""4001-01-01T00:00:00Z""#),
        _ => None,
    }
}

fn required_bits(fields: &[KnownField]) -> u64 {
    let bits = fields.iter().take(MOST_FIELDS_ON_THE_FAST_WAY).enumerate();
    bits.filter(|(_, known)| known.required)
        .fold(0, |bits, (field, _)| bits | 1 << field)
}

/// Collects known fields. The first field of a name keeps it: a type's own column called `uuid` is a column.
struct FieldList<'a> {
    schema: &'a Value,
    list: Vec<KnownField>,
    spellings: HashMap<String, usize>,
}

impl<'a> FieldList<'a> {
    fn of(data_type: &DataType, schema: &'a Value, own: &[FieldRef]) -> Self {
        let layout = &data_type.layout;
        let mut fields = Self {
            schema,
            list: Vec::new(),
            spellings: HashMap::new(),
        };
        for (position, column) in own.iter().enumerate() {
            fields.add(column.name(), Role::Column(position));
            if let (Some(property), Some(known)) = (fields.property(column.name()), fields.list.last_mut()) {
                known.canonical = Canonical::of(property, column);
            }
        }
        fields.add_times(&layout.times);
        fields.add_spellings(&layout.id, Role::Id);
        for read in &layout.read {
            match &read.from {
                ReadFrom::Extras { .. } => fields.add(&read.name, Role::Extras),
                ReadFrom::Column(stored) if stored == EXTRAS => fields.add(&read.name, Role::Extras),
                ReadFrom::Column(stored) | ReadFrom::Versions { column: stored, .. } => {
                    if let Some(field) = fields.spellings.get(stored).copied() {
                        fields.spell(&read.name, field);
                    }
                }
                ReadFrom::Constant(_) => fields.add(&read.name, Role::Unit),
                ReadFrom::Id => fields.add(&read.name, Role::Id),
                ReadFrom::Start | ReadFrom::End | ReadFrom::Span | ReadFrom::Null => {
                    fields.add(&read.name, Role::Computed);
                }
            }
        }
        if layout.undeclared == Undeclared::UnderExtras {
            fields.add(EXTRAS, Role::Extras);
        }
        for (alias, name) in &layout.aliases {
            if let Some(field) = fields.spellings.get(name).copied() {
                fields.spell(alias, field);
            }
        }
        fields.add_common_id_spellings();
        for read in &layout.read {
            let ReadFrom::Extras { hidden } = &read.from else {
                continue;
            };
            for known in fields
                .list
                .iter_mut()
                .filter(|known| hidden.contains(&known.name))
            {
                known.in_extras = true;
            }
        }
        fields
    }

    fn property(&self, name: &str) -> Option<&'a Value> {
        self.schema.get("properties")?.get(name)
    }

    /// Whether each member that the schema requires is a field under that name.
    fn hold_all_that_is_required(&self) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        let mut names = required.into_iter().flatten();
        names.all(|name| self.list.iter().any(|known| *name == known.name.as_str()))
    }

    fn only_in_schema(&self) -> HashSet<String> {
        let declared = self.schema.get("properties").and_then(Value::as_object);
        let names = declared.into_iter().flat_map(|members| members.keys());
        names
            .filter(|name| !self.spellings.contains_key(*name))
            .cloned()
            .collect()
    }

    fn add(&mut self, name: &str, role: Role) {
        if self.spellings.contains_key(name) {
            return;
        }
        let required = self
            .schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required == name));
        let property = self.property(name);
        let asked = property.map_or(Some(ScalarRule::ANYTHING), scalar::rule);
        let takes_every_object = property.is_none_or(scalar::admits_every_object);
        self.spellings.insert(name.to_owned(), self.list.len());
        self.list.push(KnownField {
            name: name.to_owned(),
            role,
            required,
            rule: asked,
            takes_every_object,
            canonical: Canonical::AsSent,
            in_extras: false,
            unknown: property.and_then(|property| unknown_time(property, role)),
        });
    }

    fn spell(&mut self, name: &str, field: usize) {
        self.spellings.entry(name.to_owned()).or_insert(field);
    }

    /// Adds one field under several names; its own is the one that the schema declares, else the first.
    fn add_spellings(&mut self, names: &[String], role: Role) {
        let free = |name: &&String| !self.spellings.contains_key(*name);
        let Some(own) = names
            .iter()
            .filter(free)
            .find(|name| self.property(name).is_some())
            .or_else(|| names.iter().find(free))
        else {
            return;
        };
        self.add(own, role);
        if let Some(field) = self.spellings.get(own).copied() {
            for name in names {
                self.spell(name, field);
            }
        }
    }

    fn add_times(&mut self, times: &TimeFields) {
        match times {
            TimeFields::StartEnd { start, end } => {
                self.add_spellings(start, Role::Start);
                self.add_spellings(end, Role::End);
            }
            TimeFields::Moment { at, .. } => self.add_spellings(at, Role::Moment),
            TimeFields::RecordedAt => {
                self.add("recorded_at", Role::RecordedAt);
                self.add("start_time", Role::Start);
                self.add("end_time", Role::End);
            }
        }
    }

    /// Makes `id` and `uuid` name the id too, whatever a type calls it.
    fn add_common_id_spellings(&mut self) {
        if !self.list.iter().any(|field| field.role == Role::Id) {
            self.add("id", Role::Id);
        }
        if let Some(field) = self.list.iter().position(|field| field.role == Role::Id) {
            self.spell("id", field);
            self.spell("uuid", field);
        }
    }
}
