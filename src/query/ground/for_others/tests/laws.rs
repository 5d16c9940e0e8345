//! The property itself, for each question.

use std::sync::Arc;

use proptest::prelude::*;

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::query::Order;
use crate::query::aggregate::{AggregateMeasure, AggregateSpec};
use crate::query::attached::Reach;
use crate::query::filter::parse_all;
use crate::query::places::LocationSource;
use crate::query::places::at_time::AtTimeSpec;
use crate::query::places::calendar::{DAY_MARGIN, EVENT_COLUMNS};
use crate::query::places::raw::RawSpec;
use crate::query::places::series::PlaceSeriesSpec;
use crate::query::places::stays;
use crate::query::places::updates::Updates;
use crate::query::places::widened;
use crate::query::places::workouts::{WORKOUT_COLUMNS, WORKOUT_DEFAULTS};
use crate::query::records::RecordsSpec;
use crate::query::series::{AskedSeries, Calculation, Gaps, Measure, SeriesSpec};
use crate::query::shape::IdForm;
use crate::query::sleep::StageTable;
use crate::query::sleep::spec::{CyclesSpec, Mode, Question, SleepTotalsSpec, StagesSpec};
use crate::query::statistic::Statistic;

use super::bench::{Anybody, Bench, View, assert_same, range};
use super::given::{
    AMOUNT, BEGIN, CALENDAR, DAY, EVENTS, GivenRow, HOUR, LEVEL, LOGGED, MAPS, MINUTE, SLEEP, UPDATES,
    VISITS, WORKOUTS, cut, moment, pieces, resolved, windows,
};

type AnswerRows = Vec<Vec<(String, String)>>;

