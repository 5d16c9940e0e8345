//! What can be recorded and read: the catalogues.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::Value;

use crate::api::answer::listing;
use crate::api::app::{App, Shared};
use crate::api::extract::{Checked, Path};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::{ApiVersion, CatalogEntry, DataType, ListEntry};
use crate::model::time::{Instant, TimeRange};
use crate::people::types::Named;

/// All data types as a plain list.
#[utoipa::path(get, path = "/data/v1alpha1/data_types", tag = "catalogue", params(Checked<NoParams>),
    responses((status = 200, description = "Data types", body = [ListEntry])))]
pub async fn data_types(
    State(app): State<Shared>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let mut entries: Vec<Value> = app
        .types
        .registry()
        .types()
        .iter()
        .map(|data_type| data_type.list_entry())
        .collect();
    let own = app.types.all_own(reader.person()).await?;
    entries.extend(
        own.iter()
            .filter(|own| !own.definition.deprecated)
            .map(|own| own.data_type.list_entry()),
    );
    listing(&headers, &entries)
}

/// Which types of whom.
#[derive(Debug)]
pub struct CatalogQuery {
    data_type: Vec<String>,
    category: Vec<String>,
    owner: Option<PersonId>,
}

impl FromParams for CatalogQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            data_type: params.list("data_type"),
            category: params.list("category"),
            owner: params.owner(),
        })
    }
}

/// The types that the caller has: built in, own and shared.
#[utoipa::path(get, path = "/data/v1/catalog", tag = "catalogue",
    params(Checked<CatalogQuery>),
    responses((status = 200, description = "Catalogue entries", body = [CatalogEntry]), (status = 403),
        (status = 404), (status = 422)))]
pub async fn catalog(
    State(app): State<Shared>,
    reader: Reader,
    Checked(query): Checked<CatalogQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let owner = listed_owner(&app, &reader, query.owner).await?;
    let mut types = Vec::new();
    if query.data_type.is_empty() {
        types.extend(app.types.registry().types().iter().cloned());
        types.extend(
            app.types
                .all_own(owner)
                .await?
                .into_iter()
                .filter(|own| !own.definition.deprecated)
                .map(|own| own.data_type),
        );
    }
    for name in &query.data_type {
        types.push(app.types.find(owner, name).await?.data_type);
    }
    let asked = |data_type: &DataType| {
        query.category.is_empty()
            || query
                .category
                .iter()
                .any(|category| data_type.categories.contains(category))
    };
    let entries = types
        .iter()
        .filter(|data_type| asked(data_type))
        .map(|data_type| data_type.catalog_entry(owner));
    listing(&headers, &entries.collect::<Vec<Value>>())
}

/// Whose type a path names.
#[derive(Debug)]
pub struct EntryQuery {
    owner: Option<PersonId>,
}

impl FromParams for EntryQuery {
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
    State(app): State<Shared>,
    reader: Reader,
    Path((data_type, api_version)): Path<(String, String)>,
    Checked(query): Checked<EntryQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let owner = listed_owner(&app, &reader, query.owner).await?;
    let named = of_version(&app, owner, &data_type, &api_version).await?;
    listing(&headers, &named.data_type.detailed_entry(owner))
}

/// The JSON Schema of one type's records.
#[utoipa::path(get, path = "/data/v1/catalog/{data_type}/{api_version}/schema", tag = "catalogue",
    params(("data_type" = String, Path), ("api_version" = ApiVersion, Path), Checked<EntryQuery>),
    responses((status = 200, description = "JSON Schema, draft 2020-12", body = Object), (status = 403),
        (status = 404), (status = 422)))]
pub async fn catalog_schema(
    State(app): State<Shared>,
    reader: Reader,
    Path((data_type, api_version)): Path<(String, String)>,
    Checked(query): Checked<EntryQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let owner = listed_owner(&app, &reader, query.owner).await?;
    let named = of_version(&app, owner, &data_type, &api_version).await?;
    listing(&headers, named.data_type.schema.as_ref())
}

async fn of_version(app: &App, owner: PersonId, name: &str, api_version: &str) -> Result<Named, ApiError> {
    let named = app.types.find(owner, name).await?;
    let version = serde_json::to_value(named.data_type.api_version).map_err(ApiError::internal)?;
    if version == api_version {
        return Ok(named);
    }
    let version = version.as_str().unwrap_or_default().to_owned();
    Err(ApiError::not_found(format!(
        "{} has the version {version}, not {api_version:?}",
        named.data_type.id
    )))
}

/// The person whose types are listed, if the reader may see them.
async fn listed_owner(app: &App, reader: &Reader, owner: Option<PersonId>) -> Result<PersonId, ApiError> {
    let owner = owner.unwrap_or_else(|| reader.person());
    let always =
        TimeRange::new(Instant::MIN, Instant::MAX).ok_or_else(|| ApiError::internal("time is inverted"))?;
    Ok(app.grants.readable_types(reader, owner, always).await?.owner())
}
