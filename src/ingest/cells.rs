//! Turns the text of one JSON value into the cell of one column.
//!
//! Pure functions. Members that a struct does not declare are returned beside the cell, so that nothing that
//! was sent is lost.

use std::borrow::Cow;

use arrow::datatypes::{DataType as ColumnType, Field, Fields};

use super::columns::Cell;
use super::declared::DeclaredMembers;
use super::field_plan::western;
use super::json;
use crate::model::faults::LocPart;
use crate::model::json_object::ObjectText;
use crate::model::registry::{Canonical, is_json_text, respelt};
use crate::model::time::parse_instant;
use crate::model::version::text_of;

/// A value that its column cannot hold although the schema let it pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Misfit {
    /// The path to it inside the value, innermost first.
    pub path: Vec<LocPart>,
    pub kind: &'static str,
    pub message: String,
}

/// A cell, and the JSON text of what did not fit into its column.
#[derive(Debug, PartialEq)]
pub(super) struct Filled<'a> {
    pub cell: Cell<'a>,
    pub rest: Option<String>,
}

impl<'a> From<Cell<'a>> for Filled<'a> {
    fn from(cell: Cell<'a>) -> Self {
        Self { cell, rest: None }
    }
}

/// The cell of `column` for the JSON text `raw`.
pub(super) fn fill<'a>(raw: &'a str, column: &Field) -> Result<Filled<'a>, Misfit> {
    if raw == "null" {
        return Ok(Cell::Null.into());
    }
    if is_json_text(column) {
        return Ok(Cell::Text(compact(raw)).into());
    }
    match column.data_type() {
        ColumnType::Dictionary(..) if raw.starts_with('[') => version(raw),
        ColumnType::Utf8 | ColumnType::Dictionary(..) => json::text(raw)
            .map(|text| Cell::Text(text).into())
            .ok_or_else(|| misfit("type", "expected string")),
        ColumnType::Float64 => float(raw)
            .map(|value| Cell::Float(value).into())
            .ok_or_else(|| misfit("type", "expected number")),
        ColumnType::Int64 => integer(raw).map(|value| Cell::Int(value).into()).ok_or_else(|| {
            misfit(
                "type",
                "expected an integer between -9223372036854775808 and 9223372036854775807",
            )
        }),
        ColumnType::Boolean => match raw {
            "true" => Ok(Cell::Bool(true).into()),
            "false" => Ok(Cell::Bool(false).into()),
            // The schema decides whether numbers may stand here.
            _ => match float(raw) {
                Some(1.0) => Ok(Cell::Bool(true).into()),
                Some(0.0) => Ok(Cell::Bool(false).into()),
                _ => Err(misfit("type", "expected boolean")),
            },
        },
        ColumnType::Timestamp(..) => {
            let text =
                json::text(raw).ok_or_else(|| misfit("type", "expected a string with a date and time"))?;
            let instant = parse_instant(&text).map_err(|error| misfit("format", &error.to_string()))?;
            Ok(Cell::Time(instant.micros()).into())
        }
        ColumnType::List(item) => list(raw, item),
        ColumnType::Struct(members) if raw.starts_with('"') => alone(raw, members),
        ColumnType::Struct(members) => members_of(raw, members),
        other => Err(misfit("type", &format!("cannot be stored as {other}"))),
    }
}

/// The cell, with values that are stored in one spelling converted to it.
pub(super) fn in_one_spelling<'a>(cell: Cell<'a>, canonical: &Canonical) -> Cell<'a> {
    match (canonical, cell) {
        (Canonical::Uuid, Cell::Text(text)) => Cell::Text(respelt(&text).map_or(text, Cow::Owned)),
        (Canonical::Longitude, Cell::Float(value)) => Cell::Float(western(value)),
        (Canonical::Items(item), Cell::List(cells)) => Cell::List(
            cells
                .into_iter()
                .map(|cell| in_one_spelling(cell, item))
                .collect(),
        ),
        (Canonical::Members(members), Cell::Struct(cells)) => {
            let members = members.iter().chain(std::iter::repeat(&Canonical::AsSent));
            Cell::Struct(
                cells
                    .into_iter()
                    .zip(members)
                    .map(|(cell, member)| in_one_spelling(cell, member))
                    .collect(),
            )
        }
        (_, cell) => cell,
    }
}

