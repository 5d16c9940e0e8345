//! What somebody other than the owner sees of stored rows.
//!
//! Rows are cut to the windows of the permit right above the scan, rule 9.2c, so everything is computed from
//! what is left: no question can forget to cut. Only sleep takes rows as recorded, since the recorded start
//! decides which one wins, and cuts the result. Where a permit is for one of several definitions whose rows
//! lie in one partition, those of the others go before rows are cut. What is not seen is not only marked as
//! null, but no longer in the rows, so that nothing can bring it back. Columns that name devices,
//! applications and tags are removed, rule 9.2d. For whoever must not learn whose rows they are, names that
//! tell it are no longer in the rows either. The owner's own reads skip all of this. Knows permits, layouts,
//! and which source names a definition; knows nothing of what is asked.

mod cut;
mod extent;
mod original_length;
mod own_rows;
pub(in crate::query) mod private;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{Result, internal_err};

use crate::model::columns::{END, SOURCE, SOURCE_CLASS, START, VALUE};
use crate::model::permit::{ReadPermit, Windows};
use crate::model::registry::{DataType, OwnersName, RecordClass, TypeId};
use crate::model::time::TimeRange;
use crate::store::snapshot::Snapshot;

use super::annotation_definitions::SOURCE_ID;
use super::measure::are_spread;
use super::operator::Plan;
use super::row_times::micros_of;
use super::scan::Selection;
use super::typed_partition::TypedPartition;

use cut::{CutExec, Rule};
use extent::{Extent, Extents};

pub(in crate::query) use original_length::OriginalLength;

/// How somebody other than the owner sees the rows of a table.
#[derive(Clone, Debug)]
pub(in crate::query) struct ReaderView {
    /// Where rows are cut: the edges of everything that was granted.
    edges: Windows,
    extents: Extents,
    spread: bool,
    kept: Vec<String>,
    lengths: OriginalLength,
    hidden_names: Vec<OwnersName>,
    /// The source that rows name which belong to the definition of the permit; `None` where all may be seen.
    definition: Option<Arc<str>>,
}

impl ReaderView {
    /// The view that others have of the rows of a partition; `None` for the owner. Fails if the permit is for
    /// one of several definitions, and it is not known by which source their rows are told apart.
    pub(in crate::query) fn of<Authority>(
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        lengths: OriginalLength,
    ) -> Result<Option<Self>> {
        let Some(shared) = permit.shared_with() else {
            return Ok(None);
        };
        let data_type = &partition.data_type;
        Ok(Some(Self {
            edges: shared.edges.clone(),
            extents: Extents::of(&data_type.id),
            spread: are_spread(data_type),
            kept: kept(data_type),
            lengths,
            hidden_names: if shared.knows_owner {
                Vec::new()
            } else {
                data_type.layout.owners_names.clone()
            },
            definition: definition_of(permit, partition)?,
        }))
    }

    /// The stored columns that cutting needs, besides those of the key.
    pub(in crate::query) fn columns(&self, storage: &Schema) -> impl Iterator<Item = usize> {
        let of_extents = self
            .extents
            .fields()
            .into_iter()
            .map(|field| field.name().clone());
        let of_definition = self.definition.iter().map(|_| SOURCE_ID.to_owned());
        let names = of_extents.chain(of_definition);
        names.filter_map(|name| storage.index_of(&name).ok())
    }

    /// The rows to scan for a selection. A part may begin at another time than its row, so rows are not
    /// selected by where they begin.
    pub(in crate::query) fn scanned(&self, asked: &Selection) -> Selection {
        Selection {
            windows: few(&self.extents.recorded_for(self.narrowed(asked))).into(),
            begins: None,
        }
    }

    /// `rows`, which were read by [`ReaderView::scanned`], as they may be seen.
    pub(in crate::query) fn cut(&self, rows: Plan, asked: &Selection) -> Plan {
        let narrowed = self.narrowed(asked);
        let rule = Rule {
            edges: self.edges.clone(),
            whole_within: self.edges.clone(),
            asked_windows: (narrowed != self.edges.as_slice()).then_some(narrowed),
            begins: asked.begins,
            extents: self.extents,
            spread: self.spread,
            kept: self.kept.clone(),
            lengths: self.lengths,
            hidden_names: self.hidden_names.clone(),
            definition: self.definition.clone(),
        };
        Arc::new(CutExec::new(rows, rule))
    }

    /// The parts of the windows in which rows lie that begin when it is asked.
    fn narrowed(&self, asked: &Selection) -> Vec<TimeRange> {
        let windows = asked.windows.iter().copied();
        let Some(begins) = asked.begins else {
            return windows.collect();
        };
        let reached = self.extents.reached_from(begins);
        Windows::new(windows).within(reached).as_slice().to_vec()
    }
}

