//! Pages of an answer that is at hand, without storage or HTTP.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use datafusion::arrow::array::{
    AsArray as _, DictionaryArray, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Schema};
use datafusion::datasource::memory::MemorySourceConfig;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::*;
use crate::model::registry::{dictionary_text, timestamp};
use crate::query::Scope;
use crate::query::engine::{Engine, EngineSettings};

const KINDS: &[&str] = &["watched", "told"];
const KEY: RowKey = RowKey {
    start: "begin",
    end: Some("until"),
    id: Some("name"),
    kind: Some(("kind", KINDS)),
};

/// A row by its key: begin, end, id, kind.
type Row = (i64, i64, u8, usize);

fn answer(rows: &[Row]) -> Prepared {
    let schema = Arc::new(Schema::new(vec![
        Field::new("begin", timestamp(), false),
        Field::new("until", timestamp(), false),
        Field::new("name", ArrowType::Utf8, false),
        Field::new("kind", dictionary_text(), false),
        Field::new("number", ArrowType::Int32, false),
    ]));
    let times = |time: fn(&Row) -> i64| {
        TimestampMicrosecondArray::from_iter_values(rows.iter().map(time)).with_timezone("UTC")
    };
    let ids = rows
        .iter()
        .map(|row| Uuid::from_u128(u128::from(row.2)).to_string());
    let kinds = Int32Array::from_iter_values(rows.iter().map(|row| row.3 as i32));
    let kinds = DictionaryArray::<Int32Type>::new(kinds, Arc::new(StringArray::from(KINDS.to_vec())));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(times(|row| row.0)),
            Arc::new(times(|row| row.1)),
            Arc::new(StringArray::from_iter_values(ids)),
            Arc::new(kinds),
            Arc::new(Int32Array::from_iter_values(0..rows.len() as i32)),
        ],
    )
    .unwrap();
    Prepared {
        plan: MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&schema), None).unwrap(),
        schema,
        states: Vec::new(),
        scope: Scope::default(),
    }
}

/// The numbers of the rows of an answer.
async fn numbers(engine: &Engine, prepared: Prepared) -> Vec<i32> {
    let batches: Vec<RecordBatch> = engine
        .start(Arc::clone(&prepared.plan))
        .map(Result::unwrap)
        .collect()
        .await;
    let all = concat_batches(&prepared.plan.schema(), &batches).unwrap();
    let numbers = all.column_by_name("number").unwrap();
    numbers.as_primitive::<Int32Type>().values().to_vec()
}

/// One for all cases: to make one takes longer than a case.
struct Bench {
    runtime: Runtime,
    engine: Engine,
    _directory: TempDir,
}

static BENCH: LazyLock<Bench> = LazyLock::new(|| {
    let directory = TempDir::new().unwrap();
    let runtime = Runtime::new().unwrap();
    let settings = EngineSettings {
        memory: 16 << 20,
        spill: directory.path().to_owned(),
        spill_limit: 64 << 20,
        deadline: Duration::from_secs(30),
        total_deadline: Duration::from_secs(30),
    };
    Bench {
        engine: Engine::new(&settings, runtime.handle().clone()).unwrap(),
        runtime,
        _directory: directory,
    }
});

proptest! {
    #[test]
    fn pages_are_together_what_the_answer_is(
        rows in prop::collection::btree_set((0_i64..4, 0_i64..3, 0_u8..3, 0_usize..2), 0..24),
        limit in 1_usize..9,
    ) {
        let rows: Vec<Row> = rows.into_iter().collect();
        let bench = &*BENCH;
        let engine = &bench.engine;
        let pages = bench.runtime.block_on(async {
            let (mut pages, mut place) = (Vec::new(), None);
            loop {
                let (page, next) = answer(&rows).page(&KEY, place.as_ref(), Some(limit)).unwrap();
                pages.push(numbers(engine, page.first(Some(limit))).await);
                match next.find_start(engine).await.unwrap() {
                    Some(next) => place = Some(next),
                    None => return pages,
                }
            }
        });
        prop_assert!(pages.len() == rows.len().div_ceil(limit).max(1), "{pages:?}");
        prop_assert_eq!(pages.concat(), (0..rows.len() as i32).collect::<Vec<_>>());
    }
}
