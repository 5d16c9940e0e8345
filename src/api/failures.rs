//! Maps failures of the rooms below to answers: whose fault it is, and whether to try again.
//!
//! Errors are searched through all of their sources, since what matters may lie deep in a plan.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;

use crate::api::admission::Busy;
use crate::api::problem::{ApiError, TRY_LATER, invalid};
use crate::auth::grants::{Denied, Refused};
use crate::catalog::CatalogError;
use crate::ingest::queue::CommitError;
use crate::model::meters::Meters;
use crate::model::weighed_pattern::CostlyText;
use crate::output::EncodeError;
use crate::people::condition::Outdated;
use crate::people::types::TypesError;
use crate::query::QueryError;
use crate::query::aggregate::{AggregateError, Excess};
use crate::query::attached::TooManyCells;
use crate::query::engine::DeadlinePassed;
use crate::query::sleep::spec::TooManyPeriods;
use crate::query::sql;
use crate::store::StoreError;

/// How long a write should wait when too many rows wait already.
const FLUSHED_BY_THEN: Duration = Duration::from_secs(10);
/// For the author of a query that needs more memory than all questions may use together.
const TOO_MUCH_MEMORY: &str = "the query needs more memory than questions have here (ALMANAC_MEMORY_LIMIT); \
                               ask for fewer rows, columns or groups, or for a shorter time";

/// Why an answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error(transparent)]
    Plan(#[from] DataFusionError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the deadline of the question passed")]
    Late,
}

/// Counts what broke off an answer after its first row, when there is no error left to give.
pub(super) fn count_break(meters: &Meters, error: &Broken) {
    if corrupt_part(error).is_some() {
        meters.store.corrupt.inc();
    }
    if is_late(error) {
        meters.queries.deadlines_passed.inc();
    }
}

/// What the log says of an error.
pub(super) fn for_the_log(error: &Broken) -> String {
    match error {
        Broken::Plan(error) => kind_or_text(error),
        error => error.to_string(),
    }
}

/// The text of an error. What comes of computing says only of which kind it is: its text may quote the values
/// of records.
fn kind_or_text(error: &DataFusionError) -> String {
    let computing = match error.find_root() {
        root @ DataFusionError::Execution(_) => root.to_string(),
        DataFusionError::ArrowError(root, _)
            if !matches!(**root, ArrowError::IoError(..) | ArrowError::ExternalError(_)) =>
        {
            root.to_string()
        }
        _ => return error.to_string(),
    };
    computing.split(':').next().unwrap_or_default().to_owned()
}

/// The error that the caller gets when there is no first row.
pub(super) fn failed(error: &Broken) -> ApiError {
    by_cause(error).unwrap_or_else(|| ApiError::internal(for_the_log(error)))
}

/// The error for a planned SQL query that fails. Its author decided what it computes.
#[must_use]
pub fn query_error(error: &Broken) -> ApiError {
    if corrupt_part(error).is_some() || is_late(error) {
        return failed(error);
    }
    let message = match error {
        Broken::Late | Broken::Encode(EncodeError::Spool(_)) => return failed(error),
        Broken::Plan(error) if chain(error).any(<dyn Error>::is::<StoreError>) => {
            return planning_error(error);
        }
        Broken::Plan(error) if needs_memory(error) => TOO_MUCH_MEMORY.to_owned(),
        // Its author cannot free the disk on which it is sorted.
        Broken::Plan(error) if is_scarce(error) => return planning_error(error),
        Broken::Plan(error) => sql::readable(error),
        Broken::Encode(error) => match error {
            EncodeError::Unsupported { .. }
            | EncodeError::Interval { .. }
            | EncodeError::UnknownZone { .. }
            | EncodeError::LongRow => error.to_string(),
            error => format!("{error}; choose another output or cast the columns"),
        },
    };
    invalid(["body", "query"], message)
}

/// Why there is no plan: planning can depend on stored rows.
#[must_use]
pub fn planning_error(error: &DataFusionError) -> ApiError {
    by_cause(error).unwrap_or_else(|| ApiError::internal(kind_or_text(error)))
}

/// The answer to an error that comes from a cause known here. Errors of planning have the same causes as
/// those of answering: to plan the last record or the next page, rows are tested by the caller's conditions.
fn by_cause(error: &(dyn Error + 'static)) -> Option<ApiError> {
    if let Some(what) = corrupt_part(error) {
        return Some(ApiError::damaged(what));
    }
    if let Some(excess) = within::<Excess>(error) {
        return Some((*excess).into());
    }
    if let Some(cells) = within::<TooManyCells>(error) {
        return Some(invalid(["query", "metrics"], cells.to_string()));
    }
    if let Some(periods) = within::<TooManyPeriods>(error) {
        return Some((*periods).into());
    }
    if let Some(text) = within::<CostlyText>(error) {
        return Some(invalid(["query", "q"], text.to_string()));
    }
    if is_late(error) {
        return Some(ApiError::deadline(error));
    }
    is_scarce(error).then(|| ApiError::unavailable(error, TRY_LATER))
}

/// An error itself or the first of its sources that is a `Cause`.
fn within<'a, Cause: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a Cause> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// An error and all of its sources.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = below(current);
        Some(current)
    })
}

