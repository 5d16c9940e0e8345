//! Frames: answers that are kept for an hour at an address that needs no token, so that tools that read
//! addresses fetch only the parts that they need: `/data/v1/frames`.
//!
//! The question of a frame is asked as if its person asked it themselves, by the same routes and under the
//! same decisions, and every fetch decides again whether the answer may still be read.

mod question;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;
use utoipa::ToSchema;
use uuid::Uuid;

use self::question::question_address;
pub use self::sweep::sweep;
use crate::api::answer_headers::header_value;
use crate::api::app::{App, AppState};
use crate::api::docs::bodies::RawBytes;
use crate::api::document::Sent;
use crate::api::download::{FileLabel, download};
use crate::api::extract::{Checked, Notes, Path};
use crate::api::header_names::PREFER;
use crate::api::layers::rates::charge_owner;
use crate::api::listed::{ListingQuery, listed_as, one_as};
use crate::api::paths::with_whole_type_ids;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::NoParams;
use crate::auth::grants::Refused;
use crate::auth::grounds::Grounds;
use crate::auth::reach::Beyond;
use crate::auth::tickets::InvalidTicket;
use crate::auth::tokens::Reader;
use crate::model::excerpt::beginning;
use crate::model::faults::Fault;
use crate::output::OutputMethod;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::frames::{Described, Frame, FrameError, FrameWriter};

const PATH: &str = "/data/v1/frames";
/// The path of the bytes of frames; a ticket and a name follow.
const BYTES_PATH: &str = "/data/v1/frame";
/// The file name of the bytes; the extension of their form follows.
const NAME: &str = "answer";
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The routes that read, to be called from within a request.
#[derive(Clone, Debug)]
pub struct Reads(Arc<Router>);

impl Reads {
    #[must_use]
    pub fn new(routes: Router) -> Self {
        Self(Arc::new(routes))
    }
}

/// A question whose answer is to be kept.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewFrame {
    /// The address of a read below /data/ that answers with rows, including its query, as it would be asked
    /// with GET. Its `output` and `format` are ignored.
    #[schema(
        example = "/data/v1alpha1/metric/HeartRate?start_time=2024-06-03&end_time=2024-06-10\
                   &columns=start_date,value"
    )]
    pub question: String,
    /// The form of the answer; `parquet` by default.
    pub format: Option<OutputMethod>,
}

/// An answer that is kept for a while.
#[derive(Debug, Serialize, ToSchema)]
pub struct FrameStatus {
    pub id: Uuid,
    /// The address of its bytes, for everybody who has it: GET and HEAD, all bytes or a range, no token.
    pub url: String,
    /// The question that it answers.
    pub question: String,
    /// Its form, as an output method.
    pub format: String,
    pub bytes: u64,
    /// SHA-256 of all bytes, in hexadecimal digits.
    pub sha256: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it is removed.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl FrameStatus {
    fn of(frame: &Frame, app: &App) -> Self {
        let ticket = app.tickets.of_frames().issue(frame.id, frame.expires_at);
        let public_url = &app.settings.public_url;
        Self {
            id: frame.id,
            url: format!("{public_url}{BYTES_PATH}/{ticket}/{}", file_name(frame)),
            question: frame.question.clone(),
            format: frame.format.clone(),
            bytes: frame.bytes(),
            sha256: frame.sha256.clone(),
            created_at: frame.created_at.to_rfc3339(),
            expires_at: frame.expires_at.to_rfc3339(),
        }
    }
}

/// Answers a question into a frame. The bytes are complete when this request is answered, and can then be
/// read at `url` without a token, all or in ranges, until `expires_at`.
#[utoipa::path(post, path = "/data/v1/frames", operation_id = "create_frame", tag = "frames",
    params(Checked<NoParams>), request_body = NewFrame,
    responses((status = 201, description = "The frame", body = FrameStatus,
            headers(("location"), ("x-svc-range"))),
        (status = 403), (status = 404), (status = 413), (status = 415), (status = 422), (status = 429),
        (status = 504)))]
