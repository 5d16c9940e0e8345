//! A table: a snapshot of one person's type, limited to what a permit allows.
//!
//! It can only be made from a permit, so nothing can be read without one. It knows its columns, its order and
//! its row count, and pushes columns, conditions, times and a limit down to the pages. Late fields,
//! definitions and the cuts for other readers are applied to its rows here, so that no question has to
//! remember them. Knows permits, snapshots and scans; knows nothing of what is asked.

mod leaf;
mod provider;

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::model::columns::ID;
use crate::model::permit::ReadPermit;
use crate::model::registry::DataType;
use crate::model::time::{Instant, TimeRange};
use crate::people::annotations::shown::ShownAnnotations;
use crate::store::kept_rollups::KeptRollups;
use crate::store::rollups::Step;
use crate::store::snapshot::{PieceContent, Snapshot, SnapshotPiece};

use super::annotation_definitions;
use super::backwards::halves;
use super::engine::Engine;
use super::errors::outside;
use super::files::Objects;
use super::for_others::{OriginalLength, ReaderView, few, permitted};
use super::grown;
use super::key::{KEY_COLUMNS, key_schema};
use super::operator::Plan;
use super::order::Order;
use super::questions::Questions;
use super::scan::{Scan, Selection};
use super::typed_partition::TypedPartition;

pub(in crate::query) use leaf::{PartitionExec, within};

/// The visible rows of a partition, with stored columns, sorted by (start, end, id).
#[derive(Clone, Debug)]
pub(in crate::query) struct PartitionTable {
    engine: Arc<Engine>,
    objects: Arc<Objects>,
    snapshot: Arc<Snapshot>,
    data_type: Arc<DataType>,
    definitions: Option<Arc<ShownAnnotations>>,
    /// The stored columns, perhaps with fewer members.
    storage: SchemaRef,
    selection: Selection,
    /// Set where somebody other than the owner reads.
    shared: Option<ReaderView>,
    /// On stored columns, as they are seen.
    condition: Option<Expr>,
    /// On the columns of the key: which rows come after a place in their order.
    after: Option<Expr>,
    /// How many rows are wanted, if not all.
    wanted: Option<usize>,
    /// Whether rows with equal start and end may come in any order.
    without_ids: bool,
}

impl<Authority> Questions<Authority> {
    /// The rows that `permit` makes visible, as of `snapshot`.
    pub(in crate::query) fn table(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Arc<Snapshot>,
        lengths: OriginalLength,
    ) -> Result<PartitionTable> {
        permitted(permit, snapshot)?;
        Ok(PartitionTable {
            engine: Arc::clone(&self.engine),
            objects: Arc::clone(&self.objects),
            snapshot: Arc::clone(snapshot),
            data_type: Arc::clone(&partition.data_type),
            definitions: partition.definitions.clone(),
            storage: Arc::clone(&partition.data_type.layout.storage),
            selection: Selection {
                windows: permit.windows().as_slice().into(),
                begins: None,
            },
            shared: ReaderView::of(permit, partition, lengths)?,
            condition: None,
            after: None,
            wanted: None,
            without_ids: false,
        })
    }

    /// The rows that `permit` makes visible, whole as they were recorded, for any reader. The caller must cut
    /// the results to the windows.
    pub(in crate::query) fn table_uncut(
        &self,
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Arc<Snapshot>,
    ) -> Result<PartitionTable> {
        let table = self.table(permit, partition, snapshot, OriginalLength::Dropped)?;
        let selection = Selection {
            windows: few(&table.selection.windows).into(),
            begins: None,
        };
        Ok(PartitionTable {
            shared: None,
            selection,
            ..table
        })
    }
}

impl PartitionTable {
    /// The part of the table inside `windows`, which are in order.
    pub(in crate::query) fn within(self, windows: &[TimeRange]) -> Self {
        let permitted = self.selection.windows.iter();
        let windows = permitted.flat_map(|seen| windows.iter().filter_map(|window| seen.overlap(*window)));
        let selection = Selection {
            windows: windows.collect(),
            ..self.selection
        };
        Self { selection, ..self }
    }

    /// Everything in one of its pieces that touches `time`, as recorded and regardless of windows: for
    /// results that are computed once and kept for all readers, each of whom then sees the part inside their
    /// own windows.
    pub(in crate::query) fn piece_in(&self, piece: &SnapshotPiece, time: TimeRange) -> Self {
        let alone = self.snapshot.only(vec![piece.clone()]);
        let selection = Selection {
            windows: [time].into(),
            begins: None,
        };
        Self {
            snapshot: Arc::new(alone),
            selection,
            shared: None,
            ..self.clone()
        }
    }

