//! Files that people keep: `/input/v1/file`, and the same under the older name `/input/v1/file_upload`.

mod download;
mod file_tags;
mod named_file;
pub mod shapes;
pub mod upload;

use axum::Json;
use axum::extract::State;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use self::file_tags::{description_tag, is_named, shown, tagged};
use self::named_file::{OwnerQuery, file_id, readable_file};
pub use self::shapes::FileChange;
use self::shapes::{CreatedFile, FileChanges, FileInput, FileListing, NewFileInput};
use crate::api::answer_headers::{is_known, not_modified};
use crate::api::app::{App, AppState};
use crate::api::docs::common::deprecated;
use crate::api::document::Sent;
use crate::api::endpoints::{Routes, endpoint};
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, aside, document_as, one_as};
use crate::api::problem::{ApiError, JSON, Problem};
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::file_grants::ReadableFiles;
use crate::auth::grants::Denied;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::time::TimeRange;
use crate::output::{ColumnKind, ListedColumn, joined};
use crate::people::condition::Outdated;
use crate::people::file_names::{folder, name};
use crate::people::files::{File, FilesError, ListingFilter};

/// The root folder.
const TOP: &str = "/";

/// Every route about files, under both of its names.
pub fn routes() -> Routes {
    Routes::new()
        .nest("/input/v1/file", file_routes())
        .nest("/input/v1/file_upload", deprecated(file_routes()))
}

fn file_routes() -> Routes {
    Routes::new()
        .with(endpoint!(list_files, create_file))
        .with(endpoint!(recent_file_changes))
        .with(endpoint!(file, delete_file))
        .with(endpoint!(download::download_file))
        .with(endpoint!(restore_file))
}

/// Which files are asked for.
#[derive(Debug)]
pub struct FilesQuery {
    filter: ListingFilter,
    owner: Option<PersonId>,
    form: ListingForm,
}

impl FromParams for FilesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let path = checked(params, "path", folder);
        let name = checked(params, "name", name);
        let states = params.choices("state");
        let archived = params.flag_or("include_archived", false);
        let deleted = params.flag_or("include_deleted", false);
        let (range, owner) = (params.open_range(), params.owner());
        let form = ListingForm::read(params);
        Some(Self {
            filter: ListingFilter {
                path: path.ok()?,
                name: name.ok()?,
                states: states?,
                include_archived: archived?,
                include_deleted: deleted?,
                created_in: range?,
            },
            owner,
            form: form?,
        })
    }
}

/// A file or folder name in the query, in its stored form; a fault is noted if it is invalid.
fn checked(
    params: &mut Params<'_>,
    parameter: &'static str,
    read: fn(&str) -> Result<String, String>,
) -> Result<Option<String>, ()> {
    let text = params.text(parameter);
    text.map(|text| read(&text))
        .transpose()
        .map_err(|message| params.fault(parameter, "value_error", message))
}

/// Whose file it is, and the form of the answer.
#[derive(Debug)]
pub struct OneQuery {
    asked: OwnerQuery,
    form: ListingForm,
}

impl FromParams for OneQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (asked, form) = (OwnerQuery::from_params(params), ListingForm::read(params));
        Some(Self {
            asked: asked?,
            form: form?,
        })
    }
}

/// The range of time in which files changed.
#[derive(Debug)]
pub struct ChangesQuery {
    range: TimeRange,
    form: ListingForm,
}

impl FromParams for ChangesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.range(), ListingForm::read(params));
        Some(Self {
            range: range?,
            form: form?,
        })
    }
}

const FILE: [ListedColumn; 16] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("fulcra_userid", ColumnKind::Text),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("path", ColumnKind::Text),
    ListedColumn::new("size", ColumnKind::Whole),
    ListedColumn::new("state", ColumnKind::Text),
    ListedColumn::new("scan_state", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("uploaded_at", ColumnKind::Time),
    ListedColumn::new("archived_at", ColumnKind::Time),
    ListedColumn::new("deleted_at", ColumnKind::Time),
    ListedColumn::new("last_scanned", ColumnKind::Time),
    ListedColumn::new("restored_from_id", ColumnKind::Text),
    ListedColumn::new("source_id", ColumnKind::Text),
    ListedColumn::new("source_name", ColumnKind::Text),
    ListedColumn::new("source_data_types", ColumnKind::Json),
];

