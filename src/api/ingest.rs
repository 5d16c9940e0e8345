//! Recording: `/ingest/v1`.
//!
//! A body is read as it arrives, and answered after the commit that contains it. Either the whole body is
//! stored, or nothing.

mod body_headers;
mod commit_body;
mod delete_targets;
pub mod legacy;
pub mod record;
mod recordable;
mod refusals;
mod room_for_rows;

use axum::http::StatusCode;

use crate::api::docs::common::also_answering;
use crate::api::endpoints::{Routes, endpoint};

/// Every route that records.
#[expect(deprecated, reason = "the interface keeps its older routes")]
pub fn routes() -> Routes {
    let recording = Routes::new()
        .with(endpoint!(record::record))
        .with(endpoint!(legacy::wrapped_record))
        .with(endpoint!(legacy::wrapped_batch));
    also_answering(recording, &[StatusCode::TOO_MANY_REQUESTS])
}