/// The number that `raw` represents, if it is a finite number.
pub(super) fn float(raw: &str) -> Option<f64> {
    serde_json::from_str(raw)
        .ok()
        .filter(|value: &f64| value.is_finite())
}

/// The integer that `raw` represents; `3.0` and `3e2` are integers too.
pub(super) fn integer(raw: &str) -> Option<i64> {
    if let Ok(value) = raw.parse() {
        return Some(value);
    }
    float(raw).and_then(whole)
}

/// The integer that `value` equals, if it is whole.
pub(super) fn whole(value: f64) -> Option<i64> {
    const BEYOND_INTEGERS: f64 = 9_223_372_036_854_775_808.0;
    (value.fract() == 0.0 && (-BEYOND_INTEGERS..BEYOND_INTEGERS).contains(&value)).then_some(value as i64)
}

/// The text without blanks between its tokens.
pub(super) fn compact(raw: &str) -> Cow<'_, str> {
    let mut text = String::with_capacity(raw.len());
    json::append_compact(raw, &mut text);
    Cow::Owned(text)
}

fn list<'a>(raw: &'a str, item: &Field) -> Result<Filled<'a>, Misfit> {
    let elements = json::elements(raw).ok_or_else(|| misfit("type", "expected array"))?;
    let mut cells = Vec::with_capacity(elements.len());
    let mut is_whole = true;
    for (index, element) in elements.into_iter().enumerate() {
        let filled = fill(element, item).map_err(|found| found.inside(index))?;
        is_whole &= filled.rest.is_none();
        cells.push(filled.cell);
    }
    Ok(Filled {
        cell: Cell::List(cells),
        rest: (!is_whole).then(|| compact(raw).into_owned()),
    })
}

fn members_of<'a>(raw: &'a str, members: &Fields) -> Result<Filled<'a>, Misfit> {
    let given = json::fields(raw.as_bytes()).map_err(|_| misfit("type", "expected object"))?;
    let declared = DeclaredMembers::new(members, given.len());
    let mut cells = vec![Cell::Null; members.len()];
    let mut seen = vec![false; members.len()];
    let mut rests: Vec<Option<String>> = vec![None; members.len()];
    let mut rest = ObjectText::default();
    let mut keep = |name: &str, raw: &str| json::append_compact(raw, rest.field(name));
    for field in given {
        let name = field.name.as_ref();
        let Some((position, member)) = declared.find(name) else {
            keep(name, field.raw);
            continue;
        };
        match seen.get_mut(position) {
            Some(seen) if *seen => return Err(misfit("duplicate", "given twice").inside(name)),
            Some(seen) => *seen = true,
            None => {}
        }
        let filled = fill(field.raw, member).map_err(|found| found.inside(name))?;
        if let Some(cell) = cells.get_mut(position) {
            *cell = filled.cell;
        }
        if let (Some(of_member), Some(place)) = (filled.rest, rests.get_mut(position)) {
            *place = Some(of_member);
        }
    }
    // After the undeclared members, in the order of the declaration, as rows show it: what is read and sent
    // again yields the same text.
    for (member, rest) in members.iter().zip(rests) {
        if let Some(rest) = rest {
            keep(member.name(), &rest);
        }
    }
    Ok(Filled {
        cell: Cell::Struct(cells),
        rest: rest.unless_empty(),
    })
}

/// A list where a text is stored, which only the schema of version numbers allows.
fn version(raw: &str) -> Result<Filled<'_>, Misfit> {
    let expected = || misfit("type", "expected the numbers of a version, such as [17, 2, 0]");
    let elements = json::elements(raw).ok_or_else(expected)?;
    let numbers: Option<Vec<i64>> = elements.into_iter().map(integer).collect();
    let text = numbers
        .and_then(|numbers| text_of(&numbers))
        .ok_or_else(expected)?;
    Ok(Cell::Text(Cow::Owned(text)).into())
}

