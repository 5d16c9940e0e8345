//! Raw samples of one metric.

use std::time::Instant as Moment;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use crate::api::answer::{Request, answer};
use crate::api::answer_form::AnswerForm;
use crate::api::app::Shared;
use crate::api::docs::answers::Rows;
use crate::api::extract::{Checked, Owner};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::model::registry::{RecordClass, TypeId};
use crate::model::time::TimeRange;
use crate::query::records::{Order, RecordsSpec};

use super::records::{row_limit, sources_of};

/// Which samples, and in which form.
#[derive(Debug)]
pub struct SamplesQuery {
    range: TimeRange,
    metric: String,
    limit: Option<usize>,
    form: AnswerForm,
}

impl FromParams for SamplesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, metric) = (params.range(), params.required_text("metric"));
        let limit = row_limit(params);
        let form = AnswerForm::read(params);
        Some(Self {
            range: range?,
            metric: metric?,
            limit,
            form: form?,
        })
    }
}

/// The samples of a metric that intersect the range, as they were recorded.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/metric_samples", tag = "samples",
    params(("svc_userid" = Uuid, Path), Checked<SamplesQuery>),
    responses(Rows, (status = 403), (status = 404), (status = 422)))]
pub async fn metric_samples(
    State(app): State<Shared>,
    reader: Reader,
    Owner(owner): Owner,
    Checked(query): Checked<SamplesQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let begun = Moment::now();
    let permit = app
        .grants
        .windows(&reader, owner, &TypeId::new(&query.metric), query.range)
        .await?;
    let named = app.types.find(owner, &query.metric).await?;
    if named.data_type.class != RecordClass::Metric {
        return Err(invalid(
            ["query", "metric"],
            format!(
                "{} is no metric; read it at /data/v1alpha1/event/{0}",
                named.data_type.id
            ),
        ));
    }
    let ticket = app.queries.enter(reader.person()).await?;
    let (sources, conditions) = sources_of(&app, &reader, owner, &named, Vec::new()).await?;
    let spec = RecordsSpec {
        conditions,
        order: Order::Ascending,
        ids: query.form.ids(),
        limit: query.limit,
        columns: query.form.columns.clone(),
    };
    let prepared = app.archive.records(&permit, &sources, &spec).await?;
    let question = format!("{owner} samples {}", question.unwrap_or_default());
    answer(
        Request {
            app: &app,
            headers: &headers,
            question: &question,
            begun,
            ticket,
        },
        prepared,
        &query.form,
    )
    .await
}
