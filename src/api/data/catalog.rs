//! The catalogues of what can be recorded and read.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant as Moment;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;

use crate::api::answer::Sending;
use crate::api::app::{App, AppState};
use crate::api::entry_columns::ENTRY;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{
    ListingForm, ListingQuery, aside, aside_with_slot, listed_as, listed_in_parts, listing, one_as,
};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params, list_items};
use crate::auth::grants::ReadableTypes;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::{ApiVersion, CatalogEntry, Category, DataType, ListEntry, TypeId};
use crate::model::time::TimeRange;
use crate::output::{ColumnKind, ListedColumn, joined};
use crate::people::annotations::AnnotationRow;
use crate::people::types::TypesError;

use super::listed_type::{Entry, ListedType};
use super::names::{resolve_name, resolve_names};
use super::shared_types::{self, live_annotations};

const LISTED_COLUMNS: [ListedColumn; 4] = [
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("class", ColumnKind::Text),
    ListedColumn::new("category", ColumnKind::Texts),
];

/// The last column is only in an entry that is asked for alone.
const ENTRIES: [ListedColumn; 16] = joined(&ENTRY, &[ListedColumn::new("column_units", ColumnKind::Json)]);

/// All data types as a plain list.
#[utoipa::path(get, path = "/data/v1alpha1/data_types", tag = "catalogue", params(Checked<ListingQuery>),
    responses((status = 200, description = "Data types", body = [ListEntry]), (status = 429)))]
pub async fn data_types(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let mut entries: Vec<Value> = app
            .types
            .registry()
            .types()
            .iter()
            .map(|data_type| data_type.list_entry())
            .collect();
        let own = app.types.all_own(reader.person()).await?;
        entries.extend(own.live().map(|own| own.data_type.list_entry()));
        let annotations = app.annotations.all(reader.person()).await?;
        let live = annotations.iter().filter(|annotation| annotation.is_live());
        entries.extend(live.filter_map(|annotation| annotation.list_entry(app.types.registry())));
        listed_as(&app, &headers, query.form, &LISTED_COLUMNS, &entries).await
    })
    .await
}

/// Which types, and whose.
#[derive(Debug)]
pub struct CatalogQuery {
    data_types: Vec<String>,
    categories: Vec<Category>,
    owner: Option<PersonId>,
    form: ListingForm,
}

impl FromParams for CatalogQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (data_types, categories) = (params.repeated("data_type"), params.choices("category"));
        let (owner, form) = (params.owner(), ListingForm::read(params));
        Some(Self {
            data_types,
            categories: categories?,
            owner,
            form: form?,
        })
    }
}

/// The types that the caller has: built in, own and shared.
#[utoipa::path(get, path = "/data/v1/catalog", tag = "catalogue",
    params(Checked<CatalogQuery>),
    responses((status = 200, description = "Catalogue entries", body = [CatalogEntry]), (status = 403),
        (status = 404), (status = 422), (status = 429)))]
pub async fn catalog(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<CatalogQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let begun = Moment::now();
    aside_with_slot(AppState::clone(&app), reader.person(), |slot| async move {
        let permit = listed_types(&app, &reader, query.owner).await?;
        let owner = permit.owner();
        let names = named_types(&app, &reader, owner, &query.data_types).await?;
        let shared = shared_types::shared_with(&app, &permit, &names).await?;
        let mut types = Vec::new();
        if names.is_empty() {
            let built_in = app.types.registry().types().iter().cloned();
            types.extend(built_in.map(ListedType::Made));
            let own = app.types.all_own(owner).await?;
            let live = own.live().map(|own| Arc::clone(&own.data_type));
            types.extend(live.map(ListedType::Made));
            types.extend(live_annotations(&app, owner).await?);
        }
        // A type has several names, and a name may be repeated.
        let mut found_ids = HashSet::new();
        for name in &names {
            shared_types::refuse_hidden(&app, &permit, name)?;
            let found = match listed(&app, owner, name).await {
                Err(unknown)
                    if unknown.status() == StatusCode::NOT_FOUND && shared_types::is_among(&shared, name) =>
                {
                    continue;
                }
                found => found?,
            };
            if found_ids.insert(found.id.clone()) {
                types.push(ListedType::Made(found));
            }
        }
        let asked = |listed: &ListedType| {
            query.categories.is_empty() || query.categories.iter().any(|category| listed.is_in(*category))
        };
        let wants_shared = query.categories.contains(&Category::SharedType);
        let asked_as_shared = |listed: &ListedType| asked(listed) || wants_shared;
        let seen = types
            .into_iter()
            .filter(|listed| permit.windows_of(listed.id()).is_some());
        let mut entries: Vec<Entry> = if permit.is_own() {
            seen.filter(asked).map(|own| Entry::own(own, owner)).collect()
        } else {
            let asked = seen.filter(asked_as_shared);
            asked.map(|theirs| Entry::shared(theirs, owner)).collect()
        };
        entries.extend(shared_types::entries_read(&reader, &shared, asked_as_shared));
        let sending = Sending {
            app: &app,
            begun,
            slot,
        };
        listed_in_parts(sending, &headers, query.form, &ENTRIES, entries).await
    })
    .await
}

/// The types that `values` name, each of which is a list. A name that somebody gave may contain commas, so
/// that a value that is one as a whole is no list.
async fn named_types(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    values: &[String],
) -> Result<Vec<String>, ApiError> {
    let wholes = resolve_names(app, reader, owner, values).await?;
    let mut names = Vec::with_capacity(values.len());
    for (value, whole) in values.iter().zip(wholes) {
        if whole == *value {
            names.extend(list_items(value));
        } else {
            names.push(whole);
        }
    }
    resolve_names(app, reader, owner, &names).await
}

