//! What is to be read of a partition, as plain data. Must not know how it is read.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;

use crate::query::ground::files::Objects;
use crate::store::snapshot::Snapshot;

use super::selection::Selection;

/// What to read of a partition.
#[derive(Clone, Debug)]
pub(in crate::query::ground) struct Scan {
    pub objects: Arc<Objects>,
    pub snapshot: Arc<Snapshot>,
    /// The stored columns of the type, as it is now.
    pub storage: SchemaRef,
    /// Indices into `storage`, ascending, the key columns among them. The id may be left out where no row is
    /// dead; rows with equal start and end then come in any order.
    pub columns: Vec<usize>,
    /// The schema of those columns.
    pub schema: SchemaRef,
    pub selection: Selection,
    /// On `storage`: a condition that all wanted rows meet. Other rows may be returned too.
    pub hint: Option<Arc<dyn PhysicalExpr>>,
}
