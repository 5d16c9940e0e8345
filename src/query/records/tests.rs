//! Pages of records that lie in several pieces.

use datafusion::arrow::array::{
    ArrayRef, AsArray as _, FixedSizeBinaryArray, Float64Array, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use futures::TryStreamExt as _;
use uuid::Uuid;

use super::*;
use crate::catalog::records::{Commit, PartitionChange};
use crate::model::ids::{PersonId, PieceId, SystemIds};
use crate::model::permit::Windows;
use crate::model::registry::{DataType, Registry, TypeId};
use crate::query::filter::parse_all;
use crate::query::ground::table::PartitionExec;
use crate::query::test_engine::TestEngine;
use crate::store::arrange::{sort_rows, with_columns};
use crate::store::piece::{Target, write_batch};
use crate::store::tail;

/// Decides about everything, in these tests.
struct Anybody;

/// A row by its start and its value.
type Row = (i64, f64);

struct Bench {
    engine: TestEngine<Anybody>,
    partition: TypedPartition,
    permit: ReadPermit<Anybody>,
}

/// Where a piece is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Object,
    Tail,
}

impl Bench {
    async fn of(pieces: &[(Stored, Vec<Row>)]) -> Self {
        let engine = TestEngine::start().await;
        let data_type = Arc::clone(Registry::builtin().unwrap().get("HeartRate").unwrap());
        let (person, id) = (PersonId(Uuid::now_v7()), TypeId::new("HeartRate"));
        let mut add = Vec::new();
        for (number, (stored, rows)) in pieces.iter().enumerate() {
            let rows = with_columns(&batch(number, rows), &data_type.layout.storage).unwrap();
            let rows = sort_rows(&rows).unwrap();
            if *stored == Stored::Tail {
                add.push(tail::piece(PieceId(Uuid::now_v7()), &rows, 1).unwrap());
                continue;
            }
            let target = Target {
                person,
                data_type: id.clone(),
                layout_version: 1,
            };
            let written = write_batch(engine.files.objects(), &SystemIds::default(), target, &rows).await;
            add.extend(written.unwrap());
        }
        let change = PartitionChange {
            person,
            data_type: id.clone(),
            expected: None,
            records_delta: add.iter().map(|piece| piece.rows).sum(),
            add,
            dead: Vec::new(),
            updates: 1,
        };
        let commit = Commit {
            changes: vec![change],
            ..Commit::default()
        };
        engine.catalog.commit(commit).await.unwrap();
        Self {
            engine,
            permit: ReadPermit::given(&Anybody, person, id.clone(), Windows::new([TimeRange::ALWAYS])),
            partition: TypedPartition {
                data_type,
                id,
                definitions: None,
            },
        }
    }

    async fn page(&self, spec: &RecordsSpec) -> (Prepared, NextPage) {
        let partitions = std::slice::from_ref(&self.partition);
        let questions = &self.engine.questions;
        questions
            .page_of_records(&self.permit, partitions, spec)
            .await
            .unwrap()
    }

    /// The ids of the rows of a plan, in their order.
    async fn ids(&self, plan: &Plan) -> Vec<[u8; 16]> {
        let rows = self.engine.questions.engine.start(Arc::clone(plan));
        let batches: Vec<RecordBatch> = rows.try_collect().await.unwrap();
        let ids = |batch: &RecordBatch| -> Vec<[u8; 16]> {
            let ids = batch.column_by_name("uuid").unwrap().as_fixed_size_binary();
            (0..batch.num_rows())
                .map(|row| ids.value(row).try_into().unwrap())
                .collect()
        };
        batches.iter().flat_map(ids).collect()
    }

    /// The ids of all pages, one page after the other.
    async fn paged(&self, first: &RecordsSpec) -> Vec<Vec<[u8; 16]>> {
        let (mut spec, mut pages) = (first.clone(), Vec::new());
        loop {
            let (prepared, next) = self.page(&spec).await;
            pages.push(self.ids(&prepared.plan).await);
            match next.find_start(&self.engine.questions.engine).await.unwrap() {
                Some(place) => spec.after = Some(place),
                None => return pages,
            }
        }
    }
}

fn batch(piece: usize, rows: &[Row]) -> RecordBatch {
    let ids = (0..rows.len()).map(|row| (piece as u128 * 1_000 + row as u128).to_be_bytes());
    let times = || {
        let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(start, _)| *start));
        Arc::new(times.with_timezone("UTC")) as ArrayRef
    };
    let values = Float64Array::from_iter_values(rows.iter().map(|(_, value)| *value));
    RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()) as ArrayRef,
        ),
        ("start_time", times()),
        ("end_time", times()),
        ("value", Arc::new(values)),
    ])
    .unwrap()
}

fn asked(order: Order, filters: &[&str], limit: Option<usize>) -> RecordsSpec {
    let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
    RecordsSpec {
        conditions: parse_all(&filters).unwrap(),
        order,
        ids: IdForm::Bytes,
        limit,
        after: None,
        columns: None,
    }
}

