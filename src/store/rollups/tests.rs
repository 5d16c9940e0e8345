//! Rollups beside a model that goes through all rows for each of them, and back from the objects that keep
//! them.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeBinaryArray, Float64Array, Int8Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};
use proptest::prelude::*;
use uuid::Uuid;

use super::gather::coarser;
use super::*;
use crate::catalog::records::{NewPiece, NewPlace};
use crate::model::ids::{PersonId, SystemIds};
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::files::{PieceFiles, footer_of};
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::outline::ObjectPlace;
use crate::store::piece::{PieceWriter, Target};

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 1440 * MINUTE;
/// 2024-01-30T00:00:00Z
const BEGIN: i64 = 1_706_572_800_000_000;

#[derive(Clone, Debug)]
struct Sample {
    start: i64,
    end: i64,
    value: Option<f64>,
    source: Option<u8>,
    class: i8,
}

/// A rollup: its start, source, class, count, sum, least and greatest.
type RollupRow = (i64, Option<String>, i8, i64, f64, f64, f64);

fn batch(samples: &[Sample]) -> RecordBatch {
    let ids: Vec<[u8; 16]> = (0..samples.len() as u128).map(u128::to_be_bytes).collect();
    let ids = if ids.is_empty() {
        FixedSizeBinaryArray::new_null(16, 0)
    } else {
        FixedSizeBinaryArray::try_from_iter(ids.into_iter()).unwrap()
    };
    let times = |of: fn(&Sample) -> i64| {
        let times = TimestampMicrosecondArray::from_iter_values(samples.iter().map(of));
        Arc::new(times.with_timezone("UTC")) as ArrayRef
    };
    let names: StringArray = samples
        .iter()
        .map(|sample| sample.source.map(|source| format!("source {source}")))
        .collect();
    RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("start_time", times(|sample| sample.start)),
        ("end_time", times(|sample| sample.end)),
        (
            "value",
            Arc::new(
                samples
                    .iter()
                    .map(|sample| sample.value)
                    .collect::<Float64Array>(),
            ),
        ),
        ("source", cast(&names, &dictionary_text()).unwrap()),
        (
            "source_class",
            Arc::new(
                samples
                    .iter()
                    .map(|sample| Some(sample.class))
                    .collect::<Int8Array>(),
            ),
        ),
    ])
    .unwrap()
}

fn rollup_rows(rollups: &RecordBatch) -> Vec<RollupRow> {
    let numbers = |at: usize| rollups.column(at).as_primitive::<Float64Type>();
    let sources = rollups.column(5).as_dictionary::<Int32Type>();
    let names = sources.values().as_string::<i32>();
    let rollup_row = |row: usize| {
        let name = sources
            .is_valid(row)
            .then(|| names.value(sources.keys().value(row) as usize).to_owned());
        (
            rollups
                .column(0)
                .as_primitive::<TimestampMicrosecondType>()
                .value(row),
            name,
            rollups.column(6).as_primitive::<Int8Type>().value(row),
            rollups.column(1).as_primitive::<Int64Type>().value(row),
            numbers(2).value(row),
            numbers(3).value(row),
            numbers(4).value(row),
        )
    };
    let mut rows: Vec<RollupRow> = (0..rollups.num_rows()).map(rollup_row).collect();
    rows.sort_by(|one, other| (one.0, &one.1, one.2).cmp(&(other.0, &other.1, other.2)));
    rows
}

/// What the rollups of a month are to say.
fn expected(samples: &[Sample], step: i64, month: i64, by_source: bool) -> Vec<RollupRow> {
    let mut values: BTreeMap<(i64, Option<String>, i8), Vec<f64>> = BTreeMap::new();
    for sample in samples {
        let is_inside = Month::of(sample.start).is_some_and(|of| of.number == month);
        let Some(value) = sample.value.filter(|_| is_inside) else {
            continue;
        };
        let start = sample.start.div_euclid(step) * step;
        let name = sample.source.map(|source| format!("source {source}"));
        let (name, class) = if by_source {
            (name, sample.class)
        } else {
            (None, 5)
        };
        values.entry((start, name, class)).or_default().push(value);
    }
    let rollup_row = |((start, name, class), values): (_, Vec<f64>)| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (count, sum) = (values.len() as i64, values.iter().sum());
        (start, name, class, count, sum, least, greatest)
    };
    values.into_iter().map(rollup_row).collect()
}