/// The source by which rows belong to the definition of the permit, if the partition holds those of others.
fn definition_of<Authority>(
    permit: &ReadPermit<Authority>,
    partition: &TypedPartition,
) -> Result<Option<Arc<str>>> {
    let Some(definition) = permit.definition_within(&partition.id) else {
        return Ok(None);
    };
    let Some(definitions) = &partition.definitions else {
        return internal_err!("the definitions of {} are not known", partition.id);
    };
    Ok(Some(definitions.source(definition).into()))
}

/// Fails if the permit does not cover the snapshot. No caller asks for that; a bug in how a question is put
/// together must not become an answer.
pub(in crate::query) fn permitted<Authority>(
    permit: &ReadPermit<Authority>,
    snapshot: &Snapshot,
) -> Result<()> {
    if permit.is_for(snapshot.person, &snapshot.data_type) {
        return Ok(());
    }
    internal_err!(
        "a permit for {} does not cover the rows of {}",
        permit.data_type(),
        snapshot.data_type
    )
}

/// Windows to scan: with many windows, testing each row against each would be slow. Neighbours among hundreds
/// of grants are scanned as one, and what lies between them is cut away with the rest.
pub(in crate::query) fn few(windows: &[TimeRange]) -> Vec<TimeRange> {
    let neighbours = windows.len().div_ceil(MOST_SCANNED).max(1);
    let together = |some: &[TimeRange]| Some(TimeRange::between(some.first()?.start(), some.last()?.end()));
    windows.chunks(neighbours).filter_map(together).collect()
}

/// The keys to scan for rows of a type that are then cut to `windows` by [`cut_keys`].
pub(in crate::query) fn keys_for(data_type: &TypeId, windows: &Windows) -> Selection {
    let recorded = Extents::of(data_type).recorded_for(windows.as_slice().to_vec());
    Selection {
        windows: few(&recorded).into(),
        begins: None,
    }
}

/// Cuts `rows` that have only the key columns and those of [`extent_fields`].
pub(in crate::query) fn cut_keys(rows: Plan, data_type: &TypeId, windows: &Windows) -> Plan {
    let rule = Rule {
        edges: windows.clone(),
        whole_within: windows.clone(),
        asked_windows: None,
        begins: None,
        extents: Extents::of(data_type),
        spread: false,
        kept: Vec::new(),
        lengths: OriginalLength::Dropped,
        hidden_names: Vec::new(),
        definition: None,
    };
    Arc::new(CutExec::new(rows, rule))
}

/// Cuts rows that were cut already to `edges` as well; rows without hours of their own stay if they lie
/// inside `whole_within`.
pub(in crate::query) fn cut_again(
    rows: Plan,
    data_type: &DataType,
    edges: Windows,
    whole_within: Windows,
) -> Plan {
    let rule = Rule {
        edges,
        whole_within,
        asked_windows: None,
        begins: None,
        extents: Extents::of(&data_type.id),
        spread: are_spread(data_type),
        kept: kept(data_type),
        lengths: OriginalLength::Dropped,
        hidden_names: Vec::new(),
        definition: None,
    };
    Arc::new(CutExec::new(rows, rule))
}

/// The columns, besides those of the key, that say when rows of a type take place.
pub(in crate::query) fn extent_fields(data_type: &TypeId) -> Vec<Field> {
    Extents::of(data_type).fields()
}

/// Whether rows of a type are seen by other times than those that are recorded.
pub(in crate::query) fn take_place_elsewhere(data_type: &TypeId) -> bool {
    Extents::of(data_type) != Extents::Recorded
}

/// When others may see rows of a type whose recorded times share time with `recorded`.
pub(in crate::query) fn reached_within(data_type: &TypeId, recorded: TimeRange) -> TimeRange {
    Extents::of(data_type).reached_within(recorded)
}

/// When the parts of rows take place that others see, in microseconds since 1970. `parts` have the columns of
/// the key and those of [`extent_fields`].
pub(in crate::query) fn times_of_parts(parts: &RecordBatch, data_type: &TypeId) -> Result<Vec<(i64, i64)>> {
    let (starts, ends) = (micros_of(parts, START)?, micros_of(parts, END)?);
    let extents = Extents::of(data_type).read(parts, starts, ends)?;
    let known = extents.into_iter().filter_map(|extent| match extent {
        Extent::Span(start, end) | Extent::Whole(start, end) => Some((start, end)),
        Extent::Unknown => None,
    });
    Ok(known.collect())
}

/// The columns, besides those of the key, that keep their values when a row is cut.
fn kept(data_type: &DataType) -> Vec<String> {
    let ours = [SOURCE, SOURCE_CLASS].map(str::to_owned);
    // A level holds at every moment of its time; of an amount, the part is kept.
    let value = (data_type.class == RecordClass::Metric).then(|| VALUE.to_owned());
    let throughout = data_type.layout.throughout.iter().cloned();
    throughout.chain(ours).chain(value).collect()
}

/// The most windows that a scan distinguishes.
pub(in crate::query) const MOST_SCANNED: usize = 32;
