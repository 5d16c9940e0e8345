use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use datafusion::parquet::errors::ParquetError;

use super::*;
use crate::api::problem::{Failure, FailureCause};

fn exhausted() -> DataFusionError {
    DataFusionError::ResourcesExhausted("no room for a series of sleep cycles".to_owned())
}

/// Scarce memory in every wrapping that the engine and the writers of answers give it.
fn wrapped() -> Vec<Broken> {
    let boxed = || Box::new(exhausted());
    let arrow = |error| DataFusionError::ArrowError(Box::new(error), None);
    vec![
        exhausted().into(),
        exhausted().context("while sorting").into(),
        exhausted().context("while sorting").context("of a part").into(),
        DataFusionError::External(boxed()).into(),
        DataFusionError::External(Box::new(Arc::new(exhausted()))).into(),
        DataFusionError::Shared(Arc::new(exhausted())).into(),
        DataFusionError::Shared(Arc::new(exhausted().context("while sorting"))).into(),
        DataFusionError::IoError(std::io::Error::other(exhausted())).into(),
        arrow(ArrowError::ExternalError(boxed())).into(),
        arrow(ArrowError::ExternalError(Box::new(DataFusionError::Shared(
            Arc::new(exhausted()),
        ))))
        .into(),
        arrow(ArrowError::IoError(
            "written".to_owned(),
            std::io::Error::other(exhausted()),
        ))
        .into(),
        EncodeError::Arrow(ArrowError::ExternalError(boxed())).into(),
        EncodeError::Parquet(ParquetError::External(boxed())).into(),
    ]
}

#[test]
fn scarce_memory_asks_to_try_again_however_it_is_wrapped() {
    for error in wrapped() {
        let told = format!("{error:?}");
        let answer = failed(&error).into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{told}");
        assert!(answer.headers().contains_key("retry-after"), "{told}");
    }
}

#[test]
fn scarce_memory_of_a_plan_asks_the_author_of_a_query_for_less() {
    for error in wrapped() {
        let told = format!("{error:?}");
        if matches!(error, Broken::Plan(_)) {
            let answer = query_error(&error).into_response();
            assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "{told}");
        }
    }
}

#[test]
fn a_full_disk_is_no_fault_of_a_query() {
    let full = || std::io::Error::from(ErrorKind::StorageFull);
    let arrow = || ArrowError::IoError("not written".to_owned(), full());
    let errors = [
        DataFusionError::IoError(full()),
        DataFusionError::IoError(full()).context("while sorting"),
        DataFusionError::Shared(Arc::new(DataFusionError::IoError(full()))),
        DataFusionError::ArrowError(Box::new(arrow()), None),
        DataFusionError::External(Box::new(arrow())),
    ];
    for error in errors {
        let told = format!("{error:?}");
        let answer = query_error(&error.into()).into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{told}");
        assert!(answer.headers().contains_key("retry-after"), "{told}");
    }
}

#[test]
fn damage_in_the_catalogue_is_found_below_the_store() {
    let what = "a definition".to_owned();
    let damage = StoreError::Catalog(CatalogError::Corrupt { what });
    let error = Broken::Plan(DataFusionError::External(Box::new(damage)));
    assert!(corrupt_part(&error).is_some(), "{error:?}");
}

#[test]
fn a_catalogue_that_cannot_be_asked_now_asks_to_try_again() {
    let detail = || "the connection was closed".to_owned();
    let causes = || {
        [
            CatalogError::Unavailable { detail: detail() },
            CatalogError::Full { detail: detail() },
            CatalogError::Contended { detail: detail() },
        ]
        .map(|cause| DataFusionError::External(Box::new(StoreError::Catalog(cause))))
    };
    let planned = causes().map(|error| planning_error(&error));
    let asked = causes().map(|error| query_error(&error.into()));
    let others = causes().map(|error| failed(&error.into()));
    for answer in planned.into_iter().chain(asked).chain(others) {
        let answer = answer.into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(answer.headers().contains_key("retry-after"));
    }
}

#[test]
fn an_answer_that_breaks_off_late_is_counted_as_late() {
    let meters = Meters::default();
    let late = || Broken::Plan(DataFusionError::External(Box::new(DeadlinePassed)));
    count_break(&meters, &Broken::Late);
    count_break(&meters, &late());
    assert_eq!(meters.queries.deadlines_passed.get(), 2);
    count_break(&meters, &exhausted().into());
    assert_eq!(meters.queries.deadlines_passed.get(), 2);
    assert_eq!(meters.store.corrupt.get(), 0);
}

#[test]
fn a_deadline_that_passed_is_told_and_counted_wherever_that_was_noticed() {
    let late = || DataFusionError::External(Box::new(DeadlinePassed));
    let shared = || DataFusionError::Shared(Arc::new(late().context("while sorting")));
    let errors = || [Broken::Late, late().into(), shared().into()];
    let answers = errors().map(|error| failed(&error));
    let asked = errors().map(|error| query_error(&error));
    let planned = [late(), shared()].map(|error| planning_error(&error));
    for answer in answers.into_iter().chain(asked).chain(planned) {
        let answer = answer.into_response();
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        let failure = answer.extensions().get::<Failure>().unwrap();
        assert_eq!(failure.cause, FailureCause::Late);
    }
}

#[test]
fn what_was_asked_is_at_fault_while_planning_and_while_answering() {
    let errors = || {
        [
            DataFusionError::External(Box::new(Excess::Cells { limit: 7 })),
            DataFusionError::External(Box::new(TooManyPeriods { cells: 8, limit: 7 })),
            DataFusionError::External(Box::new(CostlyText { bytes: 1 << 20 })),
        ]
    };
    let planned = errors().map(|error| planning_error(&error));
    let answers = errors().map(|error| failed(&error.into()));
    for answer in planned.into_iter().chain(answers) {
        assert_eq!(answer.into_response().status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
}

#[test]
fn the_log_has_no_values_of_records() {
    let cast = || ArrowError::CastError("Cannot cast string 'my diary: 12' to Float64".to_owned());
    let computing = || DataFusionError::Execution("the sum 12 of my diary does not fit".to_owned());
    for (error, told) in [
        (DataFusionError::ArrowError(Box::new(cast()), None), "Cast error"),
        (
            DataFusionError::ArrowError(Box::new(cast()), None).context("while sorting my diary"),
            "Cast error",
        ),
        (computing(), "Execution error"),
        (DataFusionError::Shared(Arc::new(computing())), "Execution error"),
        (
            DataFusionError::ArrowError(Box::new(ArrowError::DivideByZero), None),
            "Divide by zero error",
        ),
    ] {
        assert_eq!(for_the_log(&error.into()), told);
    }
    for error in wrapped()
        .into_iter()
        .filter(|error| matches!(error, Broken::Plan(_)))
    {
        assert_eq!(for_the_log(&error), error.to_string());
    }
}

#[test]
fn other_failures_are_the_servers() {
    let error = Broken::Plan(DataFusionError::Internal("a bug".to_owned()));
    let answer = failed(&error).into_response();
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
}
