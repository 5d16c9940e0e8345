//! Columns whose value is the same in every row of an object. The footer shows it, so they are produced
//! without decoding. So are columns that an object lacks because no row had a value.
//!
//! Knows footers and plans; knows nothing of what columns mean.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::ground::key::KEY_ORDER;
use crate::query::ground::operator::{
    Input, Needs, Operator, Plan, Step, Task, ascending, one_partition, only,
};
use crate::store::constant::Constant;
use crate::store::files::PieceFile;
use crate::store::outline::ObjectPlace;

use super::request::Scan;

/// The number of footers that are read at a time.
const FOOTERS: usize = 8;

/// The constant value of each column of a scan in some objects, where it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Constants(Vec<Option<Constant>>);

impl Constants {
    /// No constants: every column is decoded.
    pub(super) fn nothing(scan: &Scan) -> Self {
        Self(vec![None; scan.columns.len()])
    }

    /// The constants of each of `objects`. Their footers stay open for decoding the rest, and are read only
    /// if a wanted column can be constant. Columns of the scan's hint are decoded. An object that cannot be
    /// opened is left to the Parquet reader, which reports the error.
    pub(super) async fn find(scan: &Scan, objects: Vec<ObjectPlace>) -> Vec<Self> {
        let free = free(scan);
        let mut fields = scan.schema.fields().iter().zip(&free);
        if !fields.any(|(field, free)| *free && Constant::is_possible(field.data_type())) {
            return vec![Self::nothing(scan); objects.len()];
        }
        let rows = scan.objects.decoded.clone();
        let opened = futures::stream::iter(objects)
            .map(move |place| {
                let rows = rows.clone();
                async move { rows.open(&place).await }
            })
            .buffered(FOOTERS);
        let files: Vec<_> = opened.collect().await;
        let known = |file: Result<Arc<PieceFile>, _>| match file {
            Ok(file) => Self::of(&file, &scan.schema, &free),
            Err(_) => Self::nothing(scan),
        };
        files.into_iter().map(known).collect()
    }

    fn of(file: &PieceFile, schema: &SchemaRef, free: &[bool]) -> Self {
        let columns = schema.fields().iter().zip(free);
        let known = columns.map(|(field, free)| free.then(|| known(file, field)).flatten());
        Self(known.collect())
    }

    /// The indices of the other columns among those of the scan.
    pub(super) fn decoded(&self) -> Vec<usize> {
        let columns = self.0.iter().enumerate();
        columns
            .filter_map(|(place, known)| known.is_none().then_some(place))
            .collect()
    }

    /// `rows`, which have the other columns, with all columns of `schema`.
    pub(super) fn put_back(self, rows: Plan, schema: &SchemaRef) -> Plan {
        if self.0.iter().all(Option::is_none) {
            return rows;
        }
        let step = PutBack {
            constants: self,
            schema: Arc::clone(schema),
        };
        Arc::new(Operator::over(step, vec![rows]))
    }

    fn rows(&self, schema: &SchemaRef, rows: usize) -> Result<Vec<Option<ArrayRef>>> {
        let columns = self.0.iter().zip(schema.fields());
        let made = columns.map(|(known, field)| match known {
            Some(known) => Ok(Some(known.rows(field.data_type(), rows)?)),
            None => Ok(None),
        });
        made.collect()
    }
}

/// The value that every row of an object has in a column, if known.
fn known(file: &PieceFile, wanted: &Field) -> Option<Constant> {
    let is_stored = file.schema().column_with_name(wanted.name()).is_some();
    if !is_stored && wanted.is_nullable() {
        return Some(Constant::Null);
    }
    Constant::of(file, wanted)
}

/// For each column of a scan, whether the hint does not use it.
fn free(scan: &Scan) -> Vec<bool> {
    let compared = scan.hint.as_ref().map(collect_columns).unwrap_or_default();
    let is_free = |name: &str| !compared.iter().any(|column| column.name() == name);
    let fields = scan.schema.fields().iter();
    fields.map(|field| is_free(field.name())).collect()
}

/// Puts constant columns back in their places.
#[derive(Clone, Debug)]
pub(in crate::query) struct PutBack {
    constants: Constants,
    schema: SchemaRef,
}

pub(in crate::query) type ConstantsExec = Operator<PutBack>;

impl PutBack {
    /// The names of the columns, without their values.
    pub(in crate::query) fn names(&self) -> String {
        let columns = self.constants.0.iter().zip(self.schema.fields());
        let names = columns.filter_map(|(known, field)| known.as_ref().map(|_| field.name().as_str()));
        names.collect::<Vec<_>>().join(", ")
    }
}

impl Step for PutBack {
    const NAME: &'static str = "ConstantsExec";
    // Its input does.
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("columns=[{}]", self.names())
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::sorted_by(inputs, &KEY_ORDER)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let order = ascending(&self.schema, &KEY_ORDER);
        one_partition(Arc::clone(&self.schema), order)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut made = Made {
            columns: Vec::new(),
            length: 0,
            step: self,
        };
        let rows = only(inputs)?.open()?;
        Ok(rows.map(move |rows| made.put_back(&rows?)).boxed())
    }
}

/// The constant columns, made once for the longest batch so far.
struct Made {
    columns: Vec<Option<ArrayRef>>,
    length: usize,
    step: PutBack,
}

impl Made {
    fn put_back(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let count = rows.num_rows();
        if count > self.length || self.columns.is_empty() {
            self.columns = self.step.constants.rows(&self.step.schema, count)?;
            self.length = count;
        }
        let mut decoded = rows.columns().iter();
        let columns = self.columns.iter().map(|made| match made {
            Some(made) if count == self.length => Some(Arc::clone(made)),
            Some(made) => Some(made.slice(0, count)),
            None => decoded.next().map(Arc::clone),
        });
        let columns: Option<Vec<ArrayRef>> = columns.collect();
        let columns =
            columns.ok_or_else(|| internal_datafusion_err!("rows lack a column that is decoded"))?;
        Ok(RecordBatch::try_new(Arc::clone(&self.step.schema), columns)?)
    }
}