fn are_points(samples: &[Sample], step: i64, month: i64) -> bool {
    samples
        .iter()
        .filter(|sample| sample.value.is_some())
        .all(|sample| {
            let of = Month::of(sample.start).unwrap();
            let lies_inside = sample.end <= sample.start.div_euclid(step) * step + step;
            match of.number.cmp(&month) {
                std::cmp::Ordering::Less => {
                    Month::of(sample.end).unwrap().number < month || {
                        // It ends with the month before, at the very moment at which this one begins.
                        let end = Month::of(sample.end).unwrap();
                        end.number == month && end.time.start == sample.end
                    }
                }
                std::cmp::Ordering::Equal => lies_inside,
                std::cmp::Ordering::Greater => true,
            }
        })
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let length = prop_oneof![10 => Just(0), 3 => 0..20 * MINUTE, 1 => 0..3 * DAY];
    let start = prop_oneof![
        0..4 * DAY,
        Just(2 * DAY),
        Just(2 * DAY - MINUTE),
        30 * DAY..40 * DAY
    ];
    let value = prop::option::weighted(0.9, (-50_i32..50).prop_map(f64::from));
    let sample = (start, length, value, prop::option::of(0_u8..3), 3_i8..5);
    let sample = sample.prop_map(|(start, length, value, source, class)| Sample {
        start: BEGIN + start,
        end: BEGIN + start + length,
        value,
        source,
        class,
    });
    prop::collection::vec(sample, 0..60).prop_map(|mut samples| {
        samples.sort_by_key(|sample| (sample.start, sample.end));
        samples
    })
}

proptest! {
    #[test]
    fn rollups_are_what_the_rows_that_start_in_them_come_to(
        samples in samples(),
        cuts in prop::collection::vec(0_usize..60, 0..4),
        by_source in any::<bool>(),
        step in prop::sample::select(Step::COARSE_FIRST.to_vec()),
        at_a_time in 1_usize..40
    ) {
        let mut gatherer = Gatherer::new(step, by_source).at_a_time(at_a_time);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(samples.len())).collect();
        cuts.extend([0, samples.len()]);
        cuts.sort_unstable();
        let mut gathered = Vec::new();
        for part in cuts.windows(2) {
            gatherer.take(&batch(&samples[part[0]..part[1]])).unwrap();
            gathered.extend(gatherer.ready());
        }
        let february = BEGIN + 2 * DAY;
        let lasts = |sample: &Sample| sample.value.is_some() && sample.end > february;
        prop_assert_eq!(gatherer.lasts_beyond(february), samples.iter().any(lasts));
        gathered.extend(gatherer.finish().unwrap());
        let of_value = samples.iter().filter(|sample| sample.value.is_some());
        let months: BTreeSet<i64> = of_value
            .map(|sample| Month::of(sample.start).unwrap().number)
            .collect();
        let ended = gathered
            .iter()
            .filter(|part| part.ends_month)
            .map(|part| part.month);
        prop_assert_eq!(ended.collect::<BTreeSet<_>>(), months);
        for parts in gathered.chunk_by(|one, next| one.month == next.month) {
            let (month, step) = (parts[0].month, step.micros());
            let expected = expected(&samples, step, month, by_source);
            for part in parts {
                prop_assert_eq!(
                    part.rows,
                    rollup_rows(&part.rollups)
                        .iter()
                        .map(|rollup| rollup.3)
                        .sum::<i64>()
                );
            }
            let rollups = concat_batches(&schema(), parts.iter().map(|part| &part.rollups)).unwrap();
            prop_assert_eq!(rollup_rows(&rollups), expected);
            let last = parts.last().unwrap();
            prop_assert!(last.ends_month);
            prop_assert_eq!(last.are_points, are_points(&samples, step, month));
        }
    }

    #[test]
    fn rollups_of_sources_add_up_to_those_of_all(samples in samples()) {
        let gathered = |by_source: bool| {
            let mut gatherer = Gatherer::new(Step::Quarter, by_source);
            gatherer.take(&batch(&samples)).unwrap();
            let gathered = gatherer.finish().unwrap();
            let rollups: Vec<RecordBatch> = gathered.into_iter().map(|month| month.rollups).collect();
            concat_batches(&schema(), &rollups).unwrap()
        };
        let numbers = |rollups: &RecordBatch| rollups.project(&[0, 1, 2, 3, 4]).unwrap();
        prop_assert_eq!(numbers(&together(&gathered(true)).unwrap()), numbers(&gathered(false)));
    }

    #[test]
    fn quarters_add_up_to_hours(samples in samples()) {
        let gathered = |step: Step| {
            let mut gatherer = Gatherer::new(step, true);
            gatherer.take(&batch(&samples)).unwrap();
            gatherer.finish().unwrap()
        };
        let (quarters, hours) = (gathered(Step::Quarter), gathered(Step::Hour));
        prop_assert_eq!(quarters.len(), hours.len());
        for (quarters, hours) in quarters.iter().zip(&hours) {
            let coarser = coarser(&quarters.rollups, Step::Hour).unwrap();
            prop_assert!(is_in_order(&coarser));
            prop_assert_eq!(rollup_rows(&coarser), rollup_rows(&hours.rollups));
            prop_assert!(hours.are_points || !quarters.are_points);
        }
    }
}