const LISTED_COLUMNS: [ListedColumn; 17] = joined(&[ListedColumn::new("folder", ColumnKind::Text)], &FILE);

/// Files by folder, name, state and age, and the folders below the one asked for. In a table a row either has
/// a `folder` or describes a file.
#[utoipa::path(get, path = "/", tag = "files",
    params(Checked<FilesQuery>),
    responses((status = 200, description = "Files and folders", body = FileListing), (status = 403),
        (status = 422), (status = 429)))]
pub async fn list_files(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<FilesQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let owner = reader.asks_about(query.owner);
        let folder = query.filter.path.as_deref().unwrap_or(TOP);
        let readable = app.grants.files(&reader, owner, folder).await?;
        let found = app
            .files
            .list(readable.owner(), &query.filter, |file| shows(&readable, file))
            .await?;
        let mut answer = FileListing::from(found);
        if !readable.are_own() {
            answer.files = answer.files.into_iter().map(FileInput::for_others).collect();
        }
        let folders = answer.folders.iter().map(|folder| json!({"folder": folder}));
        let files = answer.files.iter().map(|file| json!(file));
        let rows: Vec<Value> = if query.form.is_of_rows() {
            folders.chain(files).collect()
        } else {
            Vec::new()
        };
        document_as(&app, &headers, query.form, &LISTED_COLUMNS, (&answer, &rows)).await
    })
    .await
}

/// Announces a file. Its bytes are then sent to the `url` of the answer.
#[utoipa::path(post, path = "/", tag = "files",
    request_body = NewFileInput,
    params(Checked<NoParams>, ("origin" = Option<String>, Header),
        ("if-match" = Option<String>, Header), ("if-none-match" = Option<String>, Header)),
    responses((status = 200, description = "The file, and where its bytes go", body = CreatedFile),
        (status = 412), (status = 413), (status = 415), (status = 422)))]
pub async fn create_file(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    Sent(body): Sent<NewFileInput>,
) -> Result<Json<CreatedFile>, ApiError> {
    let must_be_first = headers.get(IF_NONE_MATCH).is_some_and(|value| value == "*");
    let announced = body.announced(must_be_first)?;
    if headers.contains_key(IF_MATCH) || headers.contains_key(IF_NONE_MATCH) {
        let there = app.files.there(reader.person(), &announced).await?;
        let is_there = |header: &HeaderName| {
            there
                .as_ref()
                .is_some_and(|file| is_named(&headers, header, file))
        };
        if headers.contains_key(IF_MATCH) && !is_there(&IF_MATCH) {
            return Err(ApiError::precondition_failed(
                "the file there is not the expected one",
            ));
        }
        if is_there(&IF_NONE_MATCH) {
            return Err(Outdated::Unwanted.into());
        }
    }
    let new = app.files.create(reader.person(), announced).await?;
    let own_url = || {
        let ticket = app.tickets.issue(new.file.id, new.open_until);
        format!("{}{}/{ticket}", app.settings.public_url, upload::PATH)
    };
    Ok(Json(CreatedFile {
        file: FileInput::from(&new.file),
        url: new.put_url.clone().unwrap_or_else(own_url),
    }))
}

/// The columns of a changed file.
pub(in crate::api) const CHANGED_COLUMNS: [ListedColumn; 9] = [
    ListedColumn::new("archived_at", ColumnKind::Time),
    ListedColumn::new("deleted_at", ColumnKind::Time),
    ListedColumn::new("full_name", ColumnKind::Text),
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("last_scanned", ColumnKind::Time),
    ListedColumn::new("scan_state", ColumnKind::Text),
    ListedColumn::new("size", ColumnKind::Whole),
    ListedColumn::new("state", ColumnKind::Text),
    ListedColumn::new("uploaded_at", ColumnKind::Time),
];

