//! Raw samples of one metric.

use axum::extract::State;
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::cursor::Pages;
use crate::api::docs::answers::Rows;
use crate::api::extract::{Checked, Owner};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::model::registry::{RecordClass, TypeId};
use crate::model::time::TimeRange;
use crate::query::Order;
use crate::query::records::RecordsSpec;

use super::names::resolve_name;
use super::partitions::{partitions_of, readable};
use super::read_request::ReadRequest;
use super::units::RequestedUnits;

/// Which samples, and in which form.
#[derive(Debug)]
pub struct SamplesQuery {
    range: TimeRange,
    metric: String,
    cursor: Option<String>,
    units: RequestedUnits,
    form: AnswerForm,
}

impl FromParams for SamplesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, metric) = (params.range(), params.required_text("metric"));
        let cursor = params.text("cursor");
        let units = RequestedUnits::read(params);
        let form = AnswerForm::read(params);
        Some(Self {
            range: range?,
            metric: metric?,
            cursor,
            units: units?,
            form: form?,
        })
    }
}

/// The samples of a metric that intersect the range, as they were recorded.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/metric_samples", tag = "samples",
    params(("svc_userid" = Uuid, Path), Checked<SamplesQuery>),
    responses(Rows, (status = 403), (status = 404), (status = 422)))]
pub async fn metric_samples(
    State(app): State<AppState>,
    request: ReadRequest,
    Owner(owner): Owner,
    Checked(query): Checked<SamplesQuery>,
) -> Result<Response, ApiError> {
    let reader = &request.reader;
    let metric = resolve_name(&app, reader, owner, &query.metric).await?;
    let permit = app
        .grants
        .windows(reader, owner, &TypeId::new(&metric), query.range)
        .await?;
    let resolved = readable(&app, owner, &metric).await?;
    if resolved.data_type.class != RecordClass::Metric {
        return Err(invalid(
            ["query", "metric"],
            format!(
                "{} is not a metric; read it at /data/v1alpha1/event/{0}",
                resolved.data_type.id
            ),
        ));
    }
    let slot = request.admitted(&app).await?;
    let (partitions, conditions) = partitions_of(&app, reader, owner, &resolved, Vec::new()).await?;
    let pages = Pages::of(
        &app.tickets,
        &(owner, &resolved.data_type.id, &conditions, query.range),
    );
    let spec = RecordsSpec {
        conditions,
        order: Order::Ascending,
        ids: query.form.ids(),
        limit: query.form.limit,
        after: pages.place(query.cursor.as_deref())?,
        columns: query.form.columns.clone(),
    };
    let (prepared, next) = app.questions.page_of_records(&permit, &partitions, &spec).await?;
    let selected = (spec.conditions.as_slice(), "filter");
    let (prepared, unit) = query
        .units
        .show_records(&app, reader, &resolved, selected, prepared)
        .await?;
    let etag_parts = format!("{owner} {metric} {unit:?}");
    let answer = request
        .answer(&app, slot, prepared, &query.form, &etag_parts)
        .await?;
    pages.with_next_cursor(&app, &query.form, answer, next).await
}
