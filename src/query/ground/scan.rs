//! Rows of one partition as a plan, in the order (start, end, id).
//!
//! A snapshot says which pieces there are. Pieces outside the windows are left out; objects that do not
//! overlap are read one after the other, the others are merged; the tail comes from memory. Dead rows are
//! dropped piece by piece, so a piece without dead rows pays nothing. Above the standard sources of a few
//! objects stands a step that may answer from what is decoded already. Knows snapshots and plans; knows
//! nothing of what the rows mean.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, AsArray as _, BooleanArray, RecordBatch, StructArray, new_null_array,
};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, in_list};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use crate::catalog::records::Bounds;
use crate::model::ids::RecordId;
use crate::model::time::{Instant, TimeRange};
use crate::store::StoreError;
use crate::store::arrange::{KeyColumns, sort_rows, with_columns};
use crate::store::files::ObjectPlace;
use crate::store::snapshot::{Content, Snapshot, SnapshotPiece};

use super::decoded::{DecodedScan, MOST_STRETCHES};
use super::files::{self, Objects};
use super::in_turn::InTurnExec;
use super::key::{KEY_COLUMNS, key_order};
use super::operator::known_order;

/// What to read of a partition.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    pub snapshot: &'a Snapshot,
    /// The stored columns of the type, as it is now.
    pub storage: &'a SchemaRef,
    /// Indices into `storage`, ascending, the key columns among them. The id may be left out where no row is
    /// dead; rows that start and end together then come in any order.
    pub columns: Vec<usize>,
    /// Rows are selected that intersect one of these.
    pub windows: &'a [TimeRange],
    /// And that begin in this, if it is given.
    pub begins: Option<TimeRange>,
}