/// A text where an object could stand, which only a schema that admits both allows: a contact's id if it is a
/// UUID, otherwise a name.
fn alone<'a>(raw: &'a str, members: &Fields) -> Result<Filled<'a>, Misfit> {
    let text = json::text(raw).ok_or_else(|| misfit("type", "expected object"))?;
    let name = if uuid::Uuid::try_parse(&text).is_ok() {
        "contact_id"
    } else {
        "name"
    };
    let (position, _) = members
        .find(name)
        .or_else(|| members.find("name"))
        .ok_or_else(|| misfit("type", "expected object"))?;
    let mut cells = vec![Cell::Null; members.len()];
    if let Some(cell) = cells.get_mut(position) {
        *cell = Cell::Text(text);
    }
    Ok(Cell::Struct(cells).into())
}

fn misfit(kind: &'static str, message: &str) -> Misfit {
    Misfit {
        path: Vec::new(),
        kind,
        message: message.to_owned(),
    }
}

impl Misfit {
    fn inside(mut self, part: impl Into<LocPart>) -> Self {
        self.path.push(part.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn number(name: &str) -> Field {
        Field::new(name, ColumnType::Float64, true)
    }

    #[test]
    fn whole_numbers_are_integers_however_written() {
        let column = Field::new("count", ColumnType::Int64, true);
        for (raw, value) in [
            ("3", 3),
            ("3.0", 3),
            ("3e2", 300),
            ("-0", 0),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(fill(raw, &column).unwrap().cell, Cell::Int(value), "{raw}");
        }
        for raw in ["3.5", "9223372036854775808", "1e30", "\"3\"", "true"] {
            assert_eq!(fill(raw, &column).unwrap_err().kind, "type", "{raw}");
        }
    }

    #[test]
    fn rule_8_4_what_a_struct_does_not_declare_is_handed_back() {
        let inner = Field::new("inner", ColumnType::Struct(vec![number("a")].into()), true);
        let outer = Field::new("outer", ColumnType::Struct(vec![inner, number("b")].into()), true);
        let filled = fill(
            r#"{"b": 2, "x": [1.10, 2], "inner": {"a": 1, "y": null}}"#,
            &outer,
        )
        .unwrap();
        assert_eq!(
            filled.cell,
            Cell::Struct(vec![Cell::Struct(vec![Cell::Float(1.0)]), Cell::Float(2.0)])
        );
        assert_eq!(
            filled.rest.as_deref(),
            Some(r#"{"x":[1.10,2],"inner":{"y":null}}"#)
        );
    }

    #[test]
    fn a_text_in_place_of_a_participant_is_a_contact_or_a_name() {
        let text = |name: &str| Field::new(name, ColumnType::Utf8, true);
        let person = Field::new(
            "person",
            ColumnType::Struct(vec![text("contact_id"), text("name")].into()),
            true,
        );
        let contact = "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e";
        let filled = |raw: &str| fill(raw, &person).map(|filled| format!("{:?}", filled.cell));
        let cell = |cells: Vec<Cell<'_>>| Ok(format!("{:?}", Cell::Struct(cells)));
        assert_eq!(
            filled(&format!("\"{contact}\"")),
            cell(vec![Cell::Text(Cow::Borrowed(contact)), Cell::Null])
        );
        assert_eq!(
            filled("\"Ada\""),
            cell(vec![Cell::Null, Cell::Text(Cow::Borrowed("Ada"))])
        );
        let nameless = Field::new("place", ColumnType::Struct(vec![text("title")].into()), true);
        assert_eq!(fill("\"Ada\"", &nameless).unwrap_err().kind, "type");
    }

    #[test]
    fn a_misfit_says_where_it_is() {
        let list = Field::new("list", ColumnType::List(Arc::new(number("item"))), true);
        let outer = Field::new("outer", ColumnType::Struct(vec![list].into()), true);
        let found = fill(r#"{"list": [1, "x"]}"#, &outer).unwrap_err();
        assert_eq!(found.path, [LocPart::from(1), LocPart::from("list")]);
    }
}
