//! What records of one type are decoded with, where a person may record them.
//!
//! Knows types, annotations and their limits; knows nothing of bodies.

use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::{ApiError, invalid};
use crate::ingest::compile::{CompileError, CompiledType};
use crate::ingest::context::{DecodeContext, Leave};
use crate::model::ids::PersonId;

/// What records of one name are decoded with.
pub(super) struct Recordable {
    pub(super) compiled: Arc<CompiledType>,
    pub(super) context: DecodeContext,
    /// Why nothing new is recorded. What was recorded before is still confirmed to whoever repeats it with
    /// its idempotency key.
    pub(super) closed: Option<ApiError>,
}

/// The type of records named `name`, if `person` can record them. `MomentAnnotation/<uuid>` means the base,
/// with all records belonging to that annotation.
pub(super) async fn recordable(app: &App, person: PersonId, name: &str) -> Result<Recordable, ApiError> {
    let name = app.types.resolve_name(person, name).await?;
    let resolved = app.types.find(person, &name).await?;
    let (mut definition, mut closed) = (None, None);
    if let Some(id) = resolved.annotation {
        let annotation = app
            .annotations
            .of_type(person, resolved.data_type.id.as_str(), id)
            .await?;
        if !annotation.is_live() {
            closed = Some(ApiError::conflict(format!(
                "the annotation {id} is deleted; cancel its deletion to record again"
            )));
        }
        definition = Some(Arc::from(annotation.svc_source_id));
    }
    if !resolved.data_type.recordable {
        return Err(invalid(
            ["path", "data_type"],
            format!("{} cannot be recorded", resolved.data_type.id),
        ));
    }
    let compiled = app
        .compiled
        .get(&resolved.data_type)
        .map_err(|error| match error {
            CompileError::TooCostly { .. } => invalid(["path", "data_type"], error.to_string()),
            error => ApiError::internal(error),
        })?;
    let value_limits = app
        .annotations
        .value_limits(person, resolved.data_type.id.as_str())
        .await?;
    let context = DecodeContext {
        now: app.clock.now(),
        ids: Arc::clone(&app.ids),
        source_prefix: Arc::from(app.settings.source_prefix.as_str()),
        text_limit: app.settings.text_limit,
        definition,
        value_limits: Arc::new(value_limits),
        leave: Leave::default(),
    };
    Ok(Recordable {
        compiled,
        context,
        closed,
    })
}