impl Scan<'_> {
    /// The plan. One partition, sorted by the key.
    pub(in crate::query) fn plan(&self, objects: &Objects) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(self.storage.project(&self.columns)?);
        let mut inputs = Vec::new();
        for chain in self.chains() {
            let starts = chain
                .iter()
                .map(|(piece, _)| Starts::of(piece.bounds))
                .reduce(Starts::and);
            inputs.extend(starts.map(|starts| (starts, chain)));
        }
        let mut plans = Vec::with_capacity(inputs.len() + 1);
        for (starts, chain) in inputs {
            plans.push((starts, self.objects(&chain, &schema, objects)?));
        }
        plans.extend(self.tail(&schema)?);
        if plans.is_empty() {
            return in_memory(Vec::new(), &schema);
        }
        in_order(plans, &schema)
    }

    /// Objects that may hold selected rows, in chains: inside a chain each begins after the one before ends.
    fn chains(&self) -> Vec<Vec<(&SnapshotPiece, &ObjectPlace)>> {
        let mut chains: Vec<Vec<(&SnapshotPiece, &ObjectPlace)>> = Vec::new();
        // The pieces of a snapshot come in the order of their first starts.
        for piece in self
            .snapshot
            .pieces
            .iter()
            .filter(|piece| self.may_hold(piece.bounds))
        {
            let Content::Object(place) = &piece.content else {
                continue;
            };
            // A piece with dead rows is read by itself: an id that is dead in one piece is alive in another.
            let follows = |chain: &Vec<(&SnapshotPiece, &ObjectPlace)>| {
                chain.last().is_some_and(|(last, _)| {
                    piece.dead.is_empty()
                        && last.dead.is_empty()
                        && last.bounds.max_start < piece.bounds.min_start
                })
            };
            match chains.iter_mut().find(|chain| follows(chain)) {
                Some(chain) => chain.push((piece, place)),
                None => chains.push(vec![(piece, place)]),
            }
        }
        chains
    }

    fn may_hold(&self, bounds: Bounds) -> bool {
        let begins = |range: TimeRange| bounds.min_start < range.end() && bounds.max_start >= range.start();
        self.begins.is_none_or(begins) && self.intersects(bounds)
    }

    fn intersects(&self, bounds: Bounds) -> bool {
        self.windows.iter().any(|window| {
            bounds.min_start < window.end()
                && (bounds.max_end > window.start() || bounds.max_start >= window.start())
        })
    }

    /// Whether every row within `bounds` is selected.
    fn holds_all(&self, bounds: Bounds) -> bool {
        let holds = |range: &TimeRange| range.start() <= bounds.min_start && bounds.max_start < range.end();
        self.windows.iter().any(holds) && self.begins.as_ref().is_none_or(holds)
    }

    fn objects(
        &self,
        chain: &[(&SnapshotPiece, &ObjectPlace)],
        schema: &SchemaRef,
        objects: &Objects,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = chain.iter().all(|(piece, _)| self.holds_all(piece.bounds));
        let mut source = ParquetSource::new(Arc::clone(self.storage))
            .with_parquet_file_reader_factory(Arc::clone(&objects.reader))
            .with_enable_page_index(true);
        if !all {
            source = source.with_predicate(self.reaching(self.storage)?);
        }
        let files: Vec<PartitionedFile> = chain.iter().map(|(_, place)| files::partitioned(place)).collect();
        let config = FileScanConfigBuilder::new(objects.url.clone(), Arc::new(source))
            .with_file_group(FileGroup::new(files))
            .with_projection_indices(Some(self.columns.clone()))?
            .with_output_ordering(vec![key_order(self.storage)?])
            .build();
        let mut plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        if chain.len() > 1 {
            // Each begins after the one before ends, which files do not tell.
            plan = known_order(plan, key_order(schema)?)?;
        }
        if !all {
            plan = Arc::new(FilterExec::try_new(self.selected(schema)?, plan)?);
        }
        if let [(piece, _)] = chain
            && !piece.dead.is_empty()
        {
            plan = Arc::new(FilterExec::try_new(alive(&piece.dead, schema)?, plan)?);
        }
        if chain.len() > MOST_STRETCHES {
            return Ok(plan);
        }
        let rows = DecodedScan {
            decoded: objects.decoded.clone(),
            objects: chain
                .iter()
                .map(|(piece, place)| ((*place).clone(), Arc::clone(&piece.dead)))
                .collect(),
            windows: self.windows.to_vec(),
            begins: self.begins,
        };
        Ok(rows.or(plan))
    }

    fn tail(&self, schema: &SchemaRef) -> Result<Option<(Starts, Arc<dyn ExecutionPlan>)>> {
        // Sorted by all of the key, whatever is wanted of it.
        let mut columns: Vec<usize> = self.columns.clone();
        columns.extend(
            KEY_COLUMNS
                .iter()
                .filter_map(|name| self.storage.index_of(name).ok()),
        );
        columns.sort_unstable();
        columns.dedup();
        let whole = Arc::new(self.storage.project(&columns)?);
        let mut batches = Vec::new();
        let mut starts = None;
        for piece in self
            .snapshot
            .pieces
            .iter()
            .filter(|piece| self.may_hold(piece.bounds))
        {
            let Content::Tail(rows) = &piece.content else {
                continue;
            };
            let own = Starts::of(piece.bounds);
            starts = Some(starts.map_or(own, |starts: Starts| starts.and(own)));
            let rows = with_columns(&with_members(rows.batch(), &whole)?, &whole).map_err(outside)?;
            batches.push(living(&rows, &piece.dead)?);
        }
        let Some(starts) = starts else { return Ok(None) };
        let rows = sort_rows(&concat_batches(&whole, &batches)?).map_err(outside)?;
        let rows = with_columns(&rows, schema).map_err(outside)?;
        let source = in_memory(vec![rows], schema)?;
        let rows: Arc<dyn ExecutionPlan> = Arc::new(FilterExec::try_new(self.selected(schema)?, source)?);
        Ok(Some((starts, rows)))
    }

    /// The intersect rule: `start < to and (end > from or start >= from)`, for some window. And where rows
    /// are to begin.
    fn selected(&self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let [start, end] = ends(schema)?;
        let any = self
            .windows
            .iter()
            .map(|window| {
                let from = moment(window.start());
                let begins_before = binary(&start, Operator::Lt, &moment(window.end()));
                let reaches = binary(
                    &binary(&end, Operator::Gt, &from),
                    Operator::Or,
                    &binary(&start, Operator::GtEq, &from),
                );
                binary(&begins_before, Operator::And, &reaches)
            })
            .reduce(|either, or| binary(&either, Operator::Or, &or));
        let any = any.unwrap_or_else(|| Arc::new(Literal::new(ScalarValue::Boolean(Some(false)))));
        let Some(begins) = self.begins else { return Ok(any) };
        let after = binary(&start, Operator::GtEq, &moment(begins.start()));
        let before = binary(&start, Operator::Lt, &moment(begins.end()));
        Ok(binary(
            &binary(&after, Operator::And, &before),
            Operator::And,
            &any,
        ))
    }

    /// What follows from [`Scan::selected`], in parts that speak of one column each: by such parts pages are
    /// left out that hold nothing selected, not only whole row groups. No record ends before it starts, so
    /// one that begins in a window does not end before the window.
    fn reaching(&self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let selected = self.selected(schema)?;
        let first = self.windows.iter().map(|window| window.start()).min();
        let last = self.windows.iter().map(|window| window.end()).max();
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(selected);
        };
        let [start, end] = ends(schema)?;
        let begins_before = binary(&start, Operator::Lt, &moment(last));
        let ends_after = binary(&end, Operator::GtEq, &moment(first));
        Ok(binary(
            &binary(&begins_before, Operator::And, &ends_after),
            Operator::And,
            &selected,
        ))
    }
}