/// The error that `error` comes from. What only passes another error through names the source of that one as
/// its own, so that the search would step over the error itself.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(broken) = error.downcast_ref::<Broken>() {
        return match broken {
            Broken::Plan(inner) => Some(inner),
            Broken::Encode(inner) => Some(inner),
            Broken::Late => None,
        };
    }
    if let Some(shared) = error.downcast_ref::<Arc<DataFusionError>>() {
        return Some(shared.as_ref());
    }
    if let Some(StoreError::Catalog(inner)) = error.downcast_ref() {
        return Some(inner);
    }
    if let Some(carrier) = error.downcast_ref::<std::io::Error>() {
        return carrier.get_ref().map(|inner| inner as &(dyn Error + 'static));
    }
    error.source()
}

/// The damage behind an error, if that is its cause, however deep.
fn corrupt_part(error: &(dyn Error + 'static)) -> Option<String> {
    let is_damage = |error: &&(dyn Error + 'static)| {
        matches!(error.downcast_ref(), Some(StoreError::Corrupt { .. }))
            || matches!(error.downcast_ref(), Some(CatalogError::Corrupt { .. }))
    };
    chain(error).find(is_damage).map(ToString::to_string)
}

/// Why something could not be spilled to a file.
#[must_use]
pub fn spill_error(error: &std::io::Error) -> ApiError {
    if error.kind() == ErrorKind::StorageFull {
        ApiError::unavailable(error, TRY_LATER)
    } else {
        ApiError::internal(error)
    }
}

/// Whether the deadline of the question passed, wherever that was noticed.
fn is_late(error: &(dyn Error + 'static)) -> bool {
    chain(error)
        .any(|error| error.is::<DeadlinePassed>() || matches!(error.downcast_ref(), Some(Broken::Late)))
}

/// Whether there was not enough memory.
fn needs_memory(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| matches!(error.downcast_ref(), Some(DataFusionError::ResourcesExhausted(_))))
}

/// Whether anything was lacking that may be there later: memory, disk space, the store or the catalogue.
fn is_scarce(error: &(dyn Error + 'static)) -> bool {
    needs_memory(error)
        || chain(error).any(|error| {
            matches!(
                error.downcast_ref(),
                Some(StoreError::Unavailable { .. } | StoreError::Full { .. })
            ) || matches!(
                error.downcast_ref(),
                Some(
                    CatalogError::Unavailable { .. }
                        | CatalogError::Full { .. }
                        | CatalogError::Contended { .. }
                )
            ) || error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::StorageFull)
        })
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Denied::from(refused).into()
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Refused(_) | Denied::Beyond(_) | Denied::BeyondGroup(_) => {
                Self::forbidden(denied.to_string())
            }
            Denied::Catalog(error) => error.into(),
        }
    }
}

impl From<Busy> for ApiError {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::QueueFull => Self::too_many(busy.to_string(), busy.retry_after()),
            Busy::WaitedTooLong => Self::overloaded(busy, busy.retry_after()),
            Busy::Stopping => Self::unavailable(busy, busy.retry_after()),
        }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Unavailable { .. } | CatalogError::Full { .. } | CatalogError::Contended { .. } => {
                Self::unavailable(error, TRY_LATER)
            }
            CatalogError::Unknown { .. } => Self::outcome_unknown(error),
            CatalogError::Corrupt { .. } | CatalogError::NoDatabase { .. } => Self::damaged(error),
            // Their token is no longer accepted either.
            CatalogError::Erased { .. } => Self::unauthorized(),
            other => Self::internal(other),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { .. } | StoreError::Full { .. } => Self::unavailable(error, TRY_LATER),
            StoreError::Catalog(error) => error.into(),
            StoreError::Corrupt { .. } => Self::damaged(error),
            other => Self::internal(other),
        }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Columns(error) => invalid(["query", "columns"], error.to_string()),
            QueryError::Filter(error) => invalid(["query", "filter"], error.to_string()),
            QueryError::Aggregate(error @ AggregateError::NoValue(_)) => {
                let detail = format!("{error}; count them at /data/v1alpha1/event");
                invalid(["path", "data_type"], detail)
            }
            QueryError::Aggregate(error) => invalid(["query", "group"], error.to_string()),
            QueryError::Store(error) => error.into(),
            QueryError::Plan(error) => planning_error(&error),
        }
    }
}

impl From<Excess> for ApiError {
    fn from(excess: Excess) -> Self {
        let place = match excess {
            Excess::Groups => ["query", "group"],
            Excess::Cells { .. } => ["path", "resolution"],
        };
        invalid(place, excess.to_string())
    }
}

impl From<TooManyPeriods> for ApiError {
    fn from(error: TooManyPeriods) -> Self {
        invalid(["query", "period"], error.to_string())
    }
}

impl From<Outdated> for ApiError {
    fn from(error: Outdated) -> Self {
        match error {
            Outdated::Changed | Outdated::Unwanted => Self::precondition_failed(error.to_string()),
            Outdated::Unknown => Self::unavailable(error, TRY_LATER),
        }
    }
}

impl From<TypesError> for ApiError {
    fn from(error: TypesError) -> Self {
        match error {
            TypesError::Unknown { .. } | TypesError::Ambiguous { .. } => Self::not_found(error.to_string()),
            TypesError::Overtaken => Self::conflict(error.to_string()),
            TypesError::Outdated(outdated) => outdated.into(),
            TypesError::LimitReached(_) => Self::limit_reached(error.to_string()),
            TypesError::Invalid(faults) => Self::invalid_all(faults),
            TypesError::Damaged { .. } => Self::damaged(error),
            TypesError::Catalog(error) => error.into(),
        }
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Busy => Self::too_many(error.to_string(), TRY_LATER),
            CommitError::KeyReused => invalid(["header", "idempotency-key"], error.to_string()),
            CommitError::Full | CommitError::Unavailable(_) | CommitError::Stopping => {
                Self::unavailable(error, TRY_LATER)
            }
            CommitError::Backlog => Self::overloaded(error, FLUSHED_BY_THEN),
            CommitError::Corrupt(_) => Self::damaged(error),
            CommitError::Unknown(_) => Self::outcome_unknown(error),
            CommitError::Broken(_) => Self::internal(error),
            CommitError::Erased => Self::unauthorized(),
        }
    }
}