/// Asks the same of what is shared and of a copy that holds only that.
struct Compared {
    bench: Bench,
    shared: View,
    granted: Windows,
    rows: Vec<(&'static str, Vec<Vec<GivenRow>>)>,
}

impl Compared {
    async fn new(rows: Vec<(&'static str, Vec<Vec<GivenRow>>)>, granted: Windows) -> Self {
        let bench = Bench::new().await;
        let owner = bench.person(&rows).await;
        Self {
            bench,
            shared: View::Shared(owner, granted.clone()),
            granted,
            rows,
        }
    }

    /// The owner of a copy that holds what is left of each type in a range of its own.
    async fn copy(&self, ranges: &[(&str, TimeRange)]) -> View {
        self.copy_made_by(ranges, cut).await
    }

    async fn copy_made_by(
        &self,
        ranges: &[(&str, TimeRange)],
        made: fn(&str, &[GivenRow], &Windows) -> Vec<GivenRow>,
    ) -> View {
        let left = self.rows.iter().filter_map(|(name, pieces)| {
            let (_, range) = ranges.iter().find(|(asked, _)| asked == name)?;
            let rows: Vec<GivenRow> = pieces.iter().flatten().cloned().collect();
            // In the tail, so that the copy is answered from rows.
            Some((
                *name,
                vec![Vec::new(), made(name, &rows, &self.granted.within(*range))],
            ))
        });
        View::Own(self.bench.person(&left.collect::<Vec<_>>()).await)
    }

    async fn records(&self, view: &View, name: &str, asked: TimeRange, spec: &RecordsSpec) -> AnswerRows {
        let permit = view.permit(name, asked);
        let partitions = [self.bench.partition(name)];
        let prepared = self
            .bench
            .questions
            .records(&permit, &partitions, spec)
            .await
            .unwrap();
        self.bench.told(prepared).await
    }

    fn series_spec(&self, name: &str, grid: Grid, calculations: &[&str]) -> SeriesSpec {
        SeriesSpec {
            column: "value".to_owned(),
            grid,
            zone: Zone::UTC,
            measure: Measure::of(self.bench.data_type(name).metric.as_ref().unwrap()),
            calculations: calculations
                .iter()
                .map(|name| name.parse::<Calculation>().unwrap())
                .collect(),
            gaps: Gaps::default(),
            chosen_sources: Vec::new(),
        }
    }

    fn stages(&self) -> Arc<StageTable> {
        Arc::new(StageTable::new(self.bench.registry.sleep_stages()))
    }

    async fn series(&self, view: &View, name: &str, asked: TimeRange, spec: &SeriesSpec) -> AnswerRows {
        self.series_from(view, name, asked, spec, None).await
    }

    async fn series_from(
        &self,
        view: &View,
        name: &str,
        asked: TimeRange,
        spec: &SeriesSpec,
        moment: Option<Instant>,
    ) -> AnswerRows {
        let permit = view.permit(name, asked);
        let partition = self.bench.partition(name);
        let spec = SeriesSpec {
            chosen_sources: self.bench.sources(view.person()).await,
            ..spec.clone()
        };
        let asked = AskedSeries {
            permit: &permit,
            partition: &partition,
            conditions: &[],
            spec,
            stages: (name == SLEEP).then(|| self.stages()),
        };
        let prepared = self.bench.questions.series_from(asked, moment).await.unwrap();
        self.bench.told(prepared).await
    }

    async fn aggregate(&self, view: &View, name: &str, asked: TimeRange, spec: &AggregateSpec) -> AnswerRows {
        let permit = view.permit(name, asked);
        let partitions = [self.bench.partition(name)];
        let prepared = self
            .bench
            .questions
            .aggregate(&permit, &partitions, spec)
            .await
            .unwrap();
        self.bench.told(prepared).await
    }

    fn updates(&self, view: &View, asked: TimeRange) -> Vec<Updates<Anybody>> {
        LocationSource::ALL
            .map(|source| Updates {
                source,
                granted: self.bench.granted(view, source.updates(), asked),
            })
            .into()
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

fn grid(kind: u8, range: TimeRange) -> Grid {
    let calendar = |text: &str, zone: &str| {
        Truncation::parse(text)
            .unwrap()
            .grid(&Zone::parse(zone).unwrap(), range)
    };
    match kind {
        0 => Grid::uniform(range, HOUR),
        1 => Grid::uniform(range, 15 * MINUTE),
        2 => calendar("1d", "Europe/Berlin"),
        _ => calendar("1h", "Asia/Kathmandu"),
    }
}

fn records_spec(order: Order, limit: Option<usize>, filter: &[&str]) -> RecordsSpec {
    let filters: Vec<String> = filter.iter().map(|filter| (*filter).to_owned()).collect();
    RecordsSpec {
        conditions: parse_all(&filters).unwrap(),
        order,
        ids: IdForm::Text,
        limit,
        after: None,
        columns: None,
    }
}

async fn compare_records(name: &'static str, rows: Vec<Vec<GivenRow>>, granted: Windows, asked: TimeRange) {
    let compared = Compared::new(vec![(name, rows)], granted).await;
    let copy = compared.copy(&[(name, asked)]).await;
    let mut specs = vec![
        records_spec(Order::Ascending, None, &[]),
        records_spec(Order::Descending, None, &[]),
        records_spec(Order::Descending, Some(1), &[]),
    ];
    if name == LEVEL || name == AMOUNT {
        specs.push(records_spec(Order::Ascending, None, &["value>=2.5"]));
        specs.push(records_spec(Order::Ascending, None, &["count>=3"]));
    }
    for spec in &specs {
        let shared = compared.records(&compared.shared, name, asked, spec).await;
        let expected = compared.records(&copy, name, asked, spec).await;
        assert_same(&format!("{name} {spec:?}"), &shared, &expected);
    }
    let partitions = [compared.bench.partition(name)];
    let questions = &compared.bench.questions;
    let mut summaries = Vec::new();
    let mut latest = Vec::new();
    let mut available = Vec::new();
    for view in [&compared.shared, &copy] {
        let permit = view.permit(name, asked);
        summaries.push(questions.summary(&permit, &partitions, &[]).await.unwrap());
        let spec = records_spec(Order::Descending, Some(1), &[]);
        let found = questions.latest_record(&permit, &partitions, &spec, asked).await;
        let (prepared, seen) = found.unwrap();
        latest.push((seen.summary.last_start, compared.bench.told(prepared).await));
        available.push(questions.available(&view.listing(asked), asked).await.unwrap());
    }
    assert_eq!(summaries[0], summaries[1], "{name} summary");
    assert_eq!(latest[0], latest[1], "{name} latest");
    assert_eq!(available[0], available[1], "{name} available");
}

/// Asks as of several moments, for a range that ends then and for the last record. What is seen of the range
/// tells the answers apart.
async fn compare_moments(name: &'static str, rows: Vec<Vec<GivenRow>>, granted: Windows, asked: TimeRange) {
    let compared = Compared::new(vec![(name, rows)], granted).await;
    let partitions = [compared.bench.partition(name)];
    let questions = &compared.bench.questions;
    let spec = records_spec(Order::Ascending, None, &[]);
    let (mut of_range, mut of_last) = (Vec::new(), Vec::new());
    for step in 0..12 {
        let later = |moment: Instant| moment.micros() + step * 3 * HOUR;
        let moving = range(later(asked.start()), later(asked.end()));
        let permit = compared.shared.permit(name, moving);
        let page = questions.moving_page_of_records(&permit, &partitions, &spec, moving);
        let (prepared, _, seen) = page.await.unwrap();
        let tag = (seen, prepared.scope.clone());
        of_range.push((tag, compared.bench.told(prepared).await));
        let until = TimeRange::between(Instant::MIN, moving.end());
        let permit = compared.shared.permit(name, TimeRange::ALWAYS).within(until);
        let last = questions.latest_record(&permit, &partitions, &spec, until);
        let (prepared, seen) = last.await.unwrap();
        let tag = (seen, prepared.scope.clone());
        of_last.push((tag, compared.bench.told(prepared).await));
    }
    for answers in [of_range, of_last] {
        for (later, (tag, told)) in answers.iter().enumerate() {
            for (earlier_tag, earlier_told) in answers.iter().take(later) {
                assert!(tag != earlier_tag || told == earlier_told, "{name} {tag:?}");
            }
        }
    }
}

fn asked() -> impl Strategy<Value = TimeRange> {
    (moment(), moment()).prop_map(|(one, other)| range(one, other))
}

fn aggregate_spec(asked: TimeRange, measure: AggregateMeasure, group: &[&str], zone: &str) -> AggregateSpec {
    AggregateSpec {
        conditions: Vec::new(),
        range: asked,
        periods: Truncation::HOURS,
        zone: Zone::parse(zone).unwrap(),
        measure,
        group: group.iter().map(|name| (*name).to_owned()).collect(),
        order: Order::Ascending,
        chosen_sources: Vec::new(),
        most_cells: u64::MAX,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rule_9_2c_raw_rows_are_those_of_a_cut_copy(
        levels in pieces(LEVEL),
        amounts in pieces(AMOUNT),
        visits in pieces(VISITS),
        workouts in pieces(WORKOUTS),
        events in pieces(EVENTS),
        granted in windows(),
        asked in asked()
    ) {
        run(async {
            for (name, rows) in [
                (LEVEL, levels),
                (AMOUNT, amounts),
                (VISITS, visits),
                (WORKOUTS, workouts),
                (EVENTS, events),
            ] {
                compare_records(name, rows, granted.clone(), asked).await;
            }
        });
    }

    #[test]
    fn what_is_seen_of_a_moving_range_tells_its_answers_apart(
        amounts in pieces(AMOUNT), visits in pieces(VISITS), events in pieces(EVENTS), granted in windows(),
        asked in asked()
    ) {
        run(async {
            for (name, rows) in [(AMOUNT, amounts), (VISITS, visits), (EVENTS, events)] {
                compare_moments(name, rows, granted.clone(), asked).await;
            }
        });
    }

    #[test]
    fn rule_9_2c_series_are_those_of_a_cut_copy(
        levels in pieces(LEVEL), amounts in pieces(AMOUNT), logged in pieces(LOGGED), granted in windows(),
        asked in asked(), kind in 0_u8..4
    ) {
        run(async {
            let rows = vec![(LEVEL, levels), (AMOUNT, amounts), (LOGGED, logged)];
            let compared = Compared::new(rows, granted).await;
            let copy = compared.copy(&[(LEVEL, asked), (AMOUNT, asked), (LOGGED, asked)]).await;
            let questions: [(&str, &[&str]); 6] = [
                (LEVEL, &[]),
                (LEVEL, &["max", "min", "delta", "mean", "rollingmean", "count", "sum"]),
                (LEVEL, &["first", "last", "allpoints", "uniques", "median"]),
                (AMOUNT, &[]),
                (AMOUNT, &["count"]),
                (LOGGED, &[]),
            ];
            // Twice: the second time from what is in memory.
            for (name, calculations) in questions.into_iter().chain(questions) {
                let spec = compared.series_spec(name, grid(kind, asked), calculations);
                let shared = compared.series(&compared.shared, name, asked, &spec).await;
                let expected = compared.series(&copy, name, asked, &spec).await;
                assert_same(&format!("{name} {calculations:?}"), &shared, &expected);
            }
            let mut grouped = Vec::new();
            for view in [&compared.shared, &copy] {
                let order = compared.bench.sources(view.person()).await;
                let permits = [LEVEL, AMOUNT, LOGGED].map(|name| view.permit(name, asked));
                let partitions = [LEVEL, AMOUNT, LOGGED].map(|name| compared.bench.partition(name));
                let series = permits.iter().zip(&partitions).map(|(permit, partition)| AskedSeries {
                    permit,
                    partition,
                    conditions: &[],
                    spec: SeriesSpec {
                        chosen_sources: order.clone(),
                        ..compared.series_spec(partition.id.as_str(), grid(kind, asked), &[])
                    },
                    stages: None,
                });
                let prepared = compared.bench.questions.series_grouped(series.collect()).await.unwrap();
                grouped.push(compared.bench.told(prepared).await);
            }
            assert_same("side by side", &grouped[0], &grouped[1]);
        });
    }

    #[test]
    fn the_later_bins_of_a_series_are_the_same_without_the_earlier_ones(
        levels in pieces(LEVEL),
        amounts in pieces(AMOUNT),
        logged in pieces(LOGGED),
        granted in windows(),
        asked in asked(),
        kind in 0_u8..4,
        moment in moment()
    ) {
        run(async {
            let rows = vec![(LEVEL, levels), (AMOUNT, amounts), (LOGGED, logged)];
            let compared = Compared::new(rows, granted).await;
            let own = View::Own(compared.shared.person());
            let moment = Instant::from_micros(moment);
            let questions: [(&str, &[&str], bool); 5] = [
                (LEVEL, &[], true),
                (
                    LEVEL,
                    &["max", "mean", "first", "last", "allpoints", "median", "count"],
                    true,
                ),
                (LEVEL, &["rollingmean"], false),
                (AMOUNT, &[], false),
                (LOGGED, &[], true),
            ];
            for (view, (name, calculations, stand_alone)) in [&compared.shared, &own]
                .into_iter()
                .flat_map(|view| questions.map(|question| (view, question)))
            {
                let spec = compared.series_spec(name, grid(kind, asked), calculations);
                let whole = compared.series(view, name, asked, &spec).await;
                let rest = compared.series_from(view, name, asked, &spec, Some(moment)).await;
                let bins = if stand_alone {
                    spec.grid.starting(moment).len()
                } else {
                    spec.grid.len()
                };
                assert_eq!(rest.len() as u64, bins, "{name} {calculations:?}");
                let (_, later) = whole.split_at(whole.len() - rest.len());
                assert_same(&format!("{name} {calculations:?} {view:?}"), &rest, later);
            }
        });
    }

    #[test]
    fn rule_9_2c_periods_are_those_of_a_cut_copy(
        levels in pieces(LEVEL),
        amounts in pieces(AMOUNT),
        logged in pieces(LOGGED),
        events in pieces(EVENTS),
        granted in windows(),
        asked in asked(),
        zone in prop::sample::select(vec!["UTC", "Asia/Kathmandu"])
    ) {
        run(async {
            let rows = vec![
                (LEVEL, levels),
                (AMOUNT, amounts),
                (LOGGED, logged),
                (EVENTS, events),
            ];
            let compared = Compared::new(rows, granted).await;
            let ranges = [LEVEL, AMOUNT, LOGGED, EVENTS].map(|name| (name, asked));
            let copy = compared.copy(&ranges).await;
            let all = || AggregateMeasure::Values(Statistic::ALL.to_vec());
            let sum = || AggregateMeasure::Values(vec![Statistic::Sum]);
            let range_only =
                || AggregateMeasure::Values(vec![Statistic::Avg, Statistic::Min, Statistic::Max]);
            let questions: [(&str, AggregateMeasure, &[&str]); 9] = [
                (LEVEL, all(), &[]),
                (LEVEL, AggregateMeasure::Count, &["has_undetermined_duration"]),
                (AMOUNT, all(), &[]),
                (AMOUNT, range_only(), &[]),
                (AMOUNT, sum(), &[]),
                (AMOUNT, sum(), &["has_undetermined_duration"]),
                (LOGGED, sum(), &[]),
                (LOGGED, sum(), &["has_undetermined_duration"]),
                (EVENTS, AggregateMeasure::Count, &[]),
            ];
            for (name, measure, group) in questions.clone().into_iter().chain(questions) {
                let question = format!("{name} {measure:?} {group:?}");
                let mut spec = aggregate_spec(asked, measure, group, zone);
                let mut answers = Vec::new();
                for view in [&compared.shared, &copy] {
                    let order = compared.bench.sources(view.person()).await;
                    spec.chosen_sources = vec![(TypeId::new(name), order)];
                    answers.push(compared.aggregate(view, name, asked, &spec).await);
                }
                let (shared, expected) = (answers.swap_remove(0), answers.swap_remove(0));
                assert_same(&question, &shared, &expected);
            }
        });
    }

    #[test]
    fn rule_9_2c_sleep_is_that_of_a_cut_copy_with_the_recorded_winners(
        slept in pieces(SLEEP),
        levels in pieces(LEVEL),
        amounts in pieces(AMOUNT),
        granted in windows(),
        asked in asked(),
        clip in any::<bool>(),
        before in 0..2 * HOUR,
        after in 0..2 * HOUR
    ) {
        run(async {
            let rows = vec![(SLEEP, slept), (LEVEL, levels), (AMOUNT, amounts)];
            let compared = Compared::new(rows, granted).await;
            let around = widened(asked, before, after);
            let ranges = [(SLEEP, asked), (LEVEL, around), (AMOUNT, around)];
            let copy = compared
                .copy_made_by(&ranges, |name, rows, windows| {
                    if name == SLEEP {
                        resolved(rows, windows)
                    } else {
                        cut(name, rows, windows)
                    }
                })
                .await;
            let plain = compared.copy(&ranges).await;
            let cycles = |clip| CyclesSpec {
                range: asked,
                clip,
                gap: HOUR,
                gap_stages: std::iter::empty().collect(),
                shown: None,
                nights: None,
            };
            let stages = |clip, merge_overlapping| {
                Question::Stages(StagesSpec {
                    cycles: cycles(clip),
                    merge_overlapping,
                    merge_contiguous: true,
                })
            };
            let totals = |clip, mode| {
                Question::Aggregate(SleepTotalsSpec {
                    cycles: cycles(clip),
                    mode,
                    period: Truncation::DAYS,
                    zone: Zone::UTC,
                    functions: vec![Statistic::Sum, Statistic::Avg, Statistic::Min, Statistic::Max],
                    most_cells: u64::MAX,
                })
            };
            let questions = [
                (&copy, stages(clip, true), stages(true, true)),
                (&plain, stages(clip, false), stages(true, false)),
                (
                    &copy,
                    Question::Cycles(cycles(clip)),
                    Question::Cycles(cycles(true)),
                ),
                (&copy, totals(clip, Mode::Start), totals(true, Mode::Start)),
                (&copy, totals(clip, Mode::Split), totals(true, Mode::Split)),
            ];
            let partition = compared.bench.partition(SLEEP);
            for (copy, asked_of_shared, asked_of_copy) in questions {
                let name = format!("{asked_of_shared:?}");
                let mut told = Vec::new();
                for (view, question) in [(&compared.shared, asked_of_shared), (copy, asked_of_copy)] {
                    let permit = view.permit(SLEEP, asked);
                    let stages = compared.stages();
                    let asked = compared
                        .bench
                        .questions
                        .sleep(&permit, &partition, &stages, question, None);
                    let prepared = asked.await.unwrap();
                    told.push(compared.bench.told(prepared).await);
                }
                assert_same(&name, &told[0], &told[1]);
            }
            let spec = compared.series_spec(SLEEP, grid(1, asked), &["last"]);
            let shared = compared.series(&compared.shared, SLEEP, asked, &spec).await;
            assert_same(
                "stages as a series",
                &shared,
                &compared.series(&copy, SLEEP, asked, &spec).await,
            );
            let mut told = Vec::new();
            for (view, clip) in [(&compared.shared, clip), (&copy, true)] {
                let permit = view.permit(SLEEP, asked);
                let order = compared.bench.sources(view.person()).await;
                let metrics = [
                    (LEVEL, view.permit(LEVEL, around)),
                    (AMOUNT, view.permit(AMOUNT, around)),
                ];
                let partitions = metrics.each_ref().map(|(name, _)| compared.bench.partition(name));
                let series = metrics
                    .iter()
                    .zip(&partitions)
                    .map(|((name, permit), partition)| AskedSeries {
                        permit,
                        partition,
                        conditions: &[],
                        spec: SeriesSpec {
                            column: (*name).to_owned(),
                            gaps: Gaps {
                                drop: true,
                                replace: false,
                            },
                            chosen_sources: order.clone(),
                            ..compared.series_spec(name, Grid::uniform(around, MINUTE), &[])
                        },
                        stages: None,
                    });
                let reach = Reach {
                    before,
                    after,
                    bin: MINUTE,
                    most_cells: 1_000_000,
                };
                let stages = compared.stages();
                let prepared = compared
                    .bench
                    .questions
                    .sleep_with_metrics(
                        &permit,
                        &partition,
                        &stages,
                        cycles(clip),
                        series.collect(),
                        reach,
                    )
                    .await
                    .unwrap();
                told.push(compared.bench.told(prepared).await);
            }
            assert_same("cycles with metrics", &told[0], &told[1]);
        });
    }

    #[test]
    fn rule_9_2c_places_are_those_of_a_cut_copy(
        updates in pieces(UPDATES),
        maps in pieces(MAPS),
        visits in pieces(VISITS),
        granted in windows(),
        asked in asked(),
        look_back in 0..5 * HOUR,
        include_after in any::<bool>(),
        change in prop::option::of(0.0..300.0)
    ) {
        run(async {
            let rows = vec![(UPDATES, updates), (MAPS, maps), (VISITS, visits)];
            let compared = Compared::new(rows, granted).await;
            let questions = &compared.bench.questions;
            let copy_in = |updates, visits| compared_copy(&compared, updates, visits);
            let copy = copy_in(asked, asked).await;
            let mut told = Vec::new();
            for view in [&compared.shared, &copy] {
                let updates = compared.updates(view, asked);
                let prepared = questions.location_updates(&updates, IdForm::Text).await.unwrap();
                let mut rows = compared.bench.told(prepared).await;
                for name in [UPDATES, MAPS, VISITS] {
                    let granted = compared.bench.granted(view, name, asked);
                    let bounds = questions.location_bounds(&granted).await.unwrap();
                    rows.push(vec![(name.to_owned(), format!("{bounds:?}"))]);
                }
                let shape = compared.bench.granted(view, VISITS, asked);
                let spec = RawSpec {
                    columns: VISIT_COLUMNS.to_vec(),
                    only: None,
                    ids: IdForm::Text,
                };
                let visits = questions.raw(&shape, &spec).await.unwrap();
                let schema = Arc::clone(&visits.schema);
                rows.extend(compared.bench.told(visits).await);
                let updates = compared.bench.granted(view, UPDATES, stays::reads(asked));
                let stays = questions
                    .stays(&updates, asked, &schema, IdForm::Text)
                    .await
                    .unwrap();
                rows.extend(compared.bench.told(stays).await);
                told.push(rows);
            }
            assert_same("updates, bounds, visits and stays", &told[0], &told[1]);

            let spec = PlaceSeriesSpec {
                range: asked,
                sample_rate: 20 * MINUTE,
                look_back,
                change_meters: change,
            };
            let copy = copy_in(spec.reads(), spec.reads_visits()).await;
            let mut told = Vec::new();
            for view in [&compared.shared, &copy] {
                let updates = compared.updates(view, spec.reads());
                let visits = compared.bench.granted(view, VISITS, spec.reads_visits());
                let prepared = questions
                    .location_series(&updates, Some(&visits), &spec)
                    .await
                    .unwrap();
                told.push(compared.bench.told(prepared).await);
            }
            assert_same("a series of places", &told[0], &told[1]);

            let spec = AtTimeSpec::new(asked.start(), look_back, include_after, IdForm::Text).unwrap();
            let copy = copy_in(spec.reads(), spec.reads_visits()).await;
            let mut told = Vec::new();
            for view in [&compared.shared, &copy] {
                let updates = compared.updates(view, spec.reads());
                let visits = compared.bench.granted(view, VISITS, spec.reads_visits());
                let prepared = questions
                    .location_at(&updates, Some(&visits), spec)
                    .await
                    .unwrap();
                told.push(compared.bench.told(prepared).await);
            }
            assert_same("a place at a moment", &told[0], &told[1]);
        });
    }

    #[test]
    fn rule_9_2c_plans_are_those_of_a_cut_copy(
        workouts in pieces(WORKOUTS), events in pieces(CALENDAR), granted in windows(), asked in asked()
    ) {
        run(async {
            let rows = vec![(WORKOUTS, workouts), (CALENDAR, events)];
            let compared = Compared::new(rows, granted).await;
            let questions = &compared.bench.questions;
            let copy = compared.copy(&[(WORKOUTS, asked), (CALENDAR, asked)]).await;
            let around = widened(asked, DAY_MARGIN, DAY_MARGIN);
            let mut told = Vec::new();
            for view in [&compared.shared, &copy] {
                let granted = compared.bench.granted(view, WORKOUTS, asked);
                let spec = RawSpec { columns: WORKOUT_COLUMNS.to_vec(), only: None, ids: IdForm::Text };
                let completed = questions.completed(&granted, &spec, WORKOUT_DEFAULTS).await.unwrap();
                let mut rows = compared.bench.told(completed).await;
                let granted = compared.bench.granted(view, CALENDAR, around);
                let spec = RawSpec { columns: EVENT_COLUMNS.to_vec(), only: None, ids: IdForm::Text };
                let events = questions.calendar_events(&granted, &spec, asked).await.unwrap();
                rows.extend(compared.bench.told(events).await);
                let available = questions.available(&view.listing(asked), asked).await.unwrap();
                rows.push(vec![("available".to_owned(), format!("{available:?}"))]);
                told.push(rows);
            }
            assert_same("workouts and events", &told[0], &told[1]);
        });
    }
}

/// The columns of a visit.
const VISIT_COLUMNS: &[&str] = &[
    "uuid",
    "arrival_date",
    "departure_date",
    "latitude_degrees",
    "longitude_degrees",
    "horizontal_accuracy_meters",
];

async fn compared_copy(compared: &Compared, updates: TimeRange, visits: TimeRange) -> View {
    compared
        .copy(&[(UPDATES, updates), (MAPS, updates), (VISITS, visits)])
        .await
}

/// The rows of the copy lie inside what was granted, whoever made them: the tests above cannot be right by
/// both sides telling too much.
#[test]
fn rule_9_2c_nothing_of_a_cut_copy_lies_outside() {
    let row = |start: i64, end: i64| GivenRow {
        id: 1,
        start: BEGIN + start,
        end: BEGIN + end,
        value: 8.0,
        source: 0,
        content: Some(1),
        all_day: false,
    };
    let granted = Windows::new([range(BEGIN + 10, BEGIN + 20), range(BEGIN + 30, BEGIN + 40)]);
    let left = cut(
        AMOUNT,
        &[row(0, 80), row(12, 14), row(20, 30), row(20, 20), row(30, 30)],
        &granted,
    );
    let times: Vec<(i64, i64, f64)> = left
        .iter()
        .map(|row| (row.start - BEGIN, row.end - BEGIN, row.value))
        .collect();
    assert_eq!(
        times,
        [(10, 20, 1.0), (30, 40, 1.0), (12, 14, 8.0), (30, 30, 8.0)]
    );
    let whole = TimeRange::between(Instant::from_micros(BEGIN), Instant::from_micros(BEGIN + DAY));
    assert_eq!(granted.within(whole), granted);
}
