//! Answers whose form the caller chooses, described once for all routes that give them.

use std::collections::BTreeMap;

use axum::http::header::CONTENT_DISPOSITION;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, Type,
};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use super::headers::carry;
use super::parameters::takes;
use super::rows::{Calendar, CalendarEvent, Workout};
use crate::api::header_names::{SERVER_TIMING, X_SVC_PERIODS_LEFT_OUT};
use crate::output::OutputMethod;

const OK: &str = "200";
const OUTPUT: &str = "output";
const PLAIN: &str = "text/plain";

/// Rows in any of the forms that `output` names, or a plan of how they are found.
#[derive(Clone, Copy, Debug)]
pub struct Rows;

/// Workouts, as rows.
#[derive(Clone, Copy, Debug)]
pub struct Workouts;

/// Calendars, as rows.
#[derive(Clone, Copy, Debug)]
pub struct Calendars;

/// Events of calendars, as rows.
#[derive(Clone, Copy, Debug)]
pub struct CalendarEvents;

/// Rows that a query finds, in any of the forms that its `output` names.
#[derive(Clone, Copy, Debug)]
pub struct QueryRows;

/// Rows in one of the forms that `format` names, or any that `output` names, or a plan of how they are found.
#[derive(Clone, Copy, Debug)]
pub struct Records;

/// Rows like those of [`Records`], of which some may be left out so that they tell nothing of anybody.
#[derive(Clone, Copy, Debug)]
pub struct CountedRecords;

impl IntoResponses for Rows {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        explained(answer(
            "Rows, in the form that `output` names, or how they are found",
            &OutputMethod::ALL,
        ))
    }
}

impl IntoResponses for Workouts {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        rows_of::<Workout>()
    }
}

impl IntoResponses for Calendars {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        rows_of::<Calendar>()
    }
}

impl IntoResponses for CalendarEvents {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        rows_of::<CalendarEvent>()
    }
}

impl IntoResponses for QueryRows {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        answered(answer(
            "Rows, in the form that `output` names",
            &OutputMethod::ALL,
        ))
    }
}

impl IntoResponses for Records {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        explained(answer(
            "Rows, in the form that `format` or `output` names, or how they are found",
            &OutputMethod::ALL,
        ))
    }
}

impl IntoResponses for CountedRecords {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut responses = Records::responses();
        if let Some(RefOr::T(response)) = responses.get_mut(OK) {
            carry(response, &[X_SVC_PERIODS_LEFT_OUT]);
        }
        responses
    }
}

/// Rows of which each is an `Item` with all of its members, unless columns are chosen.
fn rows_of<Item: ToSchema>() -> BTreeMap<String, RefOr<Response>> {
    let items = ArrayBuilder::new()
        .items(Ref::from_schema_name(Item::name()))
        .description(Some("Without `columns`"));
    let mut responses = Rows::responses();
    if let Some(RefOr::T(response)) = responses.get_mut(OK)
        && let Some(RefOr::T(json)) = response.content.get_mut(OutputMethod::Jstable.media_type())
        && let Some(rows) = json.schema.take()
    {
        let either = AnyOfBuilder::new().item(items).item(rows);
        json.schema = Some(RefOr::T(either.into()));
    }
    responses
}

/// Adds that the answer is a plan as text if `explain` asks for one.
fn explained(answer: ResponseBuilder) -> BTreeMap<String, RefOr<Response>> {
    let lines = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("A plan, a line for each operator"));
    answered(answer.content(PLAIN, Content::new(Some(Schema::from(lines)))))
}

fn answered(answer: ResponseBuilder) -> BTreeMap<String, RefOr<Response>> {
    let mut answer = answer.build();
    carry(&mut answer, &[CONTENT_DISPOSITION, SERVER_TIMING]);
    BTreeMap::from([(OK.to_owned(), answer.into())])
}

fn answer(description: &str, methods: &[OutputMethod]) -> ResponseBuilder {
    let mut by_type: BTreeMap<&str, Vec<Schema>> = BTreeMap::new();
    for method in methods {
        by_type
            .entry(method.media_type())
            .or_default()
            .extend(schema(*method));
    }
    let mut response = ResponseBuilder::new().description(description);
    for (media_type, mut schemas) in by_type {
        let schema = match (schemas.pop(), schemas.is_empty()) {
            (Some(last), false) => {
                let earlier = schemas.into_iter().fold(OneOfBuilder::new(), OneOfBuilder::item);
                Some(Schema::from(earlier.item(last)))
            }
            (only, _) => only,
        };
        response = response.content(media_type, Content::new(schema));
    }
    response
}

/// A listing that takes `output` is also answered with rows in each form. Without it, the answer is the JSON
/// of the listing's own description.
pub fn also_in_every_form(operation: &mut Operation) {
    if !takes(operation, |name| name == OUTPUT) {
        return;
    }
    let Some(RefOr::T(described)) = operation.responses.responses.get_mut(OK) else {
        return;
    };
    if described.content.len() > 1 {
        return;
    }
    carry(described, &[CONTENT_DISPOSITION]);
    let forms = answer("", &OutputMethod::ALL).build();
    for (media_type, content) in forms.content {
        let Some(RefOr::T(own)) = described.content.get_mut(&media_type) else {
            described.content.insert(media_type, content);
            continue;
        };
        if let (Some(own_schema), RefOr::T(content)) = (own.schema.take(), content)
            && let Some(schema) = content.schema
        {
            let either = AnyOfBuilder::new().item(own_schema).item(schema);
            own.schema = Some(RefOr::T(either.into()));
        }
    }
}

/// The schema of a body in this form. The two forms of CSV look alike.
fn schema(method: OutputMethod) -> Option<Schema> {
    let anything = || AdditionalProperties::FreeForm(true);
    let row = ObjectBuilder::new()
        .description(Some("Column names to values"))
        .additional_properties(Some(anything()));
    let schema = match method {
        OutputMethod::Quotecsv | OutputMethod::DefusedCsv | OutputMethod::DefusedQuotecsv => return None,
        OutputMethod::Jstable => ArrayBuilder::new().items(row).into(),
        OutputMethod::Jscolumns => ObjectBuilder::new()
            .description(Some("Column names to the values of all rows"))
            .additional_properties(Some(RefOr::T(ArrayBuilder::new().into())))
            .into(),
        OutputMethod::Ndjson | OutputMethod::Csv => ObjectBuilder::new().schema_type(Type::String).into(),
        OutputMethod::Arrow | OutputMethod::Arrowraw | OutputMethod::Parquet => ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .into(),
    };
    Some(schema)
}
