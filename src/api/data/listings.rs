//! Listings of what there is: stored data, its sources, its changes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::AppState;
use crate::api::data::partitions::{belonging_to, partitions_of, readable};
use crate::api::extract::Checked;
use crate::api::input::files::{CHANGED_COLUMNS, FileChange, changes};
use crate::api::listed::{ListingForm, ListingQuery, aside, document_as, listed_as, listing};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::ReadableTypes;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::output::{ColumnKind, ListedColumn, joined};
use crate::people::annotations::AnnotationRow;
use crate::people::types::ResolvedType;
use crate::query::TypedPartition;

/// A range of time, and whose data is meant.
#[derive(Debug)]
pub struct RangeQuery {
    range: TimeRange,
    owner: Option<PersonId>,
}

impl FromParams for RangeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, owner) = (params.range(), params.owner());
        Some(Self { range: range?, owner })
    }
}

/// Whose records, of which time, and the form of the answer.
#[derive(Debug)]
pub struct AvailableQuery {
    asked: RangeQuery,
    form: ListingForm,
}

impl FromParams for AvailableQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (asked, form) = (RangeQuery::from_params(params), ListingForm::read(params));
        Some(Self {
            asked: asked?,
            form: form?,
        })
    }
}

/// What was changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Updates {
    /// How many records were written or deleted, by data type.
    #[schema(value_type = HashMap<String, i64>)]
    data_types: Map<String, Value>,
    /// Files that were changed.
    file_changes: Vec<FileChange>,
}

const COUNTED_COLUMNS: [ListedColumn; 2] = [
    ListedColumn::new("data_type", ColumnKind::Text),
    ListedColumn::new("count", ColumnKind::Whole),
];
const UPDATED_COLUMNS: [ListedColumn; 11] = joined(&COUNTED_COLUMNS, &CHANGED_COLUMNS);

/// What was changed during the range, whatever time the changed records are of, counted by type. In a table a
/// row has a `data_type` and its `count`, or describes a changed file.
#[utoipa::path(get, path = "/data/v1/updates", tag = "listings",
    params(Checked<AvailableQuery>),
    responses((status = 200, description = "Counts by data type, and changed files", body = Updates),
        (status = 403), (status = 422), (status = 429)))]
pub async fn updates(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<AvailableQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let AvailableQuery { asked: query, form } = query;
        // The range is one of processing time. A changed record may be of any time.
        let always = TimeRange::ALWAYS;
        let permit = app
            .grants
            .readable_types(&reader, reader.asks_about(query.owner), always)
            .await?;
        let told = |data_type: &TypeId| {
            permit
                .windows_of(data_type)
                .is_some_and(|windows| permit.is_own() || windows.as_slice() == [always])
        };
        let data_types: Map<String, Value> = app
            .catalog
            .updates_between(permit.owner(), query.range)
            .await?
            .into_iter()
            .filter(|(data_type, _)| told(data_type))
            .map(|(data_type, count)| (data_type.as_str().to_owned(), json!(count)))
            .collect();
        let updates = Updates {
            data_types,
            file_changes: changes(&app, &reader, permit.owner(), query.range).await?,
        };
        let types = updates.data_types.iter();
        let types = types.map(|(data_type, count)| json!({"data_type": data_type, "count": count}));
        let files = updates.file_changes.iter().map(|change| json!(change));
        let rows: Vec<Value> = if form.is_of_rows() {
            types.chain(files).collect()
        } else {
            Vec::new()
        };
        document_as(&app, &headers, form, &UPDATED_COLUMNS, (&updates, &rows)).await
    })
    .await
}

/// What is stored of one type.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stored {
    #[schema(format = DateTime)]
    start_time: String,
    #[schema(format = DateTime)]
    end_time: String,
    count: i64,
}

/// How many records of a type there are, and between which moments, as a row of a table.
#[derive(Serialize)]
struct StoredRow {
    data_type: String,
    #[serde(flatten)]
    stored: Stored,
}

impl StoredRow {
    fn of(data_type: String, count: i64, start: Instant, end: Instant) -> Self {
        Self {
            data_type,
            stored: Stored {
                start_time: start.to_rfc3339(),
                end_time: end.to_rfc3339(),
                count,
            },
        }
    }
}

const STORED_COLUMNS: [ListedColumn; 4] = [
    ListedColumn::new("data_type", ColumnKind::Text),
    ListedColumn::new("start_time", ColumnKind::Time),
    ListedColumn::new("end_time", ColumnKind::Time),
    ListedColumn::new("count", ColumnKind::Whole),
];

