//! Where the records of a type are: the partitions that hold them, and the conditions that select them there.
//!
//! A base has partitions of its own types, and records of annotations lie beside each other under their base.
//! Knows types, annotations and partitions; knows nothing of permits, nor of what is asked about the records.

use std::sync::Arc;

use uuid::Uuid;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, DataType};
use crate::people::annotations::shown::ShownAnnotations;
use crate::people::types::ResolvedType;
use crate::query::TypedPartition;
use crate::query::filter::{Comparand, Comparison, Condition};

/// The type called `data_type`, if its records can be read.
pub(super) async fn readable(app: &App, owner: PersonId, data_type: &str) -> Result<ResolvedType, ApiError> {
    let resolved = app.types.find(owner, data_type).await?;
    if resolved.data_type.queryable {
        Ok(resolved)
    } else {
        Err(ApiError::not_found(format!(
            "{} has no records to read; in the catalogue it is not `queryable`",
            resolved.data_type.id
        )))
    }
}

/// The partitions that hold the records of a type, with the conditions that select them.
pub(super) async fn partitions_of(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    resolved: &ResolvedType,
    mut conditions: Vec<Condition>,
) -> Result<(Vec<TypedPartition>, Vec<Condition>), ApiError> {
    let partition = |data_type: &Arc<DataType>| TypedPartition::of(Arc::clone(data_type));
    let mut partitions = vec![TypedPartition {
        definitions: definitions_of(app, reader, owner, &resolved.data_type).await?,
        ..partition(&resolved.data_type)
    }];
    if Base::named(resolved.data_type.id.as_str()).is_some() {
        let own = app.types.all_own(owner).await?;
        partitions.extend(
            own.iter()
                .filter(|own| own.data_type.id.base() == resolved.data_type.id.as_str())
                .map(|own| partition(&own.data_type)),
        );
    }
    conditions.extend(
        resolved
            .annotation
            .map(|annotation| belonging_to(app, annotation)),
    );
    Ok((partitions, conditions))
}

/// The partition that holds the samples of a metric which has a series, with the conditions that select them.
pub(super) async fn metric_partition(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    metric: &ResolvedType,
) -> Result<(TypedPartition, Vec<Condition>), ApiError> {
    let (partitions, conditions) = partitions_of(app, reader, owner, metric, Vec::new()).await?;
    let partition = partitions.into_iter().next();
    let partition = partition.ok_or_else(|| ApiError::internal("a metric without a partition"))?;
    Ok((partition, conditions))
}

/// Selects the records of one annotation among those of its type.
pub(super) fn belonging_to(app: &App, annotation: Uuid) -> Condition {
    Condition {
        field: "source_id".to_owned(),
        operator: Comparison::Belongs,
        value: Comparand::Text(app.annotations.source_id(annotation)),
    }
}

/// The definitions that records of the type belong to, if the type has definitions.
async fn definitions_of(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    data_type: &DataType,
) -> Result<Option<Arc<ShownAnnotations>>, ApiError> {
    if !data_type.is_base || Base::named(data_type.id.as_str()).is_some() {
        return Ok(None);
    }
    let shown = app.annotations.shown(owner, reader.owns(owner)).await?;
    Ok(Some(Arc::new(shown)))
}
