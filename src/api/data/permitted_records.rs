//! What is known of the records that a request is about before they are read: whose they are, which of them
//! the reader may see, and where they lie.
//!
//! Lives as long as the request. Knows permits and partitions; knows nothing of the question about the
//! records, nor of the form of its answer.

use crate::api::admission::AdmissionSlot;
use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::grants::Readable;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::people::types::ResolvedType;
use crate::query::TypedPartition;
use crate::query::filter::Condition;

use super::partitions::{partitions_of, readable};
use super::read_request::ReadRequest;

/// The records that a request names.
pub(super) struct NamedRecords {
    pub(super) owner: PersonId,
    /// The id that the name in the request stands for.
    pub(super) data_type: String,
    pub(super) conditions: Vec<Condition>,
}

/// The records that a request is about, with the permit to read them.
pub(super) struct PermittedRecords {
    pub(super) owner: PersonId,
    pub(super) data_type: String,
    pub(super) permit: Readable,
    pub(super) resolved: ResolvedType,
    pub(super) slot: AdmissionSlot,
    pub(super) partitions: Vec<TypedPartition>,
    pub(super) conditions: Vec<Condition>,
}

impl PermittedRecords {
    /// The records in `range`, of which only those in `within` are read, if that is given. Nothing is read of
    /// the records' type before the permit is there, and of the records before there is a place among the
    /// questions that are being computed.
    pub(super) async fn of(
        app: &App,
        request: &ReadRequest,
        named: NamedRecords,
        range: TimeRange,
        within: Option<TimeRange>,
    ) -> Result<Self, ApiError> {
        let NamedRecords {
            owner,
            data_type,
            conditions,
        } = named;
        let reader = &request.reader;
        let permit = app
            .grants
            .windows(reader, owner, &TypeId::new(&data_type), range)
            .await?;
        let permit = match within {
            Some(within) => permit.within(within),
            None => permit,
        };
        let resolved = readable(app, owner, &data_type).await?;
        let slot = request.admitted(app).await?;
        let (partitions, conditions) = partitions_of(app, reader, owner, &resolved, conditions).await?;
        Ok(Self {
            owner,
            data_type,
            permit,
            resolved,
            slot,
            partitions,
            conditions,
        })
    }
}