fn is_in_order(rollups: &RecordBatch) -> bool {
    rollups
        .column(0)
        .as_primitive::<TimestampMicrosecondType>()
        .values()
        .is_sorted()
}

/// An object of these rows in a directory.
async fn object(directory: &std::path::Path, rows: &RecordBatch) -> (PieceFiles, ObjectPlace, NewPiece) {
    let settings = ObjectStoreSettings::Local(directory.to_owned());
    let objects = ObjectStorage::open(&settings).unwrap();
    let target = Target {
        person: PersonId(Uuid::now_v7()),
        data_type: TypeId("HeartRate".into()),
        layout_version: 1,
    };
    let ids = SystemIds::default();
    let mut writer = PieceWriter::new(&objects, &ids, target, rows.schema()).keeping_rollups();
    writer.push(rows).await.unwrap();
    let piece = writer.finish().await.unwrap().remove(0);
    let NewPlace::Object { path, footer } = &piece.place else {
        panic!("a tail piece")
    };
    let place = ObjectPlace::new(path, piece.bytes, *footer);
    (PieceFiles::new(objects, 1 << 20), place, piece)
}

#[test]
fn sources_are_told_apart_however_many_there_are() {
    // Of each of 200 sources and of none, in two classes, five rows in each of two hours, never two in a row.
    let sample = |number: i64| {
        let source = u8::try_from(number * 7 % 201).ok().filter(|source| *source < 200);
        Sample {
            start: BEGIN + number * MINUTE * 2 / 67,
            end: BEGIN + number * MINUTE * 2 / 67,
            value: Some((number % 40) as f64),
            source,
            class: 3 + (number / 201 % 2) as i8,
        }
    };
    let samples: Vec<Sample> = (0..4020).map(sample).collect();
    let january = Month::of(BEGIN).unwrap().number;
    for step in Step::COARSE_FIRST {
        let mut gatherer = Gatherer::new(step, true);
        for part in samples.chunks(1000) {
            gatherer.take(&batch(part)).unwrap();
        }
        let gathered = gatherer.finish().unwrap();
        assert_eq!(gathered.len(), 1);
        let rollups = &gathered[0].rollups;
        assert_eq!(
            rollup_rows(rollups),
            expected(&samples, step.micros(), january, true),
            "{step:?}"
        );
        if step == Step::Quarter {
            assert_eq!(
                rollup_rows(&coarser(rollups, Step::Hour).unwrap()),
                expected(&samples, Step::Hour.micros(), january, true)
            );
        }
    }
}

