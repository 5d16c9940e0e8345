//! What random nights do not show: how much is kept, and when an answer begins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt as _;

use super::*;
use crate::model::duration::Truncation;
use crate::model::zone::Zone;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::sleep::cycles::{Cycle, CycleFinder, CycleSink};
use crate::query::sleep::in_bed::InBed;
use crate::query::sleep::resolve::Row;
use crate::query::sleep::sleep_exec::answers;
use crate::query::sleep::spec::{Mode, SleepTotalsSpec, StagesSpec, TooManyPeriods};
use crate::query::statistic::Statistic;

#[test]
fn rule_3_5_time_in_bed_is_the_union_of_samples_that_touch_the_cycle() {
    let mut in_bed = InBed::new(WindowClip::nothing());
    for (start, end) in [(0, 20), (10, 50), (15, 30), (50, 60), (70, 80), (80, 90)] {
        in_bed.push(start, end);
    }
    assert_eq!(
        in_bed.block(40, 50),
        [(10, 60)],
        "touching is enough, and nothing further is drawn in"
    );
    assert_eq!(in_bed.block(60, 75), [(50, 60), (70, 80)]);
    assert_eq!(in_bed.block(61, 69), []);
    in_bed.forget_before(55);
    assert_eq!(in_bed.block(0, 100), [(50, 60), (70, 90)]);
}

#[test]
fn rule_9_2c_time_in_bed_is_clipped_before_it_can_touch() {
    let mut in_bed = InBed::new(WindowClip::new(
        &windows(&[(10, 20), (30, 40)]),
        i64::MIN,
        i64::MAX,
    ));
    in_bed.push(0, 35 * SECOND);
    assert_eq!(
        in_bed.block(12 * SECOND, 15 * SECOND),
        [(10 * SECOND, 20 * SECOND)]
    );
    assert_eq!(
        in_bed.block(12 * SECOND, 33 * SECOND),
        [(10 * SECOND, 20 * SECOND), (30 * SECOND, 35 * SECOND)]
    );
    assert_eq!(in_bed.block(22 * SECOND, 28 * SECOND), []);
}

#[test]
fn a_month_in_bed_hides_every_sample_inside_of_it() {
    let mut in_bed = InBed::new(WindowClip::nothing());
    in_bed.push(0, 1_000_000);
    for start in 0..10_000 {
        in_bed.push(start, start + 50);
    }
    assert_eq!(in_bed.len(), 1);
}

/// Counts, and keeps nothing.
#[derive(Default)]
struct Counting {
    rows: usize,
    cycles: Vec<Cycle>,
    idle_at: i64,
}

impl CycleSink for Counting {
    fn row(&mut self, _number: i64, _row: &Row) {
        self.rows += 1;
    }

    fn closed(&mut self, cycle: Cycle) {
        self.cycles.push(cycle);
    }

    fn idle(&mut self, moment: i64) {
        self.idle_at = moment;
    }
}

#[test]
fn a_cycle_closes_with_the_first_row_behind_its_gap_even_if_that_makes_none() {
    let row = |stage: i64, start: i64, end: i64| Row {
        start,
        end,
        id: 0,
        stage,
        source: 0,
    };
    let mut finder = CycleFinder::new(10, [0].into_iter().collect(), (i64::MIN, i64::MAX));
    let mut found = Counting::default();
    finder.push(row(3, 0, 5), &mut found);
    finder.push(row(0, 14, 15), &mut found);
    assert_eq!((found.rows, found.cycles.len()), (1, 0));
    finder.push(row(0, 15, 400), &mut found);
    assert_eq!(
        found.cycles,
        [Cycle {
            number: 0,
            start: 0,
            end: 5
        }]
    );
    assert_eq!((found.rows, found.idle_at), (1, 15));
}

