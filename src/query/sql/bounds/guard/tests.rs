//! Guards change no answer, and let nothing run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::query::engine::{Engine, EngineSettings, deadline_passed};

/// Far more than any of these takes by itself, and far less than what they guard against.
const QUERY_LIMIT: Duration = Duration::from_secs(30);
/// Far more than one step of these takes, and far less than a step that never yields.
const STEP_LIMIT: Duration = Duration::from_secs(8);

struct Bench {
    engine: Engine,
    computing: Option<Runtime>,
    context: SessionContext,
    _directory: TempDir,
}

impl Bench {
    /// A table `t` with so many rows, on an engine with one thread.
    fn new(rows: i64, deadline: Duration) -> Self {
        let directory = TempDir::new().unwrap();
        let computing = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let settings = EngineSettings {
            memory: 16 << 20,
            spill: directory.path().to_owned(),
            spill_limit: 64 << 20,
            deadline,
            total_deadline: deadline,
        };
        let engine = Engine::new(&settings, computing.handle().clone()).unwrap();
        let context = SessionContext::new_with_state(engine.state().clone());
        let ids: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
        let ones: ArrayRef = Arc::new((0..rows).map(|_| 1).collect::<Int64Array>());
        let few: ArrayRef = Arc::new((0..rows).map(|n| n * 7919 % 100).collect::<Int64Array>());
        let texts: ArrayRef = Arc::new(
            (0..rows)
                .map(|n| Some(format!("text {n}")))
                .collect::<StringArray>(),
        );
        let columns = [("id", ids), ("one", ones), ("few", few), ("text", texts)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
        Self {
            engine,
            computing: Some(computing),
            context,
            _directory: directory,
        }
    }

    async fn plan(&self, text: &str) -> Arc<dyn ExecutionPlan> {
        let rows = self.context.sql(text).await.unwrap();
        rows.create_physical_plan().await.unwrap()
    }

    async fn guarded(&self, text: &str) -> Arc<dyn ExecutionPlan> {
        with_guards(self.plan(text).await, 8192).unwrap()
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>, DataFusionError> {
        let mut stream = Box::pin(self.engine.drive(self.engine.start(plan), deadline_passed));
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            rows.push(batch?);
        }
        Ok(rows)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A runtime may not wait for its end where others run.
        self.computing.take().unwrap().shutdown_background();
    }
}

fn sorted(rows: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(rows).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn answers_with_guards_are_those_without() {
    let bench = Bench::new(3_000, Duration::from_mins(2));
    for text in [
        "SELECT id, text FROM t WHERE few > 90 ORDER BY id DESC LIMIT 1500",
        "SELECT few, count(*), sum(id), min(text) FROM t GROUP BY few",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.few AND b.id > 2000",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id + 2990 = b.id",
        "SELECT a.id, b.id FROM t a FULL JOIN t b ON a.few = b.id AND a.id < b.id + 100",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id < b.few AND a.few + 90 < b.few WHERE a.id < 50",
        "SELECT a.id, b.id FROM t a RIGHT JOIN t b ON a.id + b.id < 5",
        "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id < a.few - 95)",
        "SELECT id FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.few = a.id)",
        "SELECT id FROM t WHERE id IN (SELECT few FROM t) AND id > (SELECT avg(few) FROM t)",
        "SELECT a.id, b.id FROM (SELECT id FROM t LIMIT 60) a CROSS JOIN (SELECT id FROM t LIMIT 50) b",
        "SELECT id, sum(few) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT id, avg(few) OVER (PARTITION BY few), rank() OVER (ORDER BY few) FROM t",
        "SELECT unnest(l) FROM (SELECT array_agg(id) AS l FROM t GROUP BY few)",
        "SELECT id FROM t WHERE id < 7 UNION ALL SELECT few FROM t UNION SELECT 5",
        "SELECT DISTINCT few FROM t INTERSECT SELECT id FROM t",
        "SELECT count(DISTINCT text), median(id) FROM t",
    ] {
        let expected = bench.run(bench.plan(text).await).await.unwrap();
        let found = bench.run(bench.guarded(text).await).await.unwrap();
        assert!(found.iter().all(|batch| batch.num_rows() <= ROWS), "{text}");
        assert_eq!(sorted(&found), sorted(&expected), "{text}");
    }
}

#[tokio::test]
async fn whatever_its_operators_are_a_query_ends_soon_after_its_deadline_and_keeps_no_thread() {
    let bench = Bench::new(20_000, Duration::from_millis(500));
    // Whoever has to do something else on the only thread there is waits for this at most.
    let waited = Arc::new(AtomicU64::new(0));
    let longest = Arc::clone(&waited);
    bench.computing.as_ref().unwrap().spawn(async move {
        loop {
            let begun = Moment::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
    });
    for text in [
        "SELECT count(*) FROM t a JOIN t b ON a.id + b.id < 0",
        "SELECT count(*) FROM t a LEFT JOIN t b ON a.id + b.id < 0",
        "SELECT count(*) FROM t a FULL JOIN t b ON a.id + b.id < 0",
        "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE a.id + b.id < 0)",
        "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE a.id + b.id < 0)",
        "SELECT count(*) FROM t a JOIN t b ON a.one = b.one AND a.id + b.id < 0",
        "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE a.one = b.one AND a.id + b.id < 0)",
        "SELECT sum(a.id) FROM t a JOIN t b USING (one)",
        "SELECT sum(a.id * b.id) FROM t a, t b",
        "SELECT count(*) FROM (SELECT DISTINCT a.text || b.text FROM t a, t b)",
        "SELECT a.id FROM t a, t b ORDER BY a.id * b.id % 77, b.id LIMIT 5000000",
        "SELECT max(s) FROM (SELECT sum(a.id) OVER () AS s FROM t a, t b)",
        "SELECT max(s) FROM (SELECT lag(b.id) OVER (ORDER BY a.id * b.id) AS s FROM t a, t b)",
        "SELECT max(s) FROM (SELECT count(b.id) OVER (PARTITION BY a.one) AS s FROM t a, t b)",
        "SELECT array_agg(a.text) FROM t a, t b",
        "SELECT max(array_length(l) + id) FROM (SELECT array_agg(text) AS l FROM t) x, t",
        "SELECT max(n), max(w) FROM (SELECT unnest(l) AS n, w FROM (SELECT array_agg(id) AS l, \
         string_agg(text, '') AS w FROM t))",
        "SELECT sum(n) FROM (SELECT a.id AS n FROM t a, t b UNION ALL SELECT b.id FROM t a, t b)",
    ] {
        let plan = bench.guarded(text).await;
        waited.store(0, Ordering::Relaxed);
        let ended = tokio::time::timeout(QUERY_LIMIT, bench.run(plan)).await;
        let Ok(ended) = ended else {
            panic!("{text} ran on for {QUERY_LIMIT:?}");
        };
        let error = ended.unwrap_err();
        assert!(
            !matches!(error.find_root(), DataFusionError::Internal(_)),
            "{text}: {error}"
        );
        let waited = Duration::from_millis(waited.load(Ordering::Relaxed));
        assert!(waited < STEP_LIMIT, "{text}: kept its thread for {waited:?}");
    }
}
