//! Workouts.

use axum::extract::State;
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::docs::answers::Workouts;
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::model::time::TimeRange;
use crate::query::places::WORKOUTS;
use crate::query::places::workouts::{WORKOUT_COLUMNS, WORKOUT_DEFAULTS, WORKOUT_KEY};

use super::asked_page::AskedPage;
use super::asking::Asking;

/// Which workouts.
#[derive(Debug)]
pub struct WorkoutsQuery {
    range: TimeRange,
    form: AnswerForm,
}

impl FromParams for WorkoutsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.range(), AnswerForm::paged(params, AnswerForm::read));
        Some(Self {
            range: range?,
            form: form?,
        })
    }
}

/// The workouts that share time with the range.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/platform_workouts", tag = "workouts",
    params(("svc_userid" = Uuid, Path), Checked<WorkoutsQuery>),
    responses(Workouts, (status = 403), (status = 422)))]
pub async fn platform_workouts(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<WorkoutsQuery>,
) -> Result<Response, ApiError> {
    let page = AskedPage::of(&app, &asking, &query.form)?;
    let granted = asking.granted(&app, WORKOUTS, query.range).await?;
    let granted = page.beginning(granted);
    let slot = asking.request.admitted(&app).await?;
    let spec = page.spec(WORKOUT_COLUMNS, &WORKOUT_KEY)?;
    let prepared = app.questions.completed(&granted, &spec, WORKOUT_DEFAULTS).await?;
    page.answer(slot, prepared, &WORKOUT_KEY).await
}