    /// The rollups that one of its pieces stores for a step and a month, regardless of windows. `None` where
    /// it stores none, or where visible values may differ from stored ones.
    pub(in crate::query) async fn rollups_in(
        &self,
        piece: &SnapshotPiece,
        step: Step,
        month: i64,
    ) -> Result<Option<KeptRollups>> {
        match &piece.content {
            PieceContent::Object(place) if !grown::has_grown(&self.data_type) => {
                let rollups = self.objects.files.rollups(place, step, month).await;
                rollups.map_err(outside)
            }
            PieceContent::Object(_) | PieceContent::Tail(_) => Ok(None),
        }
    }

    /// The rows that begin in a stretch of time.
    pub(in crate::query) fn beginning_in(self, begins: Option<TimeRange>) -> Self {
        let selection = Selection {
            begins,
            ..self.selection
        };
        Self { selection, ..self }
    }

    /// Divides the time in which its rows may begin, in the middle of when stored ones do.
    fn halves(&self) -> Option<[TimeRange; 2]> {
        let live = || self.snapshot.pieces.iter().filter(|piece| !piece.is_dead());
        let first = live().map(|piece| piece.bounds.min_start).min()?;
        let last = live().map(|piece| piece.bounds.max_start).max()?;
        let after_last = Instant::from_micros(last.micros().saturating_add(1));
        let begins = self.selection.begins.unwrap_or(TimeRange::ALWAYS);
        halves(begins, TimeRange::between(first, after_last))
    }

    /// Drops the order of rows with equal start and end. Ids, which identify dead rows, are still read if
    /// there may be some between the first and the last window: what is narrowed later reads no others.
    pub(in crate::query) fn without_ids(self, without_ids: bool) -> Self {
        let windows = self.selected().windows;
        let ends = windows.first().zip(windows.last());
        let hull = ends.map(|(first, last)| TimeRange::between(first.start(), last.end()));
        let selection = Selection {
            windows: hull.into_iter().collect(),
            begins: None,
        };
        Self {
            without_ids: without_ids && are_all_live(&self.snapshot, &selection),
            ..self
        }
    }

    /// The rows that meet a condition on stored columns.
    pub(in crate::query) fn meeting(self, condition: Option<Expr>) -> Self {
        Self { condition, ..self }
    }

    /// The rows that meet a condition on the columns of the key, by which they come after a place in their
    /// order. Unlike other conditions it is not used to skip rows of files: nearly all that begin late
    /// enough meet it.
    pub(in crate::query) fn following(self, after: Option<Expr>) -> Self {
        Self { after, ..self }
    }

    /// The same rows for a reader who wants so many of them: once a condition has let as many pass, none
    /// waits for more. All come to a reader who goes on.
    pub(in crate::query) fn wanting(self, wanted: Option<usize>) -> Self {
        Self { wanted, ..self }
    }

    /// The table with fewer members in its columns.
    pub(in crate::query) fn with_members(self, storage: Option<SchemaRef>) -> Self {
        match storage {
            Some(storage) => Self { storage, ..self },
            None => self,
        }
    }