pub async fn create(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    Extension(reads): Extension<Reads>,
    Extension(notes): Extension<Notes>,
    headers: HeaderMap,
    Sent(body): Sent<NewFrame>,
) -> Result<Response, ApiError> {
    let format = body.format.unwrap_or(OutputMethod::Parquet);
    let uri = question_address(&body.question, &app.settings.public_url, format)?;
    if let Err(beyond) = reader.reach().admits(true, uri.path()) {
        return Err(ApiError::forbidden(beyond.to_string()));
    }
    let mut writer = app.frames.begin(reader.person()).await?;
    let Ok(answer) = Arc::unwrap_or_clone(reads.0)
        .oneshot(read_of(uri, &headers, &reader, notes))
        .await;
    // The methods of its address are no business of whoever asks here.
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        return Err(invalid(
            ["body", "question"],
            "nothing is read with GET at this address, so its answer cannot be kept as a frame",
        ));
    }
    if answer.status() != StatusCode::OK {
        return Ok(answer);
    }
    let form = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if form != Some(format.content_type().as_bytes()) {
        return Err(invalid(
            ["body", "question"],
            "this address does not return rows, so its answer cannot be kept as a frame",
        ));
    }
    let kept = async {
        keep(&mut writer, answer.into_body()).await?;
        grounds_of(&app, &reader).await
    };
    let grounds = match kept.await {
        Ok(grounds) => grounds,
        Err(error) => {
            writer.abandon().await;
            return Err(error);
        }
    };
    let described = Described {
        question: body.question,
        format: format.name().to_owned(),
        grounds,
        until: reader.expires(),
    };
    let frame = writer.finish(described).await?;
    let status = FrameStatus::of(&frame, &app);
    let place = header_value(&format!("{}{PATH}/{}", app.settings.path_before(), frame.id))?;
    Ok((StatusCode::CREATED, [(LOCATION, place)], Json(status)).into_response())
}

/// The read that a question is, as if the reader sent it.
fn read_of(uri: Uri, headers: &HeaderMap, reader: &Reader, notes: Notes) -> Request {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri;
    for value in headers.get_all(PREFER) {
        request.headers_mut().append(PREFER, value.clone());
    }
    let extensions = request.extensions_mut();
    extensions.insert(reader.clone());
    extensions.insert(notes);
    with_whole_type_ids(request)
}

const COLUMNS: [ListedColumn; 8] = [
    ListedColumn::new("id", ColumnKind::Text),
    ListedColumn::new("url", ColumnKind::Text),
    ListedColumn::new("question", ColumnKind::Text),
    ListedColumn::new("format", ColumnKind::Text),
    ListedColumn::new("bytes", ColumnKind::Whole),
    ListedColumn::new("sha256", ColumnKind::Text),
    ListedColumn::new("created_at", ColumnKind::Time),
    ListedColumn::new("expires_at", ColumnKind::Time),
];

/// The caller's frames, oldest first.
#[utoipa::path(get, path = "/data/v1/frames", operation_id = "list_frames", tag = "frames",
    params(Checked<ListingQuery>),
    responses((status = 200, description = "Frames", body = [FrameStatus]), (status = 403)))]
pub async fn list(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !reader.reach().has_all_types() {
        // A list of some would be taken for all of them.
        return Err(ApiError::forbidden(Beyond::Types.to_string()));
    }
    let frames = app.frames.of_person(reader.person()).await?;
    let shown = frames.iter().map(|frame| FrameStatus::of(frame, &app));
    listed_as(&app, &headers, query.form, &COLUMNS, &shown.collect::<Vec<_>>()).await
}

/// One of the caller's frames.
#[utoipa::path(get, path = "/data/v1/frames/{frame_id}", operation_id = "get_frame", tag = "frames",
    params(("frame_id" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The frame", body = FrameStatus), (status = 403),
        (status = 404)))]
pub async fn one(
    State(app): State<AppState>,
    reader: Reader,
    Path(frame_id): Path<String>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let frame = own(&app, &reader, &frame_id).await?;
    one_as(
        &app,
        &headers,
        query.form,
        &COLUMNS,
        &FrameStatus::of(&frame, &app),
    )
    .await
}

/// Removes a frame and its bytes.
#[utoipa::path(delete, path = "/data/v1/frames/{frame_id}", operation_id = "delete_frame", tag = "frames",
    params(("frame_id" = Uuid, Path), Checked<NoParams>),
    responses((status = 204, description = "It is gone"), (status = 403), (status = 404)))]
pub async fn remove(
    State(app): State<AppState>,
    reader: Reader,
    Path(frame_id): Path<String>,
    _query: Checked<NoParams>,
) -> Result<StatusCode, ApiError> {
    let frame = own(&app, &reader, &frame_id).await?;
    // A frame never changes, so whoever finds it gone is too late for any condition of theirs too.
    if app.frames.discard(&frame).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(FrameError::Unknown(frame.id).into())
    }
}