fn every(interval: i64, count: i64) -> Vec<Sample> {
    let sample = |number: i64| Sample {
        start: BEGIN + number * interval,
        end: BEGIN + number * interval,
        value: Some((number % 40) as f64),
        source: Some((number % 2) as u8),
        class: 3,
    };
    (0..count).map(sample).collect()
}

#[tokio::test]
async fn an_object_keeps_what_its_rows_come_to() {
    let directory = tempfile::tempdir().unwrap();
    // Five days, two of them in January.
    let samples = every(MINUTE / 10, 5 * 14_400);
    let (files, place, _) = object(directory.path(), &batch(&samples)).await;
    let january = Month::of(BEGIN).unwrap().number;
    for step in Step::COARSE_FIRST {
        for month in [january, january + 1] {
            let kept = files.rollups(&place, step, month).await.unwrap().unwrap();
            assert_eq!(
                rollup_rows(&kept.rollups),
                expected(&samples, step.micros(), month, true)
            );
            assert!(kept.are_points);
        }
        assert!(files.rollups(&place, step, january + 2).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_object_without_hours_has_them_from_its_quarters() {
    let directory = tempfile::tempdir().unwrap();
    let samples = every(MINUTE / 10, 5 * 14_400);
    let (files, place, piece) = object(directory.path(), &batch(&samples)).await;
    let january = Month::of(BEGIN).unwrap().number;
    let hours = files.rollups(&place, Step::Hour, january).await.unwrap().unwrap();
    // As an object is that was written before there were hours: its list has none of this month.
    let path = directory.path().join(&*place.path);
    let mut bytes = std::fs::read(&path).unwrap();
    let listed = format!(r#""step":"hour","month":{january},"#).into_bytes();
    let at = bytes
        .windows(listed.len())
        .position(|window| window == listed)
        .unwrap();
    let digit = at + listed.len() - 2;
    bytes[digit] = b'0' + (bytes[digit] - b'0' + 5) % 10;
    std::fs::write(&path, &bytes).unwrap();
    let settings = ObjectStoreSettings::Local(directory.path().to_owned());
    let objects = ObjectStorage::open(&settings).unwrap();
    let footer = footer_of(&objects, &place.path, bytes.len() as u64)
        .await
        .unwrap();
    let place = ObjectPlace::new(&place.path, piece.bytes, footer);
    let files = PieceFiles::new(objects, 1 << 20);
    let stored = files.outline(&place).await.unwrap().stored_rollups().to_vec();
    assert!(
        !stored
            .iter()
            .any(|part| (part.step, part.month) == (Step::Hour, january))
    );
    let from_quarters = files.rollups(&place, Step::Hour, january).await.unwrap().unwrap();
    assert_eq!(rollup_rows(&from_quarters.rollups), rollup_rows(&hours.rollups));
    assert_eq!(from_quarters.are_points, hours.are_points);
    assert!(
        files
            .rollups(&place, Step::Hour, january + 2)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn rollups_that_are_hardly_fewer_than_rows_are_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (files, place, _) = object(directory.path(), &batch(&every(MINUTE / 2, 5000))).await;
    let january = Month::of(BEGIN).unwrap().number;
    let kept = async |step| files.rollups(&place, step, january).await.unwrap().is_some();
    assert!(kept(Step::Quarter).await);
    assert!(!kept(Step::Minute).await, "two rows a minute, of two sources");
}

#[tokio::test]
async fn rollups_that_were_damaged_are_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let (files, place, piece) = object(directory.path(), &batch(&every(MINUTE / 10, 5000))).await;
    let january = Month::of(BEGIN).unwrap().number;
    let file = files.outline(&place).await.unwrap();
    let stored = &file.stored_rollups()[0];
    let path = directory.path().join(&*place.path);
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as i64, piece.bytes);
    bytes[stored.start as usize + stored.bytes as usize / 2] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = files.rollups(&place, Step::Quarter, january).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}
