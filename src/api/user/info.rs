//! What this service knows about the caller: `/user/v1alpha1/info`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::{App, AppState};
use crate::api::docs::bodies::PreferencesDocument;
use crate::api::extract::Checked;
use crate::api::listed::{ListingForm, one_as};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::catalog::documents::DocumentKind;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::output::{ColumnKind, ListedColumn};
use crate::people::preferences::Preferences;

/// A self-hosted service costs its users nothing, and its terms never end.
const FOREVER: Instant = Instant::from_micros(Instant::MAX.micros() - 999_999);

/// The namespace in which support tokens are made from ids of people. A support token identifies a person to
/// a helper, opens nothing, and does not reveal the id.
const SUPPORT: Uuid = Uuid::from_u128(0x8d0c_4a6e_52b1_4f1f_9a57_6d1e_2f0b_7c35);

/// A client may name its platform, which changes nothing here.
#[derive(Debug)]
pub struct InfoQuery {
    form: ListingForm,
}

impl FromParams for InfoQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let _same_for_all = params.text("platform");
        Some(Self {
            form: ListingForm::read(params)?,
        })
    }
}

/// The caller, as the service knows them.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserInfo {
    pub userid: Uuid,
    /// When the service first learnt of the person.
    #[schema(format = DateTime)]
    pub created: String,
    /// Always `active`.
    pub status: &'static str,
    /// Always `free`.
    pub tier: &'static str,
    /// Identifies the caller to a helper. It opens nothing.
    pub support_token: String,
    #[schema(value_type = PreferencesDocument)]
    pub preferences: Map<String, Value>,
    pub service_status: ServiceStatus,
    pub limits: Limits,
}

/// The terms on which the service is used.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServiceStatus {
    #[schema(format = DateTime)]
    pub active_until: String,
    #[schema(format = DateTime)]
    pub grace_period_ends: String,
    pub is_active: bool,
    #[schema(required)]
    pub manage_url: Option<String>,
    pub service_type: ServiceType,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceType {
    SubscribedStore,
    SubscribedProcessor,
    FreeService,
    Staff,
    None,
}

/// How much the person may have, and how much they have.
#[derive(Debug, Serialize, ToSchema)]
pub struct Limits {
    /// Deleted ones count, since they are kept.
    pub annotations: Limit,
    pub tags: Limit,
    /// Deleted ones count, since they are kept.
    pub reflections: Limit,
    /// Data types of one's own, archived ones too.
    pub definitions: Limit,
    /// Sources that records name.
    pub sources: Limit,
    /// Idempotency keys of the last week.
    pub keys: Limit,
    /// Open API sessions; those that have ended do not count.
    pub sessions: Limit,
    /// Each version counts, deleted ones too.
    pub files: Limit,
    /// Archives of everything, made or being made.
    pub exports: Limit,
    /// Answers that are kept as frames, until they expire.
    pub frames: Limit,
    /// Bytes of one file.
    pub file_bytes: Most,
    /// Bytes of all files together. A file counts as soon as it is announced.
    pub all_file_bytes: Limit,
    pub shares: Limit,
    /// Groups of one's own.
    pub groups: Limit,
}

/// The largest size of one thing.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Most {
    pub limit: u64,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Limit {
    pub limit: u64,
    pub used: u64,
}

const COLUMNS: [ListedColumn; 8] = [
    ListedColumn::new("userid", ColumnKind::Text),
    ListedColumn::new("created", ColumnKind::Time),
    ListedColumn::new("status", ColumnKind::Text),
    ListedColumn::new("tier", ColumnKind::Text),
    ListedColumn::new("support_token", ColumnKind::Text),
    ListedColumn::new("preferences", ColumnKind::Json),
    ListedColumn::new("service_status", ColumnKind::Json),
    ListedColumn::new("limits", ColumnKind::Json),
];

/// Who the caller is, what they prefer, and how much they may have.
#[utoipa::path(get, path = "/user/v1alpha1/info", tag = "people",
    params(Checked<InfoQuery>),
    responses((status = 200, description = "The caller", body = UserInfo)))]
pub async fn info(
    State(app): State<AppState>,
    reader: Reader,
    Checked(query): Checked<InfoQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let person = reader.person();
    // A person of an outside provider may be asking for the first time; this adds them.
    app.catalog.ensure_person(person, reader.name()).await?;
    let known = app.catalog.person(person).await?;
    let known = known.ok_or_else(|| ApiError::internal("a person who was just made is not there"))?;
    let limits = limits_of(&app, person).await?;
    let info = UserInfo {
        userid: person.0,
        created: known.created_at.to_rfc3339(),
        status: "active",
        tier: "free",
        support_token: support_token(person),
        preferences: Preferences::of(&app.catalog, person).await?.members().clone(),
        service_status: ServiceStatus {
            active_until: FOREVER.to_rfc3339(),
            grace_period_ends: FOREVER.to_rfc3339(),
            is_active: true,
            manage_url: None,
            service_type: ServiceType::FreeService,
        },
        limits,
    };
    one_as(&app, &headers, query.form, &COLUMNS, &info).await
}

/// How much the person may have of each thing, and how much they have.
async fn limits_of(app: &App, person: PersonId) -> Result<Limits, ApiError> {
    let sessions = app.sessions.count_open(person).await?;
    let counts = app.catalog.document_counts(person).await?;
    let registered = app.catalog.registered_counts(person).await?;
    let keys = app.catalog.key_count(person).await?;
    let file_bytes = app.files.contents().usage(person).await?.bytes();
    let limits = app.limits;
    let of = |kind: DocumentKind, limit: u64| Limit {
        limit,
        used: counts
            .iter()
            .find(|(counted, _)| *counted == kind)
            .map_or(0, |(_, count)| *count),
    };
    Ok(Limits {
        annotations: of(DocumentKind::Annotation, limits.annotations),
        tags: of(DocumentKind::Tag, limits.tags),
        reflections: of(DocumentKind::Reflection, limits.reflections),
        definitions: Limit {
            limit: limits.definitions,
            used: registered.definitions,
        },
        sources: Limit {
            limit: limits.sources,
            used: registered.sources,
        },
        keys: Limit {
            limit: limits.keys,
            used: keys,
        },
        sessions: Limit {
            limit: limits.sessions,
            used: sessions,
        },
        files: of(DocumentKind::File, limits.files),
        exports: of(DocumentKind::Export, limits.exports),
        frames: of(DocumentKind::Frame, limits.frames),
        file_bytes: Most {
            limit: limits.file_bytes,
        },
        all_file_bytes: Limit {
            limit: limits.all_file_bytes,
            used: file_bytes,
        },
        shares: of(DocumentKind::Share, limits.shares),
        groups: of(DocumentKind::Group, limits.groups),
    })
}

fn support_token(person: PersonId) -> String {
    Uuid::new_v5(&SUPPORT, person.as_bytes()).simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_support_token_is_the_persons_own_and_always_the_same() {
        let tokens = [1_u128, 2, 1].map(|id| support_token(PersonId(Uuid::from_u128(id))));
        assert_eq!(tokens[0], tokens[2]);
        assert_ne!(tokens[0], tokens[1]);
        assert_eq!(FOREVER.to_rfc3339(), "9999-12-31T23:59:59Z");
    }
}