/// How many rows the filters of a plan passed on when it ran, also where a leaf chose it.
fn passed(plan: &dyn ExecutionPlan) -> usize {
    let here = plan
        .downcast_ref::<FilterExec>()
        .and_then(|filter| filter.metrics()?.output_rows());
    let chosen = plan
        .downcast_ref::<PartitionExec>()
        .map(|leaf| passed(leaf.below().unwrap().as_ref()));
    let below = plan.children().into_iter().map(|child| passed(child.as_ref()));
    here.unwrap_or_default() + chosen.unwrap_or_default() + below.sum::<usize>()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_together_all_that_meets_a_condition() {
    // Pieces of both kinds that overlap, with rows that begin together.
    let rows = |piece: i64| (0..6).map(move |row| ((piece * 4 + row * 3) % 37, ((piece + row) % 5) as f64));
    let pieces: Vec<(Stored, Vec<Row>)> = (0..13)
        .map(|piece| {
            let stored = if piece % 2 == 0 {
                Stored::Object
            } else {
                Stored::Tail
            };
            (stored, rows(piece).collect())
        })
        .collect();
    let bench = Bench::of(&pieces).await;
    let none: [&str; 0] = [];
    for (filters, expected) in [(&none[..], 78), (&["value>=2"][..], 46)] {
        let (all, _) = bench.page(&asked(Order::Ascending, filters, None)).await;
        let mut all = bench.ids(&all.plan).await;
        assert_eq!(all.len(), expected);
        for order in [Order::Ascending, Order::Descending] {
            for limit in [2, 50] {
                let pages = bench.paged(&asked(order, filters, Some(limit))).await;
                assert_eq!(pages.len(), expected.div_ceil(limit));
                assert_eq!(pages.concat(), all, "{filters:?} {order:?} {limit}");
            }
            all.reverse();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reads_no_further_than_it_shows() {
    let rows = |piece: i64| (0..5).map(|row| (piece * 100 + row, 60.0)).collect::<Vec<Row>>();
    let pieces: Vec<(Stored, Vec<Row>)> = (0..40).map(|piece| (Stored::Object, rows(piece))).collect();
    let bench = Bench::of(&pieces).await;
    let mut spec = asked(Order::Ascending, &["value>=2"], Some(2));
    for _page in 0..3 {
        let (prepared, next) = bench.page(&spec).await;
        assert_eq!(bench.ids(&prepared.plan).await.len(), 2);
        // The rows of the pieces that the page touches.
        assert!((2..=10).contains(&passed(prepared.plan.as_ref())));
        spec.after = next.find_start(&bench.engine.questions.engine).await.unwrap();
        assert!(spec.after.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_an_answer_has_the_columns_of_types_that_cannot_meet_the_conditions() {
    let bench = Bench::of(&[(Stored::Tail, vec![(1, 2.0)])]).await;
    let note = Arc::clone(Registry::builtin().unwrap().get("Note").unwrap());
    let mut layout = note.layout.as_ref().clone();
    layout.state = !layout.state;
    let mut changed = note.as_ref().clone();
    changed.layout = Arc::new(layout);
    let states = async |others: &[DataType]| {
        let others = others
            .iter()
            .map(|other| TypedPartition::of(Arc::new(other.clone())));
        let partitions: Vec<TypedPartition> = others.chain([bench.partition.clone()]).collect();
        let conditions = parse_all(&["value>1".to_owned()]).unwrap();
        let questions = &bench.engine.questions;
        let selected = questions.select(&bench.permit, &partitions, &conditions).await;
        let selected = selected.unwrap();
        assert_eq!(selected.len(), 1, "a note has no value");
        states_of(&bench.permit, &partitions, &selected)
    };
    let alone = states(&[]).await;
    let with_note = states(std::slice::from_ref(note.as_ref())).await;
    assert_eq!(with_note, states(std::slice::from_ref(note.as_ref())).await);
    assert_ne!(with_note, alone);
    assert_ne!(with_note, states(&[changed]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_many_rows_are_read_apart_from_the_others() {
    let last = 80_000;
    let evenly: Vec<Row> = (0..last).map(|row| (row, 60.0)).collect();
    // Hardly any begin where the first of an even spread would.
    let late = (0..last).map(|row| (if row < 5 { row } else { 100 * last + row }, 60.0));
    for rows in [evenly, late.collect()] {
        let bench = Bench::of(&[(Stored::Object, rows)]).await;
        let (questions, partitions) = (&bench.engine.questions, std::slice::from_ref(&bench.partition));
        let selected = questions.select(&bench.permit, partitions, &[]).await.unwrap();
        let [one] = selected.as_slice() else {
            panic!("one partition was selected")
        };
        let lengths = OriginalLength::Dropped;
        let table = questions
            .table(&bench.permit, one.partition, &one.snapshot, lengths)
            .unwrap();
        let read = async |wanted: Option<usize>| {
            let rows = table
                .clone()
                .wanting(wanted)
                .rows_at([], Order::Ascending)
                .unwrap();
            let batches: Vec<RecordBatch> = questions
                .engine
                .start(Arc::clone(&rows))
                .try_collect()
                .await
                .unwrap();
            let ids = |batch: &RecordBatch| -> Vec<[u8; 16]> {
                let ids = batch.column_by_name("id").unwrap().as_fixed_size_binary();
                (0..batch.num_rows())
                    .map(|row| ids.value(row).try_into().unwrap())
                    .collect()
            };
            let leaf = rows.downcast_ref::<PartitionExec>().unwrap().below().unwrap();
            let leaf = displayable(leaf.as_ref()).one_line().to_string();
            (batches.iter().flat_map(ids).collect::<Vec<_>>(), leaf)
        };
        let (all, plan) = read(None).await;
        assert_eq!(all.len(), last as usize);
        assert!(!plan.starts_with("InTurnExec"), "{plan}");
        let (first, plan) = read(Some(3)).await;
        assert!(plan.starts_with("InTurnExec"), "{plan}");
        assert!(first == all, "who goes on gets all");
    }
}
