//! Reads rows that lie in few stretches from decoded columns in memory: without opening a Parquet reader, and
//! without decoding again what was decoded a moment ago.
//!
//! Knows which rows are wanted; knows nothing of what they mean.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::model::ids::RecordId;
use crate::query::ground::errors::outside;
use crate::query::ground::key::KEY_ORDER;
use crate::query::ground::operator::{Input, Operator, Plan, Step, Task, ascending, one_partition};
use crate::store::arrange::with_columns;
use crate::store::decoded::{RowDecoder, Stretch, can_be_kept, stretches};
use crate::store::files::PieceFile;

use super::drop_unselected::selected;
use super::pieces::Chain;
use super::request::Scan;
use super::selection::Selection;

/// The most stretches: with more, a scan has decoded all of them before the first is wanted again.
pub(super) const MOST_STRETCHES: usize = 8;

/// Rows of some objects, one object after the other.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    rows: RowDecoder,
    schema: SchemaRef,
    selection: Selection,
    objects: Vec<SelectedObject>,
}

/// An object, the ids of its dead rows, and the stretches in which rows may be selected.
type SelectedObject = (Arc<PieceFile>, Arc<[RecordId]>, Vec<Stretch>);

impl Decoded {
    /// Finds the rows of a chain, unless they lie in too many stretches or their columns have to be
    /// converted. An object that cannot be opened is left to the Parquet reader, which reports the error.
    pub(super) async fn find(scan: &Scan, chain: &Chain<'_>) -> Option<Self> {
        let touched = scan.selection.touched()?;
        let rows = &scan.objects.decoded;
        let mut objects = Vec::with_capacity(chain.len());
        let mut left = MOST_STRETCHES;
        for (piece, place) in chain {
            let file = rows.open(place).await.ok()?;
            if !can_be_kept(&file, &scan.schema) {
                return None;
            }
            let stretches = stretches(&file, touched.start, touched.end, left)?;
            left -= stretches.len();
            objects.push((file, Arc::clone(&piece.dead), stretches));
        }
        Some(Self {
            rows: rows.clone(),
            schema: Arc::clone(&scan.schema),
            selection: scan.selection.clone(),
            objects,
        })
    }

    pub(super) fn plan(self) -> Plan {
        Arc::new(Operator::over(self, Vec::new()))
    }
}

impl Step for Decoded {
    const NAME: &'static str = "DecodedExec";

    fn detail(&self) -> String {
        let stretches: usize = self.objects.iter().map(|(_, _, stretches)| stretches.len()).sum();
        format!("objects={}, stretches={stretches}", self.objects.len())
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let order = ascending(&self.schema, &KEY_ORDER);
        one_partition(Arc::clone(&self.schema), order)
    }

    fn run(self, _inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let objects = self.objects.clone().into_iter();
        let stretches = objects.flat_map(|(file, dead, stretches)| {
            let of_file = move |stretch| (Arc::clone(&file), Arc::clone(&dead), stretch);
            stretches.into_iter().map(of_file)
        });
        let decoded = Arc::new(self);
        let rows = futures::stream::iter(stretches).then(move |(file, dead, stretch)| {
            let decoded = Arc::clone(&decoded);
            async move {
                let rows = decoded.rows.read(&file, stretch, &decoded.schema).await;
                let rows = selected(&rows.map_err(outside)?, &decoded.selection, &dead)?;
                // Columns that the object lacks are null; only the few rows that are left get them.
                with_columns(&rows, &decoded.schema).map_err(outside)
            }
        });
        Ok(rows
            .try_filter(|rows| std::future::ready(rows.num_rows() > 0))
            .boxed())
    }
}