/// Which types have records in the range, and from when to when: one object for each, keyed by the type, or
/// with `output` a row for each.
#[utoipa::path(get, path = "/data/v1alpha1/data_available", tag = "listings",
    params(Checked<AvailableQuery>),
    responses((status = 200, description = "One object for each type, keyed by the type",
        body = Vec<HashMap<String, Stored>>), (status = 403), (status = 422), (status = 429)))]
pub async fn data_available(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<AvailableQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let AvailableQuery { asked, form } = query;
    let owner = reader.asks_about(asked.owner);
    let permit = app.grants.readable_types(&reader, owner, asked.range).await?;
    let _held_until_all_are_asked = app.queries.enter(reader.person()).await?;
    let available = app.questions.available(&permit, asked.range).await?;
    let mut rows: Vec<StoredRow> = available
        .into_iter()
        .map(|found| {
            let (start, end) = (found.first_start, found.last_end);
            StoredRow::of(found.data_type.to_string(), found.records, start, end)
        })
        .collect();
    if !permit.is_own() {
        rows.extend(of_annotations(&app, &reader, &permit, asked.range).await?);
        rows.sort_by(|one, other| one.data_type.cmp(&other.data_type));
    }
    if form.is_of_rows() {
        return listed_as(&app, &headers, form, &STORED_COLUMNS, &rows).await;
    }
    let keyed = rows
        .into_iter()
        .map(|row| HashMap::from([(row.data_type, row.stored)]));
    listing(&headers, &keyed.collect::<Vec<_>>())
}

/// What is stored of annotations of which more is shared than of all of their type: their records lie among
/// those of other annotations. Deleted ones keep their records. Whoever asks holds a place.
async fn of_annotations(
    app: &AppState,
    reader: &Reader,
    permit: &ReadableTypes,
    range: TimeRange,
) -> Result<Vec<StoredRow>, ApiError> {
    let owner = permit.owner();
    let annotations = app.annotations.all(owner).await?;
    let mut alone: Vec<TypeId> = annotations.iter().map(AnnotationRow::type_id).collect();
    alone.retain(|id| {
        let of_type = TypeId::new(id.base());
        let shared = permit.windows_of(id);
        shared.is_some() && shared != permit.windows_of(&of_type)
    });
    if alone.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    // The annotations of one type share a partition, which knows all of its definitions.
    let mut known: HashMap<String, Vec<TypedPartition>> = HashMap::new();
    for id in &alone {
        let windows = app.grants.windows(reader, owner, id, range).await?;
        let resolved = readable(app, owner, id.as_str()).await?;
        let Some(definition) = resolved.annotation else {
            continue;
        };
        let partitions = match known.entry(id.base().to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let of_type = ResolvedType {
                    annotation: None,
                    ..resolved
                };
                let (partitions, _) = partitions_of(app, reader, owner, &of_type, Vec::new()).await?;
                new.insert(partitions)
            }
        };
        let conditions = [belonging_to(app, definition)];
        let summary = app.questions.summary(&windows, partitions, &conditions).await?;
        if let (Some(start), Some(end)) = (summary.first_start, summary.last_end) {
            found.push(StoredRow::of(id.to_string(), summary.records, start, end));
        }
    }
    Ok(found)
}

/// A source of records.
#[derive(Debug, Serialize, ToSchema)]
pub struct DataSource {
    id: Uuid,
    #[schema(required)]
    name: Option<String>,
    /// The name that records use for it.
    vendor_id: String,
    #[schema(required)]
    parent_id: Option<Uuid>,
    #[schema(required)]
    metadata: Option<SourceMetadata>,
}

/// What else is known of a source.
#[derive(Debug, Serialize, ToSchema)]
pub struct SourceMetadata {
    /// When its first record arrived.
    #[schema(format = DateTime)]
    added_at: String,
}

const SOURCES: [ListedColumn; 5] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("vendor_id", ColumnKind::Text),
    ListedColumn::new("parent_id", ColumnKind::Text),
    ListedColumn::new("metadata", ColumnKind::Json),
];

/// The sources of the caller's records.
#[utoipa::path(get, path = "/data/v1alpha1/data_sources", tag = "listings",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Sources", body = [DataSource]), (status = 429)))]
pub async fn data_sources(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let sources = app.catalog.sources_of(reader.person()).await?;
        let entry = |source: crate::catalog::records::KnownSource| DataSource {
            id: source.id,
            name: source.name,
            vendor_id: source.key,
            parent_id: None,
            metadata: Some(SourceMetadata {
                added_at: source.added_at.to_rfc3339(),
            }),
        };
        let sources: Vec<DataSource> = sources.into_iter().map(entry).collect();
        listed_as(&app, &headers, query.form, &SOURCES, &sources).await
    })
    .await
}
