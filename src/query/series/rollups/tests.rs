//! With rollups and without: the same answers, whatever pieces there are, late data, replacements and
//! deletions among them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Float64Array, Int8Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::physical_plan::displayable;
use futures::TryStreamExt as _;
use proptest::prelude::*;
use uuid::Uuid;

use crate::catalog::Catalog;
use crate::catalog::records::{Commit, PartitionChange, SeenSource};
use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::ids::{PersonId, PieceId, RecordId, SystemIds};
use crate::model::permit::{ListPermit, ReadPermit, Visible, Windows};
use crate::model::registry::{DataType as Metric, Registry, dictionary_text};
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::people::preferences::{SourceOrder, SourcesByRecency};
use crate::query::aggregate::{AggregateMeasure, AggregateSpec};
use crate::query::filter::{Condition, parse_all};
use crate::query::ground::operator::Plan;
use crate::query::series::rollups::RowsOrRollupsExec;
use crate::query::series::{AskedSeries, Calculation, Gaps, Measure, Ranking, SeriesExec, SeriesSpec};
use crate::query::statistic::Statistic;
use crate::query::test_engine::TestEngine;
use crate::query::{Order, Questions, TypedPartition};
use crate::store::arrange::{sort_rows, with_columns};
use crate::store::files::PieceFiles;
use crate::store::find::Finder;
use crate::store::piece::{PieceWriter, Target, write_batch};
use crate::store::snapshot::{PieceContent, Snapshot, Snapshots};
use crate::store::tail;

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 1440 * MINUTE;
/// 2024-03-30T00:00:00Z: the end of a month, and a day before clocks change in Europe.
const BEGIN: i64 = 1_711_756_800_000_000;

/// Decides about everything, in these tests.
struct Anybody;

#[derive(Clone, Debug)]
struct Sample {
    id: u128,
    start: i64,
    end: i64,
    value: f64,
    source: u8,
}

#[derive(Clone, Debug)]
struct Put {
    samples: Vec<Sample>,
    place: Place,
}

/// Where samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Tail,
    Object,
    /// An object that keeps rollups of them.
    WithRollups,
}

struct Bench {
    questions: Questions<Anybody>,
    catalog: Catalog,
    snapshots: Snapshots,
    files: PieceFiles,
    finder: Finder,
    person: PersonId,
    partition: TypedPartition,
    directory: tempfile::TempDir,
}

impl Bench {
    async fn new(metric: &Arc<Metric>) -> Self {
        let TestEngine {
            questions,
            catalog,
            snapshots,
            files,
            finder,
            directory,
        } = TestEngine::start().await;
        Self {
            questions,
            catalog,
            snapshots,
            files,
            finder,
            person: PersonId(Uuid::now_v7()),
            partition: TypedPartition::of(Arc::clone(metric)),
            directory,
        }
    }

    async fn snapshot(&self) -> Arc<Snapshot> {
        let types = std::slice::from_ref(&self.partition.id);
        self.snapshots.get(self.person, types).await.unwrap().remove(0)
    }