    /// Its rows: the columns of the key, those named and those that conditions use, in the stored order of
    /// columns. Names that the type does not store are ignored.
    pub(in crate::query) fn rows<'c>(&self, columns: impl IntoIterator<Item = &'c str>) -> Result<Plan> {
        let places = columns
            .into_iter()
            .filter_map(|name| self.storage.index_of(name).ok());
        self.rows_at(places, Order::Ascending)
    }

    /// Its rows in `order`, with the columns of the key, those at these places among the stored columns, and
    /// those that conditions use.
    pub(in crate::query) fn rows_at(
        &self,
        columns: impl IntoIterator<Item = usize>,
        order: Order,
    ) -> Result<Plan> {
        let columns = self.read_for(columns, self.condition.as_ref());
        Ok(Arc::new(PartitionExec::try_new(self.clone(), columns, order)?))
    }

    /// Exactly those columns, in that order.
    fn rows_exactly(&self, columns: &[usize], order: Order) -> Result<Plan> {
        let rows = self.rows_at(columns.iter().copied(), order)?;
        let wanted = self.storage.project(columns)?;
        let held = rows.schema();
        if held
            .fields()
            .iter()
            .map(|field| field.name())
            .eq(wanted.fields().iter().map(|field| field.name()))
        {
            return Ok(rows);
        }
        let column = |field: &FieldRef| -> Result<ProjectionExpr> {
            let place = held.index_of(field.name())?;
            Ok(ProjectionExpr::new(
                Arc::new(Column::new(field.name(), place)),
                field.name().clone(),
            ))
        };
        let columns = wanted.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, rows)?))
    }

    /// The stored columns to read in order to show `columns` where a condition holds: ascending, each once,
    /// including those of the key.
    pub(in crate::query) fn read_for(
        &self,
        columns: impl IntoIterator<Item = usize>,
        condition: Option<&Expr>,
    ) -> Vec<usize> {
        let place = |name: &str| self.storage.index_of(name).ok();
        let keys = KEY_COLUMNS
            .iter()
            .filter(|name| !self.without_ids || **name != ID);
        let mut needed: Vec<usize> = columns
            .into_iter()
            .chain(keys.filter_map(|name| place(name)))
            .collect();
        if let Some(condition) = condition {
            needed.extend(
                condition
                    .column_refs()
                    .iter()
                    .filter_map(|column| place(&column.name)),
            );
        }
        if let Some(shared) = &self.shared {
            needed.extend(shared.columns(&self.storage));
        }
        let needed = grown::needed(&self.data_type, needed);
        annotation_definitions::needed(self.definitions.as_ref(), &self.data_type, needed)
    }

    /// Whether rows are seen as they are stored: nothing is cut, filled in or laid over.
    fn is_seen_as_stored(&self) -> bool {
        self.definitions.is_none() && self.is_stored_below_definitions()
    }

    /// Whether the condition says the same of stored rows as of those that are seen.
    fn is_condition_on_stored(&self) -> bool {
        let asked = self.definitions.as_ref().and(self.condition.as_ref());
        self.is_stored_below_definitions() && !asked.is_some_and(annotation_definitions::are_asked_by)
    }

    /// Whether rows are seen as they are stored, but for what definitions lay over them.
    fn is_stored_below_definitions(&self) -> bool {
        self.shared.is_none() && !grown::has_grown(&self.data_type)
    }

    /// `rows` with the stored `columns`, as they are seen.
    fn seen(&self, rows: Plan, columns: &[usize]) -> Result<Plan> {
        self.with_definitions(self.seen_without_definitions(rows, columns)?)
    }

    /// The last step to what is seen, which changes no column that has nothing of a definition.
    fn with_definitions(&self, rows: Plan) -> Result<Plan> {
        annotation_definitions::laid_over(rows, self.definitions.as_ref())
    }

    fn seen_without_definitions(&self, rows: Plan, columns: &[usize]) -> Result<Plan> {
        // First: what is filled in is cut like all else.
        let rows = grown::filled(rows, &self.data_type, columns)?;
        Ok(match &self.shared {
            Some(shared) => shared.cut(rows, &self.selection),
            None => rows,
        })
    }

    /// Whether a piece may hold rows of the table.
    pub(in crate::query) fn may_have_rows(&self) -> bool {
        let selection = self.selected();
        let mut pieces = self.snapshot.pieces.iter();
        pieces.any(|piece| selection.may_hold(piece.bounds))
    }

    /// What is read for the rows of the table.
    fn selected(&self) -> Selection {
        match &self.shared {
            Some(shared) => shared.scanned(&self.selection),
            None => self.selection.clone(),
        }
    }

    fn scan(&self, columns: &[usize], hint: Option<Arc<dyn PhysicalExpr>>) -> Result<Scan> {
        Ok(Scan {
            objects: Arc::clone(&self.objects),
            snapshot: Arc::clone(&self.snapshot),
            storage: Arc::clone(&self.storage),
            schema: Arc::new(self.storage.project(columns)?),
            columns: columns.to_vec(),
            selection: self.selected(),
            hint,
        })
    }
}

impl<Authority> Questions<Authority> {
    /// The keys of rows, and the stored columns `others`, of a snapshot that may be reduced to some pieces.
    /// Ids, which are larger than all else, are read only if there may be dead rows. The selection must lie
    /// inside windows of a permit.
    pub(in crate::query) async fn keys(
        &self,
        snapshot: Snapshot,
        selection: Selection,
        others: Vec<Field>,
    ) -> Result<Plan> {
        let keys = key_schema();
        let others = others.into_iter().map(Arc::new);
        let storage = Arc::new(Schema::new(
            keys.fields().iter().cloned().chain(others).collect::<Vec<_>>(),
        ));
        let are_ids_read = !are_all_live(&snapshot, &selection);
        let is_read = |field: &FieldRef| are_ids_read || field.name() != ID;
        let fields = storage.fields().iter().enumerate();
        let columns = fields.filter_map(|(place, field)| is_read(field).then_some(place));
        let columns: Vec<usize> = columns.collect();
        let scan = Scan {
            objects: Arc::clone(&self.objects),
            snapshot: Arc::new(snapshot),
            schema: Arc::new(storage.project(&columns)?),
            columns,
            storage,
            selection,
            hint: None,
        };
        scan.plan().await
    }
}

/// Whether none of the rows is dead that may be selected.
fn are_all_live(snapshot: &Snapshot, selection: &Selection) -> bool {
    let mut pieces = snapshot.pieces.iter();
    pieces.all(|piece| piece.dead.is_empty() || !selection.may_hold(piece.bounds))
}
