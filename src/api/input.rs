//! What people add besides records: their own data types, `/input/v1/data_type`, and files.

pub mod files;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::{App, AppState};
use crate::api::docs::bodies::{DataTypeChange, NewDataType};
use crate::api::document::Document;
use crate::api::endpoints::{Routes, endpoint};
use crate::api::entry_columns::ENTRY;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, ListingQuery, aside, listed_as, one_as};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::tokens::Reader;
use crate::model::excerpt::beginning;
use crate::model::registry::{Base, CatalogEntry};
use crate::output::{ColumnKind, ListedColumn, joined};
use crate::people::condition::Condition;
use crate::people::types::OwnType;

/// The routes of own types and of files.
pub fn routes() -> Routes {
    Routes::new()
        .with(endpoint!(list))
        .with(endpoint!(create))
        .with(endpoint!(one, change))
        .merge(files::routes())
}

/// Whether archived types are wanted as well.
#[derive(Debug)]
pub struct ListQuery {
    archived: bool,
    form: ListingForm,
}

impl FromParams for ListQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (archived, form) = (
            params.flag_or("include_deprecated", false),
            ListingForm::read(params),
        );
        Some(Self {
            archived: archived?,
            form: form?,
        })
    }
}

/// Columns of one's own type beyond those of every catalogue entry.
const OWN: [ListedColumn; 7] = [
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("updated_at", ColumnKind::Time),
    ListedColumn::new("deleted", ColumnKind::Flag),
    ListedColumn::new("default_event_tags", ColumnKind::Texts),
    ListedColumn::new("svc_source", ColumnKind::Texts),
    ListedColumn::new("svc_data_type", ColumnKind::Text),
    ListedColumn::new("url", ColumnKind::Text),
];
const COLUMNS: [ListedColumn; 22] = joined(&ENTRY, &OWN);

/// The caller's own types.
#[utoipa::path(get, path = "/input/v1/data_type", operation_id = "list_own_types",
    tag = "own types",
    params(Checked<ListQuery>),
    responses((status = 200, description = "Own types", body = [OwnEntry]), (status = 422),
        (status = 429)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let own = app.types.all_own(reader.person()).await?;
        let wanted = own
            .iter()
            .filter(|own| query.archived || !own.definition.deprecated);
        let entries: Vec<OwnEntry> = wanted.map(|own| entry(&app, own)).collect::<Result<_, _>>()?;
        listed_as(&app, &headers, query.form, &COLUMNS, &entries).await
    })
    .await
}

/// Defines a type based on `Event` or `Metric`.
#[utoipa::path(post, path = "/input/v1/data_type/{base}", operation_id = "create_own_type",
    tag = "own types",
    params(("base" = inline(Base), Path), Checked<NoParams>), request_body = NewDataType,
    responses((status = 201, description = "The new type", body = OwnEntry), (status = 404), (status = 413),
        (status = 415), (status = 422)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    Path(base): Path<String>,
    _query: Checked<NoParams>,
    Document(body): Document,
) -> Result<(StatusCode, Json<OwnEntry>), ApiError> {
    let own = app
        .types
        .create(reader.person(), base_named(&base)?, &body)
        .await?;
    Ok((StatusCode::CREATED, Json(entry(&app, &own)?)))
}

/// One of the caller's own types, archived or not.
#[utoipa::path(get, path = "/input/v1/data_type/{base}/{id}", operation_id = "get_own_type",
    tag = "own types",
    params(("base" = inline(Base), Path), ("id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The type", body = OwnEntry), (status = 404), (status = 422)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path((base, id)): Path<(String, String)>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let base = base_named(&base)?;
    let own = app.types.own(reader.person(), definition_id(&id)?).await?;
    let own = own.filter(|own| own.definition.base == base.as_str());
    let own = own.ok_or_else(|| ApiError::not_found(format!("{base}/{id} is not one of your data types")))?;
    one_as(&app, &headers, query.form, &COLUMNS, &entry(&app, &own)?).await
}

/// Changes the members that are sent: names, a schema that grows, or `deprecated` to archive and restore.
#[utoipa::path(put, path = "/input/v1/data_type/{base}/{id}", operation_id = "change_own_type",
    tag = "own types",
    params(("base" = inline(Base), Path), ("id" = Uuid, Path), Checked<NoParams>),
    request_body = DataTypeChange,
    responses((status = 200, description = "The changed type", body = OwnEntry), (status = 404),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change(
    State(app): State<AppState>,
    reader: Reader,
    Path((base, id)): Path<(String, String)>,
    _query: Checked<NoParams>,
    condition: Condition,
    Document(body): Document,
) -> Result<Json<OwnEntry>, ApiError> {
    let (base, id) = (base_named(&base)?, definition_id(&id)?);
    let changed = app.types.change(reader.person(), base, id, &body, &condition);
    Ok(Json(entry(&app, &changed.await?)?))
}

fn base_named(name: &str) -> Result<Base, ApiError> {
    Base::named(name).ok_or_else(|| {
        let name = beginning(name);
        ApiError::not_found(format!(
            "{name:?} is not a base of data types; use Event or Metric"
        ))
    })
}

/// The definition's id, with or without its base in front.
fn definition_id(text: &str) -> Result<Uuid, ApiError> {
    let last = text.rsplit('/').next().unwrap_or(text);
    Uuid::parse_str(last)
        .map_err(|_| ApiError::not_found(format!("there is no data type {:?}", beginning(text))))
}

/// A type of one's own: the catalogue's entry, with what only the owner sees.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnEntry {
    #[serde(flatten)]
    #[schema(value_type = CatalogEntry)]
    entry: Value,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// Archived, as `deprecated` says.
    deleted: bool,
    default_event_tags: Option<Vec<String>>,
    svc_source: Option<Vec<String>>,
    /// The name under which its records are written and read.
    svc_data_type: String,
    url: String,
}

/// The catalogue's entry, with what only the owner sees.
fn entry(app: &App, own: &OwnType) -> Result<OwnEntry, ApiError> {
    let definition = &own.definition;
    let mut entry = own.data_type.catalog_entry(definition.person);
    if let Value::Object(members) = &mut entry {
        members.insert("deprecated".to_owned(), json!(definition.deprecated));
    }
    let id = own.data_type.id.as_str();
    let said = own.said()?;
    Ok(OwnEntry {
        entry,
        created_at: definition.created_at.to_rfc3339(),
        updated_at: definition.updated_at.to_rfc3339(),
        deleted: definition.deprecated,
        default_event_tags: said.default_event_tags,
        svc_source: said.svc_source,
        svc_data_type: id.to_owned(),
        url: format!("{}/input/v1/data_type/{id}", app.settings.public_url),
    })
}