    /// Stores samples; those stored before under the same ids die.
    async fn put(&self, put: &Put) {
        let snapshot = self.snapshot().await;
        let mut by_id: HashMap<u128, &Sample> = HashMap::new();
        by_id.extend(put.samples.iter().map(|sample| (sample.id, sample)));
        let samples: Vec<&Sample> = by_id.into_values().collect();
        let batch =
            sort_rows(&with_columns(&batch(&samples), &self.partition.data_type.layout.storage).unwrap())
                .unwrap();
        let target = Target {
            person: self.person,
            data_type: self.partition.id.clone(),
            layout_version: 1,
        };
        let objects = self.files.objects();
        let add = match put.place {
            Place::Tail => vec![tail::piece(PieceId(Uuid::now_v7()), &batch, 1).unwrap()],
            Place::Object => write_batch(objects, &SystemIds::default(), target, &batch)
                .await
                .unwrap(),
            Place::WithRollups => {
                let ids = SystemIds::default();
                let writer = PieceWriter::new(objects, &ids, target, batch.schema());
                let mut writer = writer.keeping_rollups();
                writer.push(&batch).await.unwrap();
                writer.finish().await.unwrap()
            }
        };
        let ids: Vec<RecordId> = samples
            .iter()
            .map(|sample| RecordId(Uuid::from_u128(sample.id)))
            .collect();
        let stored = self.finder.live_rows_of(&snapshot, &ids).await.unwrap();
        let dead: Vec<_> = stored
            .into_iter()
            .flat_map(|part| part.ids.into_iter().map(move |id| (part.piece, id)))
            .collect();
        let change = PartitionChange {
            person: self.person,
            data_type: self.partition.id.clone(),
            expected: Some(snapshot.stamp),
            records_delta: add.iter().map(|piece| piece.rows).sum::<i64>() - dead.len() as i64,
            add,
            dead,
            updates: 1,
        };
        let sources = (0..4).map(|number| SeenSource {
            person: self.person,
            key: format!("source {number}"),
            name: None,
        });
        self.catalog
            .commit(Commit {
                changes: vec![change],
                sources: sources.collect(),
                ..Commit::default()
            })
            .await
            .unwrap();
    }

    async fn run(&self, plan: Plan) -> RecordBatch {
        let schema = plan.schema();
        let batches: Vec<RecordBatch> = self.questions.engine.start(plan).try_collect().await.unwrap();
        concat_batches(&schema, &batches).unwrap()
    }

    /// The series from rollups where they serve, and from rows alone; and whether rollups served.
    async fn both(&self, spec: &SeriesSpec, windows: &Windows) -> (RecordBatch, RecordBatch, bool) {
        let permit = ReadPermit::given(&Anybody, self.person, self.partition.id.clone(), windows.clone());
        let asked = || AskedSeries {
            permit: &permit,
            partition: &self.partition,
            conditions: &[],
            spec: spec.clone(),
            stages: None,
        };
        let with = self.questions.series(asked()).await.unwrap();
        let sources = SourcesByRecency::new(self.catalog.sources_of(self.person).await.unwrap());
        let order = SourceOrder::new(Arc::new(sources), &spec.chosen_sources);
        let rows = self
            .questions
            .series_rows(&asked(), &self.snapshot().await)
            .unwrap();
        let without = SeriesExec::new(
            rows,
            Arc::new(spec.clone()),
            windows.clone(),
            Arc::new(Ranking::new(order)),
        );
        let from_rollups = self.run(Arc::clone(&with.plan)).await;
        let from_rows = self.run(Arc::new(without)).await;
        (from_rollups, from_rows, was_made_from_rollups(&with.plan))
    }
}

/// Whether rollups took the place of rows when a plan ran.
fn was_made_from_rollups(plan: &Plan) -> bool {
    served_by_rollups(plan) > 0
}

/// In how many places of a plan they did.
fn served_by_rollups(plan: &Plan) -> usize {
    let below = plan
        .downcast_ref::<RowsOrRollupsExec>()
        .map(|rollups| rollups.below().unwrap());
    let text = below.map(|below| displayable(below.as_ref()).one_line().to_string());
    let here = text.is_some_and(|text| !text.contains("of rollups=0"));
    let inside = plan.children().into_iter().map(served_by_rollups);
    usize::from(here) + inside.sum::<usize>()
}

