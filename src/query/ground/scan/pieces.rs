//! The plan that reads the rows of a partition from its present pieces.
//!
//! Objects that do not overlap are read one after the other, the others are merged; the tail comes from
//! memory. Dead rows are dropped piece by piece, so a piece without dead rows pays nothing. Knows snapshots
//! and plans.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

use crate::catalog::records::Bounds;
use crate::model::time::Instant;
use crate::query::ground::files;
use crate::query::ground::in_turn::InTurnExec;
use crate::query::ground::key::key_order;
use crate::query::ground::merge_sorted::MergeSortedExec;
use crate::query::ground::operator::{Plan, known_order};
use crate::store::outline::ObjectPlace;
use crate::store::snapshot::{PieceContent, SnapshotPiece};

use super::constants::Constants;
use super::drop_unselected::SelectedExec;
use super::request::Scan;
use super::tail;

/// An object, and where it is.
pub(super) type Link<'s> = (&'s SnapshotPiece, &'s ObjectPlace);
/// Objects each of which begins after the previous one ends.
pub(super) type Chain<'s> = Vec<Link<'s>>;

impl Scan {
    /// Objects that may hold selected rows, in chains.
    pub(super) fn chains(&self) -> Vec<Chain<'_>> {
        let mut chains: Vec<Chain<'_>> = Vec::new();
        // The pieces of a snapshot come in the order of their first starts.
        for piece in self.pieces() {
            let PieceContent::Object(place) = &piece.content else {
                continue;
            };
            // A piece with dead rows is read by itself: an id that is dead in one piece is alive in another.
            let follows = |chain: &Chain<'_>| {
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

    /// The rows of a chain, read as Parquet. Columns that are constant according to footers are not decoded;
    /// neighbouring objects with the same constants are read together.
    pub(super) async fn parquet(&self, chain: &[Link<'_>]) -> Result<Plan> {
        let objects = chain.iter().map(|(_, place)| (*place).clone()).collect();
        let known = Constants::find(self, objects).await;
        let mut groups: Vec<(Constants, Vec<Link<'_>>)> = Vec::new();
        for (constants, object) in known.into_iter().zip(chain) {
            match groups.last_mut() {
                Some((same, objects)) if *same == constants => objects.push(*object),
                _ => groups.push((constants, vec![*object])),
            }
        }
        let plans = groups
            .iter()
            .map(|(constants, objects)| self.parquet_beside(constants, objects));
        let mut plans = plans.collect::<Result<Vec<_>>>()?;
        if plans.len() == 1 {
            return Ok(plans.remove(0));
        }
        Ok(Arc::new(InTurnExec::try_new(plans, key_order(&self.schema)?)?))
    }

    /// The rows of a chain, read as Parquet except for the columns in `constants`.
    pub(super) fn parquet_beside(&self, constants: &Constants, chain: &[Link<'_>]) -> Result<Plan> {
        let decoded = constants.decoded();
        let schema = Arc::new(self.schema.project(&decoded)?);
        let columns = decoded
            .iter()
            .filter_map(|place| self.columns.get(*place).copied());
        let all = chain.iter().all(|(piece, _)| {
            self.selection
                .holds_all(piece.bounds.min_start, piece.bounds.max_start)
        });
        let mut source = ParquetSource::new(Arc::clone(&self.storage))
            .with_parquet_file_reader_factory(Arc::clone(&self.objects.reader))
            .with_enable_page_index(true);
        let reaching = (!all)
            .then(|| self.selection.reaching(&self.storage))
            .transpose()?;
        if let Some(hint) = &self.hint {
            let both = |reaching| -> Arc<dyn PhysicalExpr> {
                Arc::new(BinaryExpr::new(reaching, Operator::And, Arc::clone(hint)))
            };
            // The columns of the hint are decoded first, the rest only for rows that meet it.
            source = source
                .with_predicate(reaching.map_or_else(|| Arc::clone(hint), both))
                .with_pushdown_filters(true);
        } else if let Some(reaching) = reaching {
            source = source.with_predicate(reaching);
        }
        let files: Vec<PartitionedFile> = chain.iter().map(|(_, place)| files::partitioned(place)).collect();
        let config = FileScanConfigBuilder::new(self.objects.url.clone(), Arc::new(source))
            .with_file_group(FileGroup::new(files))
            .with_projection_indices(Some(columns.collect()))?
            .with_output_ordering(vec![key_order(&self.storage)?])
            .build();
        let mut plan: Plan = DataSourceExec::from_data_source(config);
        if chain.len() > 1 {
            // Each begins after the previous one ends, which the files do not show.
            plan = known_order(plan, key_order(&schema)?)?;
        }
        let dead = match chain {
            [(piece, _)] => Arc::clone(&piece.dead),
            _ => Arc::default(),
        };
        if !all || !dead.is_empty() {
            plan = Arc::new(SelectedExec::of(self.selection.clone(), dead, plan));
        }
        Ok(constants.clone().put_back(plan, &self.schema))
    }

    /// The rows of the tail, from memory.
    pub(super) fn tail(&self) -> Result<Option<(Starts, Plan)>> {
        let pieces = self.pieces().filter_map(|piece| match &piece.content {
            PieceContent::Tail(rows) => Some((piece, rows)),
            PieceContent::Object(_) => None,
        });
        let pieces: Vec<_> = pieces.collect();
        let starts = pieces.iter().map(|(piece, _)| Starts::of(piece.bounds));
        let Some(starts) = starts.reduce(Starts::and) else {
            return Ok(None);
        };
        let rows = tail::sorted(&pieces, &self.storage, &self.columns)?;
        let source = tail::in_memory(rows, &self.schema)?;
        // Dead rows are already removed from it.
        let rows = SelectedExec::of(self.selection.clone(), Arc::default(), source);
        Ok(Some((starts, Arc::new(rows))))
    }

    /// The pieces that may hold selected rows.
    fn pieces(&self) -> impl Iterator<Item = &SnapshotPiece> {
        let pieces = self.snapshot.pieces.iter();
        pieces.filter(|piece| self.selection.may_hold(piece.bounds) && !piece.is_dead())
    }
}

/// The first and the last start of some rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts {
    first: Instant,
    last: Instant,
}

impl Starts {
    pub(super) const fn of(bounds: Bounds) -> Self {
        Self {
            first: bounds.min_start,
            last: bounds.max_start,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// Combines sorted inputs: those whose starts overlap are merged, the others follow each other.
pub(super) fn in_order(mut inputs: Vec<(Starts, Plan)>, schema: &SchemaRef) -> Result<Plan> {
    inputs.sort_by_key(|(starts, _)| starts.first);
    let mut groups: Vec<(Starts, Vec<Plan>)> = Vec::new();
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
            Arc::new(MergeSortedExec::new(group, key_order(schema)?))
        });
    }
    Ok(if plans.len() == 1 {
        plans.remove(0)
    } else {
        Arc::new(InTurnExec::try_new(plans, key_order(schema)?)?)
    })
}