/// The caller's files that changed in a range of time.
#[utoipa::path(get, path = "/recent_changes", tag = "files",
    params(Checked<ChangesQuery>),
    responses((status = 200, description = "Changed files", body = FileChanges), (status = 422),
        (status = 429)))]
pub async fn recent_file_changes(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ChangesQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    aside(AppState::clone(&app), reader.person(), async move {
        let files = changes(&app, &reader, reader.person(), query.range).await?;
        let answer = FileChanges { files };
        document_as(
            &app,
            &headers,
            query.form,
            &CHANGED_COLUMNS,
            (&answer, &answer.files),
        )
        .await
    })
    .await
}

/// The files of `owner` that changed, as far as `reader` may know.
pub async fn changes(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    range: TimeRange,
) -> Result<Vec<FileChange>, ApiError> {
    let readable = match app.grants.files(reader, owner, TOP).await {
        // The reader may still be allowed to see other changes.
        Err(Denied::Refused(_) | Denied::Beyond(_)) => return Ok(Vec::new()),
        readable => readable?,
    };
    let changed = app
        .files
        .changes(readable.owner(), range, |file| shows(&readable, file))
        .await?;
    Ok(changed.iter().map(FileChange::from).collect())
}

/// One version of a file, deleted or not.
#[utoipa::path(get, path = "/{input_id}", tag = "files",
    params(("input_id" = String, Path), Checked<OneQuery>),
    responses((status = 200, description = "The file", body = FileInput), (status = 403), (status = 404),
        (status = 422)))]
pub async fn file(
    State(app): State<AppState>,
    reader: Reader,
    Path(input_id): Path<String>,
    Checked(query): Checked<OneQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = readable_file(&app, &reader, query.asked.owner, &input_id).await?;
    let seen = if reader.owns(file.person) {
        FileInput::from(&file)
    } else {
        FileInput::from(&file).for_others()
    };
    if query.form.is_of_rows() {
        return one_as(&app, &headers, query.form, &FILE, &seen).await;
    }
    let tag = description_tag(&file);
    if is_known(&headers, &tag) {
        return not_modified(&tag, JSON);
    }
    tagged(&file, seen)
}

/// Deletes a version of a file. Its bytes stay, so that it can be restored.
#[utoipa::path(delete, path = "/{input_id}", tag = "files",
    params(("input_id" = String, Path), Checked<NoParams>, ("if-match" = Option<String>, Header),
        ("if-none-match" = Option<String>, Header)),
    responses((status = 204, description = "It is deleted"), (status = 404), (status = 409),
        (status = 412), (status = "default", description = "Any other refusal", body = Problem,
            content_type = "application/problem+json")))]
pub async fn delete_file(
    State(app): State<AppState>,
    reader: Reader,
    Path(input_id): Path<String>,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let id = file_id(&input_id)?;
    let is_expected = |file: &File| {
        let is_seen = !headers.contains_key(IF_MATCH) || is_named(&headers, &IF_MATCH, file);
        is_seen && !is_named(&headers, &IF_NONE_MATCH, file)
    };
    let deleted = app.files.delete(reader.person(), id, is_expected).await;
    deleted.map_err(|error| match error {
        FilesError::Changed if !headers.contains_key(IF_MATCH) => Outdated::Unwanted.into(),
        error => ApiError::from(error),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a new version of a file with the bytes of an earlier one.
#[utoipa::path(post, path = "/{input_id}/restore", tag = "files",
    params(("input_id" = String, Path), Checked<NoParams>),
    responses((status = 200, description = "The new version", body = FileInput, headers(("etag"))),
        (status = 404), (status = 409), (status = 422)))]
pub async fn restore_file(
    State(app): State<AppState>,
    reader: Reader,
    Path(input_id): Path<String>,
    _query: Checked<NoParams>,
) -> Result<Response, ApiError> {
    let restored = app.files.restore(reader.person(), file_id(&input_id)?).await?;
    shown(&restored)
}

/// Whether a listing may show a version.
fn shows(readable: &ReadableFiles, file: &File) -> bool {
    let shared = |(age, moment)| readable.include(&file.full_name(), age, moment);
    readable.are_own() || file.shareable().is_some_and(shared)
}