fn batch(samples: &[&Sample]) -> RecordBatch {
    let ids: Vec<[u8; 16]> = samples.iter().map(|sample| sample.id.to_be_bytes()).collect();
    let times = |of: fn(&Sample) -> i64| {
        let times = TimestampMicrosecondArray::from_iter_values(samples.iter().map(|sample| of(sample)));
        Arc::new(times.with_timezone("UTC")) as ArrayRef
    };
    let keys: StringArray = samples
        .iter()
        .map(|sample| Some(format!("source {}", sample.source % 4)))
        .collect();
    let classes: Int8Array = samples
        .iter()
        .map(|sample| Some(3 + (sample.source % 2) as i8))
        .collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            Arc::new(FixedSizeBinaryArray::try_from_iter(ids.into_iter()).unwrap()),
        ),
        ("start_time", times(|sample| sample.start)),
        ("end_time", times(|sample| sample.end)),
        (
            "value",
            Arc::new(
                samples
                    .iter()
                    .map(|sample| Some(sample.value))
                    .collect::<Float64Array>(),
            ),
        ),
        ("source", cast(&keys, &dictionary_text()).unwrap()),
        ("source_class", Arc::new(classes)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn metric(name: &str) -> Arc<Metric> {
    Arc::clone(Registry::builtin().unwrap().get(name).unwrap())
}

fn spec(metric: &Metric, grid: Grid, calculations: &[&str]) -> SeriesSpec {
    SeriesSpec {
        column: "value".to_owned(),
        grid,
        zone: Zone::UTC,
        measure: Measure::of(metric.metric.as_ref().unwrap()),
        calculations: calculations
            .iter()
            .map(|name| name.parse::<Calculation>().unwrap())
            .collect(),
        gaps: Gaps::default(),
        chosen_sources: Vec::new(),
    }
}

fn assert_same(with: &RecordBatch, without: &RecordBatch) {
    assert_eq!(with.num_rows(), without.num_rows());
    let times = |batch: &RecordBatch| {
        batch
            .column(0)
            .as_primitive::<TimestampMicrosecondType>()
            .values()
            .to_vec()
    };
    assert_eq!(times(with), times(without));
    for (one, other) in with.columns().iter().zip(without.columns()).skip(1) {
        if one.data_type() == &DataType::Int64 {
            assert_eq!(one.as_primitive::<Int64Type>(), other.as_primitive::<Int64Type>());
            continue;
        }
        let (one, other) = (
            one.as_primitive::<Float64Type>(),
            other.as_primitive::<Float64Type>(),
        );
        for row in 0..one.len() {
            assert_eq!(
                one.is_null(row),
                other.is_null(row),
                "row {row}: {one:?} {other:?}"
            );
            // What stands under a null is nobody's business.
            if one.is_null(row) {
                continue;
            }
            let (one, other) = (one.value(row), other.value(row));
            let close = (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0);
            assert!(close, "row {row}: {one} from rollups, {other} from rows");
        }
    }
}

/// A run of samples close to each other, as a device makes them; now and then one that lasts, or lasts long,
/// perhaps into a month in which none starts.
fn put(amounts: bool) -> impl Strategy<Value = Put> {
    let step = prop_oneof![Just(MINUTE), Just(3 * MINUTE + 7), Just(4 * MINUTE)];
    let odd = prop_oneof![
        12 => Just(0_i64),
        if amounts { 12 } else { 0 } => Just(5 * MINUTE + 11),
        1 => Just(40 * MINUTE),
        1 => Just(300 * MINUTE),
        u32::from(amounts) => Just(8 * DAY)
    ];
    let oddities = prop::collection::vec((odd, 0_i32..100, 0_u8..8), 30..160);
    let place = prop::sample::select(vec![Place::Tail, Place::Object, Place::WithRollups]);
    let first = prop_oneof![0_i64..2 * DAY, Just(DAY), Just(2 * DAY - 200 * MINUTE)];
    (first, step, oddities, place, 0_u128..3, 0_u8..4).prop_map(
        |(first, step, oddities, place, series, device)| {
            let samples = oddities
                .into_iter()
                .enumerate()
                .map(|(number, (length, value, other))| {
                    let start = BEGIN + first + number as i64 * step;
                    Sample {
                        // Series share ids, so that later ones replace rows of earlier ones.
                        id: series * 100 + number as u128,
                        start,
                        end: start + length,
                        value: f64::from(value) / 3.0,
                        source: if other == 7 { device + 1 } else { device },
                    }
                });
            Put {
                samples: samples.collect(),
                place,
            }
        },
    )
}

/// Objects of many samples a minute, one after the other, with minutes of silence within and between them.
fn dense() -> impl Strategy<Value = Vec<Put>> {
    let silence = prop_oneof![6 => Just(0_i64), 1 => 1_i64..3 * MINUTE, 1 => 3 * MINUTE..40 * MINUTE];
    let step = prop::sample::select(vec![MINUTE / 4, MINUTE / 6, MINUTE / 7 + 3]);
    let samples = prop::collection::vec((silence, 0_i32..100), 20..600);
    let place = prop::sample::select(vec![Place::Object, Place::WithRollups]);
    let piece = (step, samples, place, 0_u8..2);
    (0_i64..DAY, prop::collection::vec(piece, 1..4)).prop_map(|(first, pieces)| {
        let (mut start, mut id) = (BEGIN + first, 0);
        let pieces = pieces.into_iter().map(|(step, samples, place, source)| {
            let samples = samples.into_iter().map(|(silence, value)| {
                start += step + silence;
                id += 1;
                Sample {
                    id,
                    start,
                    end: start,
                    value: f64::from(value) / 3.0,
                    source,
                }
            });
            let samples = samples.collect();
            start += MINUTE;
            Put { samples, place }
        });
        pieces.collect()
    })
}

fn windows() -> impl Strategy<Value = Windows> {
    let edge = prop_oneof![
        (0_i64..300).prop_map(|quarters| quarters * 15 * MINUTE),
        0_i64..3 * DAY
    ];
    prop::collection::vec((edge.clone(), edge), 1..3).prop_map(|pairs| {
        let range = |(one, other): (i64, i64)| {
            let (from, to) = (BEGIN + one.min(other), BEGIN + one.max(other));
            TimeRange::new(Instant::from_micros(from), Instant::from_micros(to))
        };
        Windows::new(pairs.into_iter().filter_map(range))
    })
}

fn grid(kind: u8) -> Grid {
    let range = TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap();
    let calendar = |text: &str, zone: &str| {
        Truncation::parse(text)
            .unwrap()
            .grid(&Zone::parse(zone).unwrap(), range)
    };
    match kind {
        0 => Grid::uniform(range, 60 * MINUTE),
        1 => Grid::uniform(range, MINUTE),
        2 => calendar("1d", "Europe/Berlin"),
        3 => calendar("1h", "Asia/Kathmandu"),
        _ => calendar("1w", "America/New_York"),
    }
}

/// `asked`: one after the other, so that later ones find what was made for earlier ones.
fn compare(name: &str, puts: &[Put], asked: &[Windows], kind: u8, calculations: &[&str]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let metric = metric(name);
        let bench = Bench::new(&metric).await;
        for put in puts {
            bench.put(put).await;
        }
        let spec = spec(&metric, grid(kind), calculations);
        for windows in asked.iter().chain(asked) {
            let (with, without, _) = bench.both(&spec, windows).await;
            assert_same(&with, &without);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn levels_are_the_same_with_and_without_rollups(
        puts in prop::collection::vec(put(false), 1..5),
        asked in prop::collection::vec(windows(), 1..4),
        kind in 0_u8..5
    ) {
        compare(
            "HeartRate",
            &puts,
            &asked,
            kind,
            &["max", "min", "delta", "mean", "rollingmean", "count", "sum"],
        );
        compare("HeartRate", &puts, &asked, kind, &[]);
    }

    #[test]
    fn minutes_of_dense_levels_are_the_same_with_and_without_rollups(
        puts in dense(), asked in prop::collection::vec(windows(), 1..4),
        kind in prop_oneof![3 => Just(1_u8), 1 => 0_u8..5]
    ) {
        compare("HeartRate", &puts, &asked, kind, &[]);
    }

    #[test]
    fn amounts_are_the_same_with_and_without_rollups(
        puts in prop::collection::vec(put(true), 1..5),
        asked in prop::collection::vec(windows(), 1..4), kind in 0_u8..5
    ) {
        compare("StepCount", &puts, &asked, kind, &[]);
        compare("AlcoholicDrinksConsumed", &puts, &asked, kind, &[]);
    }
}

#[test]
fn rule_1_5a_a_level_that_lasts_from_one_window_into_the_next_is_one_point() {
    let sample = |id: u128, minute: i64, minutes: i64, value: f64| Sample {
        id,
        start: BEGIN + minute * MINUTE,
        end: BEGIN + (minute + minutes) * MINUTE,
        value,
        source: 0,
    };
    let samples = (0..600).map(|number| sample(number as u128, number, 0, 60.0));
    let watched = Put {
        samples: samples.collect(),
        place: Place::WithRollups,
    };
    let lasting = Put {
        samples: vec![sample(1_000, 10, 40, 90.0)],
        place: Place::Tail,
    };
    let window = |from: i64, to: i64| {
        let moment = |minute: i64| Instant::from_micros(BEGIN + minute * MINUTE);
        TimeRange::new(moment(from), moment(to)).unwrap()
    };
    let seen = Windows::new([window(5, 30), window(40, 2 * 1440)]);
    compare("HeartRate", &[watched, lasting], &[seen], 2, &["mean", "count"]);
}

/// Levels of the last two days of March, the last of which lasts into April.
fn into_april(lasts: i64, place: Place) -> Put {
    let mut put = device(0, 2 * 1440, MINUTE, 0, 1, place);
    if let Some(last) = put.samples.last_mut() {
        last.end += lasts;
    }
    put
}

fn after_begin(from: i64, to: i64) -> Windows {
    let moment = |at: i64| Instant::from_micros(BEGIN + at);
    Windows::new(TimeRange::new(moment(from), moment(to)))
}

#[test]
fn rule_1_5a_a_level_that_lasts_into_a_month_without_rows_is_a_point_there() {
    let april = 2 * DAY;
    // From the first of the month on, and across it to a moment within an hour: each is asked on its own, so
    // that neither finds what was made for the other.
    let asked = [
        [after_begin(april, april + DAY)],
        [after_begin(april - 120 * MINUTE, april + 150 * MINUTE)],
    ];
    for place in [Place::Object, Place::WithRollups] {
        let puts = [into_april(240 * MINUTE, place)];
        for asked in &asked {
            for kind in 0..5 {
                compare("HeartRate", &puts, asked, kind, &["count", "sum"]);
            }
            compare_periods("HeartRate", &puts, &asked[0], "UTC", &Statistic::ALL);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_1_5b_a_level_that_lasts_over_months_is_one_point_of_each_window() {
    let (april, may, june) = (2 * DAY, 32 * DAY, 63 * DAY);
    let asked = [
        after_begin(april, may),
        after_begin(may, june),
        after_begin(june, june + 5 * DAY),
        after_begin(april + 10 * DAY, june + 2 * DAY + 90),
        after_begin(april - DAY, june + 90),
        after_begin(0, june + 20 * DAY),
    ];
    let metric = metric("HeartRate");
    let grid = |width: i64| {
        let all = after_begin(0, june + 27 * DAY);
        Grid::uniform(all.as_slice()[0], width)
    };
    for (place, lasts) in [
        (Place::Object, 0),
        (Place::WithRollups, 0),
        (Place::Object, 80 * DAY + 7 * MINUTE),
        (Place::WithRollups, 80 * DAY + 7 * MINUTE),
    ] {
        let bench = Bench::new(&metric).await;
        // None start in April, many in May, and none in June.
        let mut put = into_april(lasts, place);
        let in_may = device(50 * DAY, 2 * 1440, MINUTE, 0, 2, place);
        put.samples.extend(in_may.samples);
        bench.put(&put).await;
        for width in [60 * MINUTE, DAY] {
            let spec = spec(&metric, grid(width), &["count", "sum"]);
            for windows in &asked {
                let (with, without, has_rollups) = bench.both(&spec, windows).await;
                assert_same(&with, &without);
                // Nothing is stored of June, unless the level lasts into it.
                let is_stored = windows.as_slice()[0].start().micros() < BEGIN + june;
                assert_eq!(
                    has_rollups,
                    lasts == 0 && is_stored,
                    "{place:?} {lasts} {windows:?}"
                );
            }
        }

        // The level is corrected and lasts no longer: its object has it as a dead row.
        let mut corrected = into_april(0, Place::Tail);
        corrected.samples.drain(..2 * 1440 - 1);
        bench.put(&corrected).await;
        for windows in &asked {
            let spec = spec(&metric, grid(60 * MINUTE), &["count", "sum"]);
            let (with, without, _) = bench.both(&spec, windows).await;
            assert_same(&with, &without);
        }
    }
}

/// By the starts of samples, in days of a zone: from rollups, and from rows, which a condition that all meet
/// forces to be read. In how many places of the plan rollups served.
fn compare_periods(
    name: &str,
    puts: &[Put],
    windows: &Windows,
    zone: &str,
    functions: &[Statistic],
) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let metric = metric(name);
        let bench = Bench::new(&metric).await;
        for put in puts {
            bench.put(put).await;
        }
        let Some(window) = windows.as_slice().first().copied() else {
            return 0;
        };
        let permit = ReadPermit::given(&Anybody, bench.person, metric.id.clone(), Windows::new([window]));
        let spec = |conditions: Vec<Condition>| AggregateSpec {
            conditions,
            range: window,
            periods: Truncation::parse("1d").unwrap(),
            zone: Zone::parse(zone).unwrap(),
            measure: AggregateMeasure::Values(functions.to_vec()),
            group: Vec::new(),
            order: Order::Ascending,
            chosen_sources: Vec::new(),
            most_cells: u64::MAX,
        };
        let all_meet = parse_all(&["value>=-1".to_owned()]).unwrap();
        let partitions = std::slice::from_ref(&bench.partition);
        let with = bench
            .questions
            .aggregate(&permit, partitions, &spec(Vec::new()))
            .await
            .unwrap();
        let without = bench
            .questions
            .aggregate(&permit, partitions, &spec(all_meet))
            .await
            .unwrap();
        let from_rollups = bench.run(Arc::clone(&with.plan)).await;
        assert_same(&from_rollups, &bench.run(without.plan).await);
        served_by_rollups(&with.plan)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn periods_are_the_same_with_and_without_rollups(
        puts in prop::collection::vec(put(false), 1..5), windows in windows(),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
    ) {
        compare_periods("HeartRate", &puts, &windows, zone, &Statistic::ALL);
        compare_periods("StepCount", &puts, &windows, zone, &Statistic::ALL);
    }
}

#[test]
fn periods_are_made_from_rollups_where_one_piece_is_alone() {
    let all =
        Windows::new([
            TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap(),
        ]);
    let served = |name: &str, puts: &[Put], functions: &[Statistic]| {
        compare_periods(name, puts, &all, "Europe/Berlin", functions)
    };
    let puts = [device(0, 3000, MINUTE, 20 * MINUTE, 1, Place::Object)];
    assert_eq!(served("HeartRate", &puts, &[Statistic::Avg, Statistic::Max]), 1);
    let puts = [device(0, 3000, MINUTE, MINUTE / 2, 1, Place::Object)];
    assert_eq!(served("StepCount", &puts, &[Statistic::Sum]), 1);
    // Sums come from what falls into a day, the others from the samples that start in it.
    assert_eq!(served("StepCount", &puts, &Statistic::ALL), 2);
}

#[test]
fn levels_of_pieces_that_overlap_are_told_from_the_rollups_of_each() {
    let all =
        Windows::new([
            TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap(),
        ]);
    let puts = [
        device(0, 3000, MINUTE, 0, 1, Place::Object),
        device(30, 3000, MINUTE, 0, 2, Place::WithRollups),
        device(DAY, 50, 2 * MINUTE + 3, 0, 3, Place::Tail),
    ];
    let served =
        |name: &str, functions: &[Statistic]| compare_periods(name, &puts, &all, "Europe/Berlin", functions);
    assert_eq!(served("HeartRate", &[Statistic::Avg, Statistic::Max]), 2);
    assert_eq!(served("StepCount", &[Statistic::Avg, Statistic::Max]), 2);
    assert_eq!(
        served("StepCount", &[Statistic::Sum]),
        0,
        "amounts of several pieces compete with each other"
    );
}

fn device(first: i64, count: i64, every: i64, length: i64, series: u128, place: Place) -> Put {
    let samples = (0..count).map(|number| Sample {
        id: series * 100_000 + number as u128,
        start: BEGIN + first + number * every,
        end: BEGIN + first + number * every + length,
        value: (number % 17) as f64,
        source: series as u8,
    });
    Put {
        samples: samples.collect(),
        place,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_serve_where_one_piece_is_alone_and_late_data_is_seen_at_once() {
    for (name, length) in [("HeartRate", 0), ("StepCount", 3 * MINUTE)] {
        let metric = metric(name);
        let bench = Bench::new(&metric).await;
        let spec = spec(&metric, grid(2), &[]);
        let all = Windows::new([TimeRange::new(
            Instant::from_micros(BEGIN),
            Instant::from_micros(BEGIN + 3 * DAY),
        )
        .unwrap()]);
        bench
            .put(&device(0, 3000, MINUTE, length, 1, Place::Object))
            .await;
        let (with, without, has_rollups) = bench.both(&spec, &all).await;
        assert!(has_rollups, "{name}");
        assert_same(&with, &without);

        // Late data of a better source (worn before phone) in the middle, in the tail.
        bench
            .put(&device(DAY, 50, 2 * MINUTE + 3, length, 2, Place::Tail))
            .await;
        let (after, without, has_rollups) = bench.both(&spec, &all).await;
        assert!(has_rollups, "{name}");
        assert_same(&after, &without);
        assert_ne!(after, with, "{name}: late data makes a difference");

        // A row replaced: the piece has a dead row. Where that was its rows are read, of levels; amounts
        // compete with it wherever it reached.
        let mut replaced = device(0, 1, MINUTE, length, 1, Place::Tail);
        replaced.samples[0].value = 1000.0;
        bench.put(&replaced).await;
        let (again, without, has_rollups) = bench.both(&spec, &all).await;
        assert_eq!(has_rollups, name == "HeartRate", "{name}");
        assert_same(&again, &without);
        assert_ne!(again, after, "{name}: the row counts with its new value");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_serve_for_one_row_each_where_these_are_many_amounts() {
    for (name, length, rows, serve) in [
        ("HeartRate", 0, 5000, false),
        ("StepCount", 10 * MINUTE, 5000, true),
        ("StepCount", 10 * MINUTE, 4000, false),
    ] {
        let metric = metric(name);
        let bench = Bench::new(&metric).await;
        let quarters = device(0, rows, 15 * MINUTE, length, 1, Place::Object);
        bench.put(&quarters).await;
        let [from, until] = [15 * MINUTE, 40 * DAY].map(|at| Instant::from_micros(BEGIN + at));
        let asked = TimeRange::new(from, until).unwrap();
        let spec = spec(&metric, Grid::uniform(asked, 60 * MINUTE), &[]);
        let (with, without, has_rollups) = bench.both(&spec, &Windows::new([asked])).await;
        assert_eq!(has_rollups, serve, "{name}, {rows}");
        assert_same(&with, &without);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_of_a_piece_is_told_without_its_dead_rows() {
    let bench = Bench::new(&metric("HeartRate")).await;
    bench.put(&device(0, 3000, MINUTE, 0, 1, Place::Object)).await;
    let range = TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap();
    let listing = || ListPermit::given(&Anybody, bench.person, Visible::EveryType(Windows::new([range])));
    let moved = |number: i64, to: i64| Put {
        samples: vec![Sample {
            id: 100_000 + number as u128,
            start: BEGIN + to,
            end: BEGIN + to,
            value: 1.0,
            source: 1,
        }],
        place: Place::Tail,
    };
    // One in the middle, which leaves the bounds as they are; then the first and the last, which do not.
    for (put, first, last) in [
        (moved(1500, 90), 0, 2999 * MINUTE),
        (moved(0, 100), 90, 2999 * MINUTE),
        (moved(2999, 110), 90, 2998 * MINUTE),
    ] {
        bench.put(&put).await;
        let found = bench.questions.available(&listing(), range).await.unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.records, one.first_start.micros(), one.last_end.micros()))
            .collect();
        assert_eq!(found, [(3000, BEGIN + first, BEGIN + last)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_the_same_whatever_part_of_it_was_asked_for_first() {
    let hour = 60 * MINUTE;
    let between = |from: i64, to: i64| {
        let (from, to) = (
            Instant::from_micros(BEGIN + from),
            Instant::from_micros(BEGIN + to),
        );
        Windows::new(TimeRange::new(from, to))
    };
    for (name, length) in [("HeartRate", 0), ("StepCount", 3 * MINUTE)] {
        let metric = metric(name);
        let bench = Bench::new(&metric).await;
        bench
            .put(&device(0, 3000, MINUTE, length, 1, Place::Object))
            .await;
        let spec = spec(&metric, grid(2), &[]);
        for windows in [between(6 * hour, 30 * hour), between(0, 3 * DAY)] {
            let (with, without, has_rollups) = bench.both(&spec, &windows).await;
            assert!(has_rollups, "{name}");
            assert_same(&with, &without);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_that_last_from_rollup_to_rollup_are_read_as_rows() {
    let metric = metric("HeartRate");
    let bench = Bench::new(&metric).await;
    bench
        .put(&device(0, 3000, MINUTE, 20 * MINUTE, 0, Place::Object))
        .await;
    let all =
        Windows::new([
            TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap(),
        ]);
    let (with, without, has_rollups) = bench.both(&spec(&metric, grid(0), &["count"]), &all).await;
    assert!(!has_rollups);
    assert_same(&with, &without);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_keeps_is_answered_without_reading_its_rows() {
    let metric = metric("HeartRate");
    let bench = Bench::new(&metric).await;
    bench
        .put(&device(0, 30_000, MINUTE / 10, 0, 1, Place::WithRollups))
        .await;
    let snapshot = bench.snapshot().await;
    let PieceContent::Object(place) = &snapshot.pieces[0].content else {
        panic!("not an object")
    };
    let path = bench.directory.path().join("objects").join(&*place.path);
    let mut bytes = std::fs::read(&path).unwrap();
    let file = bench.files.open(place).await.unwrap();
    for column in file.metadata().row_group(0).columns() {
        let (start, length) = column.byte_range();
        bytes[(start + length / 2) as usize] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let range = TimeRange::new(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + 3 * DAY)).unwrap();
    let permit = ReadPermit::given(&Anybody, bench.person, metric.id.clone(), Windows::new([range]));
    for (grid, calculation, is_kept) in [
        (grid(0), "mean", true),
        (grid(1), "max", true),
        (grid(0), "median", false),
    ] {
        let asked = AskedSeries {
            permit: &permit,
            partition: &bench.partition,
            conditions: &[],
            spec: spec(&metric, grid, &[calculation]),
            stages: None,
        };
        let series = bench.questions.series(asked).await.unwrap();
        let rows = bench.questions.engine.start(series.plan);
        let rows: Result<Vec<RecordBatch>, _> = rows.try_collect().await;
        assert_eq!(rows.is_ok(), is_kept, "{calculation}");
    }
}