/// The columns of the times between which a record lies.
fn ends(schema: &Schema) -> Result<[Arc<dyn PhysicalExpr>; 2]> {
    let column = |name: &str| -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Column::new(name, schema.index_of(name)?)))
    };
    Ok([column("start_time")?, column("end_time")?])
}

/// Between which moments rows start.
#[derive(Clone, Copy, Debug)]
struct Starts {
    first: Instant,
    last: Instant,
}

impl Starts {
    const fn of(bounds: Bounds) -> Self {
        Self {
            first: bounds.min_start,
            last: bounds.max_start,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Sorted inputs as one: those whose starts overlap are merged, the others follow each other.
fn in_order(
    mut inputs: Vec<(Starts, Arc<dyn ExecutionPlan>)>,
    schema: &SchemaRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    inputs.sort_by_key(|(starts, _)| starts.first);
    let mut groups: Vec<(Starts, Vec<Arc<dyn ExecutionPlan>>)> = Vec::new();
    for (starts, plan) in inputs {
        match groups.last_mut() {
            Some((reached, plans)) if starts.first <= reached.last => {
                *reached = reached.and(starts);
                plans.push(plan);
            }
            _ => groups.push((starts, vec![plan])),
        }
    }
    let mut plans = Vec::with_capacity(groups.len());
    for (_, mut group) in groups {
        plans.push(if group.len() == 1 {
            group.remove(0)
        } else {
            Arc::new(SortPreservingMergeExec::new(
                key_order(schema)?,
                UnionExec::try_new(group)?,
            ))
        });
    }
    Ok(if plans.len() == 1 {
        plans.remove(0)
    } else {
        Arc::new(InTurnExec::try_new(plans, key_order(schema)?)?)
    })
}

/// Rows that are sorted by the key.
fn in_memory(rows: Vec<RecordBatch>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = MemorySourceConfig::try_new(&[rows], Arc::clone(schema), None)?;
    let rows = rows.try_with_sort_information(vec![key_order(schema)?])?;
    Ok(DataSourceExec::from_data_source(rows))
}

/// `rows` with only those members of structures that `schema` has.
fn with_members(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let own = rows.schema();
    let mut fields: Vec<FieldRef> = own.fields().iter().cloned().collect();
    let mut columns = rows.columns().to_vec();
    let mut is_same = true;
    for (field, column) in fields.iter_mut().zip(&mut columns) {
        let Some((_, wanted)) = schema.column_with_name(field.name()) else {
            continue;
        };
        if let (DataType::Struct(members), Some(structure)) = (wanted.data_type(), column.as_struct_opt())
            && members.len() < structure.num_columns()
        {
            let member = |member: &FieldRef| {
                let held = structure.column_by_name(member.name());
                held.map_or_else(|| new_null_array(member.data_type(), structure.len()), Arc::clone)
            };
            let kept = members.iter().map(member).collect();
            let kept = StructArray::try_new(members.clone(), kept, structure.nulls().cloned())?;
            *column = Arc::new(kept);
            *field = Arc::new(field.as_ref().clone().with_data_type(wanted.data_type().clone()));
            is_same = false;
        }
    }
    if is_same {
        return Ok(rows.clone());
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// `rows` without those that are dead.
fn living(rows: &RecordBatch, dead: &[RecordId]) -> Result<RecordBatch> {
    if dead.is_empty() {
        return Ok(rows.clone());
    }
    let keys = KeyColumns::of(rows).map_err(outside)?;
    let keep: BooleanArray = (0..keys.len())
        .map(|row| Some(dead.binary_search(&keys.id(row)).is_err()))
        .collect();
    Ok(filter_record_batch(rows, &keep)?)
}

fn outside(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn alive(dead: &[RecordId], schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let id: Arc<dyn PhysicalExpr> = Arc::new(Column::new("id", schema.index_of("id")?));
    let ids = dead
        .iter()
        .map(|id| {
            Arc::new(Literal::new(ScalarValue::FixedSizeBinary(
                16,
                Some(id.as_bytes().to_vec()),
            ))) as Arc<dyn PhysicalExpr>
        })
        .collect();
    in_list(id, ids, &true, schema)
}

fn binary(
    left: &Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: &Arc<dyn PhysicalExpr>,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right)))
}

fn moment(instant: Instant) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::TimestampMicrosecond(
        Some(instant.micros()),
        Some("UTC".into()),
    )))
}