#[test]
fn an_answer_begins_while_samples_are_still_read() {
    let nights = 4000;
    let samples: Vec<GivenSample> = (0..nights)
        .flat_map(|night| {
            (0..10).map(move |part| {
                given(
                    2 + part % 4,
                    night * 86_400 + part * 600,
                    night * 86_400 + part * 600 + 600,
                    0,
                )
            })
        })
        .collect();
    let batches = stored(&samples, 1000);
    let all = batches.len();
    let cycles = cycles_of(range(0, nights * 86_400));
    for question in [
        Question::Resolved,
        Question::Cycles(cycles.clone()),
        Question::Stages(StagesSpec {
            cycles,
            merge_overlapping: true,
            merge_contiguous: true,
        }),
    ] {
        let read = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&read);
        let rows = futures::stream::iter(batches.clone()).map(move |batch| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(batch)
        });
        let input = MemorySourceConfig::try_new_exec(&[vec![]], storage(), None).unwrap();
        let plan = SleepExec::new(
            input,
            question.clone(),
            &windows(&[(0, nights * 86_400)]),
            table(),
            None,
        );
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let memory = MemoryConsumer::new("test").register(&pool);
        let mut answer = Box::pin(answers(
            Box::pin(RecordBatchStreamAdapter::new(storage(), rows)),
            plan.step().machine(),
            memory,
        ));
        let first = futures::executor::block_on(answer.next()).unwrap().unwrap();
        assert!(first.num_rows() > 0);
        assert!(read.load(Ordering::Relaxed) < all / 2, "{question:?}");
    }
}

#[test]
fn however_many_samples_overlap_sleep_gives_way_and_is_resolved_as_ever() {
    // Each of the first half beats those before, and each of the second half loses to all of the first.
    let half: i64 = 50_000;
    let samples: Vec<GivenSample> = (0..half)
        .flat_map(|place| {
            [
                given(3, place, 1_000_000, place as u128),
                given(0, half + place, 2_000_000, (half + place) as u128),
            ]
        })
        .collect();
    let input =
        MemorySourceConfig::try_new_exec(&[stored(&samples, samples.len())], storage(), None).unwrap();
    let seen = windows(&[(0, 2_000_000)]);
    let plan = SleepExec::new(input, Question::Resolved, &seen, table(), None);
    let mut rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let (mut batches, mut turns) = (Vec::new(), 0);
    loop {
        match rows.poll_next_unpin(&mut context) {
            Poll::Ready(Some(batch)) => batches.push(batch.unwrap()),
            Poll::Ready(None) => break,
            Poll::Pending => turns += 1,
        }
    }
    assert!(turns > 0);
    assert_eq!(
        hypnogram(&batches),
        [(0, 1_000_000, 3), (1_000_000, 2_000_000, 0)]
    );
}

#[test]
fn a_stored_stage_that_the_table_lacks_is_an_error_and_not_left_out() {
    let input =
        MemorySourceConfig::try_new_exec(&[stored(&[given(9, 0, 10, 1)], 1)], storage(), None).unwrap();
    let plan = SleepExec::new(input, Question::Resolved, &windows(&[(0, 100)]), table(), None);
    let rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let found: Result<Vec<RecordBatch>, _> = futures::executor::block_on(rows.try_collect());
    assert!(found.unwrap_err().to_string().contains("table of stages"));
}

/// The range and two days around it are counted before anything is read. A sample may be longer.
#[test]
fn rule_1_2c_sleep_that_is_not_clipped_has_no_more_periods_than_the_limit() {
    let day = 86_400;
    let sample = given(3, -100 * day, 100 * day, 1);
    let totals = |clip: bool, mode: Mode, most_cells: u64| {
        let spec = SleepTotalsSpec {
            cycles: CyclesSpec {
                clip,
                ..cycles_of(range(0, 60))
            },
            mode,
            period: Truncation::parse("1m").unwrap(),
            zone: Zone::UTC,
            functions: vec![Statistic::Sum],
            most_cells,
        };
        let input = MemorySourceConfig::try_new_exec(&[stored(&[sample], 1)], storage(), None).unwrap();
        let seen = if clip {
            windows(&[(0, 60)])
        } else {
            windows(&[(-2 * day, 60 + 2 * day)])
        };
        let plan = SleepExec::new(input, Question::Aggregate(spec), &seen, table(), None);
        let rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
        let found: Result<Vec<RecordBatch>, _> = futures::executor::block_on(rows.try_collect());
        found.map(|batches| batches.iter().map(RecordBatch::num_rows).sum::<usize>())
    };
    let minutes = 200 * 24 * 60;
    assert_eq!(totals(false, Mode::Split, minutes).unwrap(), 288_000);
    let refused = totals(false, Mode::Split, minutes - 1).unwrap_err();
    let DataFusionError::External(refused) = refused else {
        panic!("{refused}");
    };
    let expected = TooManyPeriods {
        cells: minutes,
        limit: minutes - 1,
    };
    assert_eq!(refused.downcast_ref(), Some(&expected));
    // What is clipped lies in what was counted, and a cycle as a whole in one period.
    assert_eq!(totals(true, Mode::Split, 1).unwrap(), 1);
    assert_eq!(totals(false, Mode::End, 5761).unwrap(), 1);
}
