//! Turns rows of cycles into the batches of each question.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};

use super::aggregate::{self, Totals};
use super::cycles::{Cycle, CycleSink};
use super::resolve::Row;
use super::rows::{BATCH_ROWS, StageRows};
use super::samples::{Sample, SampleReader};
use super::spec::{SleepTotalsSpec, SourceNames};
use super::stages::StageTable;
use super::summary::{self, Summaries};

/// Builds an answer from rows of cycles, and sometimes from samples as they were recorded.
pub(super) trait Answer: CycleSink + Send {
    fn sample(&mut self, _sample: &Sample) {}

    fn take(&mut self, reader: &SampleReader, ended: bool) -> Result<Option<RecordBatch>>;

    /// The number of rows that are held.
    fn waiting(&self) -> usize;
}

/// Whether this many rows make a batch now.
pub(super) const fn is_due(rows: usize, ended: bool) -> bool {
    rows >= BATCH_ROWS || (ended && rows > 0)
}

#[derive(Debug)]
pub(super) struct StagesAnswer {
    pub rows: StageRows,
    pub schema: SchemaRef,
    /// `None` if sources must not be named.
    pub names: Option<Arc<SourceNames>>,
}

impl CycleSink for StagesAnswer {
    fn row(&mut self, number: i64, row: &Row) {
        self.rows.row(number, row);
    }

    fn closed(&mut self, cycle: Cycle) {
        self.rows.closed(cycle);
    }
}

impl Answer for StagesAnswer {
    fn take(&mut self, reader: &SampleReader, ended: bool) -> Result<Option<RecordBatch>> {
        if !is_due(self.rows.len(), ended) {
            return Ok(None);
        }
        let names = self.names.as_deref();
        let name = |source| names.and_then(|names| names.get(reader.source(source)).copied());
        self.rows.take(&self.schema, name).map(Some)
    }

    fn waiting(&self) -> usize {
        self.rows.len()
    }
}

#[derive(Debug)]
pub(super) struct CyclesAnswer {
    pub summaries: Summaries,
    pub stages: Arc<StageTable>,
}

impl CycleSink for CyclesAnswer {
    fn row(&mut self, number: i64, row: &Row) {
        self.summaries.row(number, row);
    }

    fn closed(&mut self, cycle: Cycle) {
        self.summaries.closed(cycle);
    }

    fn idle(&mut self, moment: i64) {
        self.summaries.idle(moment);
    }
}

impl Answer for CyclesAnswer {
    fn sample(&mut self, sample: &Sample) {
        if self.stages.is_in_bed(sample.stage) {
            self.summaries.in_bed.push(sample.start, sample.end);
        }
    }

    fn take(&mut self, _reader: &SampleReader, ended: bool) -> Result<Option<RecordBatch>> {
        if !is_due(self.summaries.len(), ended) {
            return Ok(None);
        }
        let cycles = self.summaries.take();
        summary::batch(&cycles, &self.stages, self.summaries.spec()).map(Some)
    }

    fn waiting(&self) -> usize {
        self.summaries.waiting()
    }
}

#[derive(Debug)]
pub(super) struct AggregateAnswer {
    pub totals: Totals,
    pub spec: SleepTotalsSpec,
    pub schema: SchemaRef,
}

impl CycleSink for AggregateAnswer {
    fn row(&mut self, number: i64, row: &Row) {
        self.totals.row(number, row);
    }

    fn closed(&mut self, cycle: Cycle) {
        self.totals.closed(cycle);
    }
}

impl Answer for AggregateAnswer {
    fn take(&mut self, _reader: &SampleReader, ended: bool) -> Result<Option<RecordBatch>> {
        let refused = self.totals.refuse_too_many();
        refused.map_err(|refused| DataFusionError::External(Box::new(refused)))?;
        let totals = self.totals.take(ended);
        totals
            .map(|totals| aggregate::batch(&totals, &self.spec, &self.schema))
            .transpose()
    }

    fn waiting(&self) -> usize {
        self.totals.waiting()
    }
}
