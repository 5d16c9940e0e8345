//! What handlers work with: made once at start, shared by all requests, never changed.

use std::sync::Arc;

use crate::api::admission::Admission;
use crate::api::health::Readiness;
use crate::api::metrics::Metrics;
use crate::api::settings::InterfaceSettings;
use crate::auth::grants::Grants;
use crate::auth::tokens::Verifier;
use crate::model::clock::Clock;
use crate::model::ids::IdSource;
use crate::people::types::Types;

/// The running service, as the interface sees it.
pub struct App {
    pub settings: InterfaceSettings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub verifier: Verifier,
    pub grants: Grants,
    pub metrics: Metrics,
    pub readiness: Box<dyn Readiness>,
    /// What can be recorded: the built-in types and each person's own.
    pub types: Types,
    /// Places for questions.
    pub queries: Admission,
}

/// The state of every route.
pub type Shared = Arc<App>;
