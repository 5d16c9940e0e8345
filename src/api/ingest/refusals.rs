//! How it is answered that a body is not recorded.

use std::time::Duration;

use crate::api::problem::{ApiError, invalid};
use crate::ingest::accept::AcceptError;
use crate::ingest::errors::AssembleError;
use crate::ingest::memory::NoRoom;
use crate::ingest::named_sources::TooManySources;
use crate::ingest::queue::CommitError;
use crate::model::faults::Fault;
use crate::people::quota::{Limited, QuotaError};

/// How long to wait before sending a body again for which there was no memory.
const ROOM_LATER: Duration = Duration::from_secs(5);

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::TooLarge(limit) => {
                Self::too_many_records(usize::try_from(limit).unwrap_or(usize::MAX))
            }
            AcceptError::NotDecompressed(_) => invalid(["body"], error.to_string()),
            AcceptError::Invalid(faults) => Self::invalid_all(faults),
            AcceptError::TooManySources(TooManySources { limit: most }) => {
                let what = Limited::Sources;
                QuotaError::Reached { what, most }.into()
            }
            AcceptError::Decode(error) => Self::internal(error),
            AcceptError::NoRoom(error) => error.into(),
            AcceptError::Assemble(AssembleError::Store(error)) => error.into(),
            AcceptError::Assemble(error) => CommitError::from(error).into(),
        }
    }
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        let loc: &[&str] = match &error {
            QuotaError::Reached { what, .. } => match what {
                Limited::Keys => &["header", "idempotency-key"],
                Limited::Sources => &["body"],
            },
            QuotaError::Catalog(_) => &[],
        };
        match error {
            QuotaError::Reached { .. } => {
                Fault::new(loc.iter().copied(), "limit_reached", error.to_string()).into()
            }
            QuotaError::Catalog(error) => error.into(),
        }
    }
}

impl From<NoRoom> for ApiError {
    fn from(error: NoRoom) -> Self {
        Self::too_many(error.to_string(), ROOM_LATER)
    }
}