/// Whose type a path means.
#[derive(Debug)]
pub struct EntryQuery {
    owner: Option<PersonId>,
    form: ListingForm,
}

impl FromParams for EntryQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
            form: ListingForm::read(params)?,
        })
    }
}

/// Whose type it is, where the answer is always a schema.
#[derive(Debug)]
pub struct SchemaQuery {
    owner: Option<PersonId>,
}

impl FromParams for SchemaQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
        })
    }
}

/// One type with the schema of its records.
#[utoipa::path(get, path = "/data/v1/catalog/{data_type}/{api_version}", tag = "catalogue",
    params(("data_type" = String, Path), ("api_version" = ApiVersion, Path), Checked<EntryQuery>),
    responses((status = 200, description = "Catalogue entry", body = CatalogEntry), (status = 403),
        (status = 404), (status = 422)))]
pub async fn catalog_entry(
    State(app): State<AppState>,
    reader: Reader,
    Path((data_type, api_version)): Path<(String, String)>,
    Checked(query): Checked<EntryQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (permit, data_type) = addressed(&app, &reader, query.owner, &data_type, &api_version).await?;
    let entry = data_type.detailed_entry(permit.owner(), !permit.is_own());
    one_as(&app, &headers, query.form, &ENTRIES, &entry).await
}

/// The JSON Schema of one type's records.
#[utoipa::path(get, path = "/data/v1/catalog/{data_type}/{api_version}/schema", tag = "catalogue",
    params(("data_type" = String, Path), ("api_version" = ApiVersion, Path), Checked<SchemaQuery>),
    responses((status = 200, description = "JSON Schema, draft 2020-12", body = Object), (status = 403),
        (status = 404), (status = 422)))]
pub async fn catalog_schema(
    State(app): State<AppState>,
    reader: Reader,
    Path((data_type, api_version)): Path<(String, String)>,
    Checked(query): Checked<SchemaQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (_, data_type) = addressed(&app, &reader, query.owner, &data_type, &api_version).await?;
    listing(&headers, &*data_type.schema.value())
}

/// The type at an address, and what the reader may see of its owner's. Where no owner is named it is the
/// reader's, or else that of whoever shares it with them: the reader knows it from their own list.
async fn addressed(
    app: &App,
    reader: &Reader,
    owner: Option<PersonId>,
    name: &str,
    api_version: &str,
) -> Result<(ReadableTypes, Arc<DataType>), ApiError> {
    let whose = reader.asks_about(owner);
    let found = entry_of(app, reader, whose, name, api_version).await;
    let Err(unknown) = found else { return found };
    if owner.is_some() || unknown.status() != StatusCode::NOT_FOUND {
        return Err(unknown);
    }
    match shared_types::sharer_of(app, reader.person(), name).await? {
        Some(sharer) => entry_of(app, reader, sharer, name, api_version).await,
        None => Err(unknown),
    }
}

async fn entry_of(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    name: &str,
    api_version: &str,
) -> Result<(ReadableTypes, Arc<DataType>), ApiError> {
    let (permit, name) = listed_type(app, reader, owner, name).await?;
    let data_type = of_version(app, owner, &name, api_version).await?;
    Ok((permit, data_type))
}

/// The type called `name` as the catalogue shows it: an annotation under its own name.
async fn catalogued(app: &App, owner: PersonId, name: &str) -> Result<Arc<DataType>, ApiError> {
    let resolved = app.types.find(owner, name).await?;
    let Some(id) = resolved.annotation else {
        return Ok(resolved.data_type);
    };
    let annotation = app
        .annotations
        .of_type(owner, resolved.data_type.id.as_str(), id)
        .await?;
    let live = Some(annotation).filter(AnnotationRow::is_live);
    let data_type = live.and_then(|annotation| annotation.data_type(app.types.registry()));
    data_type.map(Arc::new).ok_or_else(|| unknown(name))
}

/// The type called `name` as a list of types shows it, which has no archived ones.
async fn listed(app: &App, owner: PersonId, name: &str) -> Result<Arc<DataType>, ApiError> {
    let data_type = catalogued(app, owner, name).await?;
    if data_type.deprecated {
        Err(unknown(name))
    } else {
        Ok(data_type)
    }
}

fn unknown(name: &str) -> ApiError {
    let (name, nearest) = (name.to_owned(), None);
    TypesError::Unknown { name, nearest }.into()
}

async fn of_version(
    app: &App,
    owner: PersonId,
    name: &str,
    api_version: &str,
) -> Result<Arc<DataType>, ApiError> {
    let data_type = catalogued(app, owner, name).await?;
    let version = data_type.api_version.name();
    if version == api_version {
        return Ok(data_type);
    }
    Err(ApiError::not_found(format!(
        "{} has the version {version}, not {api_version:?}",
        data_type.id
    )))
}

/// The person whose types are listed, and which of them the reader may see.
async fn listed_types(
    app: &App,
    reader: &Reader,
    owner: Option<PersonId>,
) -> Result<ReadableTypes, ApiError> {
    let owner = reader.asks_about(owner);
    Ok(app
        .grants
        .readable_types(reader, owner, TimeRange::ALWAYS)
        .await?)
}

/// What the reader may see of the owner's types, if `name` is among it, and the id that it stands for.
async fn listed_type(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    name: &str,
) -> Result<(ReadableTypes, String), ApiError> {
    let name = resolve_name(app, reader, owner, name).await?;
    let id = TypeId::new(&name);
    let permit = app
        .grants
        .readable_type(reader, owner, &id, TimeRange::ALWAYS)
        .await?;
    shared_types::refuse_hidden(app, &permit, &name)?;
    Ok((permit, name))
}