/// The bytes of a frame, all of them or a range. The address itself says what it opens and until when.
#[utoipa::path(get, path = "/data/v1/frame/{ticket}/{answer}", operation_id = "read_frame", tag = "frames",
    security(()),
    params(("ticket" = String, Path), ("answer" = String, Path), Checked<NoParams>,
        ("range" = Option<String>, Header), ("if-range" = Option<String>, Header),
        ("if-match" = Option<String>, Header), ("if-none-match" = Option<String>, Header)),
    responses((status = 200, description = "The frame", body = RawBytes, content_type = "*/*",
            headers(("etag"))),
        (status = 206, description = "The range of it", body = RawBytes, content_type = "*/*",
            headers(("etag"))),
        (status = 304, headers(("etag"))), (status = 403), (status = 412), (status = 416), (status = 422),
        (status = 429),
        (status = 500), (status = 503)))]
pub async fn bytes(
    State(app): State<AppState>,
    Path((ticket, name)): Path<(String, String)>,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = app.tickets.of_frames().opened_by(&ticket, app.clock.now())?;
    let found = app.frames.find(id).await?;
    let frame = found
        .filter(|frame| file_name(frame) == name)
        .ok_or(InvalidTicket)?;
    if !is_readable(&app, &frame).await? {
        return Err(InvalidTicket.into());
    }
    let form: OutputMethod = frame.format.parse().map_err(ApiError::internal)?;
    let label = FileLabel {
        name: &name,
        media_type: form.content_type(),
    };
    let meter = match charge_owner(&app, frame.person) {
        Ok(meter) => meter,
        Err(refusal) => return Ok(*refusal),
    };
    let answer = download(&app, &headers, &app.frames.contents(), &frame.content(), label)?;
    Ok((meter.map(Extension), answer).into_response())
}

async fn keep(writer: &mut FrameWriter, body: Body) -> Result<(), ApiError> {
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        // The reason was logged where the answer broke off.
        let chunk = chunk.map_err(|error| ApiError::unavailable(error, RETRY_AFTER))?;
        writer.write(chunk).await?;
    }
    Ok(())
}

/// The grounds on which the request was answered, if they still hold.
async fn grounds_of(app: &App, reader: &Reader) -> Result<String, ApiError> {
    let grounds = Grounds::of(reader).ok_or_else(|| {
        invalid(
            ["body", "question"],
            "answers about other people's files, and lists of what they share, cannot be kept as frames",
        )
    })?;
    if !app.grants.still_given(reader).await? {
        return Err(Refused.into());
    }
    serde_json::to_string(&grounds).map_err(ApiError::internal)
}

/// The caller's frame, if their token could have asked for it.
async fn own(app: &App, reader: &Reader, id: &str) -> Result<Frame, ApiError> {
    let frame = app.frames.get(reader.person(), frame_id(id)?).await?;
    if !grounds_in(&frame)?.lie_within(reader.reach()) {
        return Err(ApiError::forbidden(Beyond::Types.to_string()));
    }
    Ok(frame)
}

fn grounds_in(frame: &Frame) -> Result<Grounds, ApiError> {
    serde_json::from_str(&frame.grounds).map_err(ApiError::internal)
}

/// Whether the person who asked could still ask the question.
async fn is_readable(app: &App, frame: &Frame) -> Result<bool, ApiError> {
    let grounds = grounds_in(frame)?;
    if let Some(session) = grounds.session()
        && !app.sessions.accepts(grounds.person(), session).await?
    {
        return Ok(false);
    }
    if grounds.were_erased(&app.catalog).await? {
        return Ok(false);
    }
    Ok(app.grants.still_hold(&grounds).await?)
}

fn file_name(frame: &Frame) -> String {
    let form: Result<OutputMethod, _> = frame.format.parse();
    let ending = form.map_or("bin", OutputMethod::file_extension);
    format!("{NAME}.{ending}")
}

fn frame_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| ApiError::not_found(format!("there is no frame {:?}", beginning(text))))
}

impl From<FrameError> for ApiError {
    fn from(error: FrameError) -> Self {
        let detail = error.to_string();
        match error {
            FrameError::Unknown(_) => Self::not_found(detail),
            FrameError::LimitReached(_) => Self::limit_reached(detail),
            FrameError::TooLarge(_) => Fault::new(["body", "question"], "too_large", detail).into(),
            FrameError::Damaged { .. } => Self::damaged(detail),
            FrameError::Store(error) => error.into(),
        }
    }
}
