//! A body counts the same whatever its size: kept in memory, or written chunk by chunk before its commit.

use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::outdated::Process;
use super::*;
use crate::catalog::records::Effect;
use crate::ingest::changes::Change;
use crate::ingest::intake::{Intake, Rows};
use crate::ingest::upload::{PartitionChanges, Work};
use crate::model::ids::{PersonId, RecordId};
use crate::model::time::TimeRange;
use crate::store::snapshot::PieceContent;

/// A value under the id of that number. Without one the server makes the id.
type Line = (Option<u16>, u8);

const TYPE: &str = "HeartRate";
const IDS: u16 = 4;

fn id(number: u16) -> Uuid {
    Uuid::from_u128(1000 + u128::from(number))
}

fn chunk(lines: &[Line]) -> Rows {
    let texts: Vec<String> = lines
        .iter()
        .map(|(number, value)| {
            let id = number.map_or_else(Uuid::now_v7, id);
            let time = "2024-05-01T10:00:00Z";
            format!(r#"{{"id":"{id}","start_date":"{time}","end_date":"{time}","value":{value}}}"#)
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let decoded = rows(TYPE, &texts);
    Rows {
        batch: decoded.rows,
        given: lines.iter().map(|(number, _)| number.is_some()).collect(),
        undated: decoded.undated,
    }
}

/// One chunk stays in memory; several are written.
async fn push(process: &Process, person: PersonId, chunks: &[&[Line]]) -> Intake {
    let mut intake = Intake::new(process.shared.clone(), person, data_type(TYPE));
    for lines in chunks {
        intake.push(chunk(lines)).await.unwrap();
    }
    intake
}

async fn send(process: &Process, person: PersonId, chunks: &[&[Line]]) -> Effect {
    let intake = push(process, person, chunks).await;
    process.commit(person, intake.finish().await.unwrap()).await
}

async fn updates(process: &Process, person: PersonId) -> i64 {
    let always = TimeRange::new(instant("2000-01-01T00:00:00Z"), instant("2200-01-01T00:00:00Z")).unwrap();
    let counted = process.catalog.updates_between(person, always).await.unwrap();
    counted.iter().map(|(_, count)| count).sum()
}

/// How many records there are, and the values under the ids that were chosen.
async fn held(process: &Process, person: PersonId) -> (i64, Vec<(RecordId, f64)>) {
    let stores = &process.shared.stores;
    let snapshot = stores.snapshot(person, &data_type(TYPE).id).await.unwrap();
    let ids: Vec<RecordId> = (0..IDS).map(|number| RecordId(id(number))).collect();
    let mut values = Vec::new();
    for part in stores.finder.live_rows_of(&snapshot, &ids).await.unwrap() {
        let column = part.rows.column_by_name("value").unwrap();
        let column = column.as_primitive::<Float64Type>().values().to_vec();
        values.extend(part.ids.into_iter().zip(column));
    }
    values.sort_by_key(|(id, _)| *id);
    (snapshot.records, values)
}

async fn both_ways(process: &Process, bodies: &[Vec<Vec<Line>>]) -> Result<(), TestCaseError> {
    let [small, large] = [PersonId(Uuid::now_v7()), PersonId(Uuid::now_v7())];
    for body in bodies {
        let chunks: Vec<&[Line]> = body.iter().map(Vec::as_slice).collect();
        let expected = send(process, small, &[&body.concat()]).await;
        let effect = send(process, large, &chunks).await;
        prop_assert_eq!(effect, expected);
        prop_assert_eq!(updates(process, large).await, updates(process, small).await);
        prop_assert_eq!(held(process, large).await, held(process, small).await);
    }
    Ok(())
}

#[test]
fn rule_8_5_a_body_counts_the_same_whatever_its_size() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let process = runtime.block_on(Process::over(directory.path()));
    let line = (prop::option::weighted(0.9, 0..IDS), 0..3_u8);
    let body = prop::collection::vec(prop::collection::vec(line, 1..6), 2..5);
    let bodies = prop::collection::vec(body, 1..4);
    TestRunner::new(Config::with_cases(200))
        .run(&bodies, |bodies| runtime.block_on(both_ways(&process, &bodies)))
        .unwrap();
}

#[tokio::test]
async fn a_first_line_counts_by_what_is_stored_when_the_body_is_committed() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let line = |value: u8| -> Line { (Some(0), value) };
    for (meanwhile, expected) in [(vec![], 1), (vec![line(7)], 2), (vec![line(7), line(5)], 1)] {
        let person = PersonId(Uuid::now_v7());
        send(&process, person, &[&[line(5)]]).await;
        let intake = push(&process, person, &[&[line(5), line(6)], &[(None, 1)]]).await;
        for line in &meanwhile {
            send(&process, person, &[&[*line]]).await;
        }
        let before = updates(&process, person).await;
        let effect = process.commit(person, intake.finish().await.unwrap()).await;
        assert_eq!((effect.stored, effect.replaced, effect.unchanged), (1, 1, 0));
        let more = updates(&process, person).await - before;
        assert_eq!(more, expected + 1, "{meanwhile:?}");
    }
}

#[tokio::test]
async fn a_body_is_accepted_although_what_only_counts_rest_on_was_collected() {
    let line = |value: u8| -> Line { (Some(0), value) };
    for is_in_memory in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let process = Process::over(directory.path()).await;
        let stores = &process.shared.stores;
        let person = PersonId(Uuid::now_v7());
        send(&process, person, &[&[line(5)], &[(None, 1)]]).await;
        let stored = stores.snapshot(person, &data_type(TYPE).id).await.unwrap();
        let intake = push(&process, person, &[&[line(5), line(6)], &[(None, 1)]]).await;
        // As if the row had been moved.
        for value in [7, 5] {
            send(&process, person, &[&[line(value)]]).await;
        }
        for piece in &stored.pieces {
            let PieceContent::Object(place) = &piece.content else {
                panic!("large bodies are written to objects");
            };
            process.shared.objects.delete(&place.path).await.unwrap();
        }
        if !is_in_memory {
            stores.finder.files().forget_all();
            stores.finder.forget_all();
        }
        let before = updates(&process, person).await;
        let effect = process.commit(person, intake.finish().await.unwrap()).await;
        assert_eq!((effect.stored, effect.replaced, effect.unchanged), (1, 1, 0));
        assert_eq!(updates(&process, person).await - before, 1 + 1);
    }
}

/// What others do to the id of that number: they store a value, or delete it.
type Other = (u16, Option<u8>);

async fn others_do(process: &Process, person: PersonId, others: &[Other]) {
    for (number, value) in others {
        if let Some(value) = value {
            send(process, person, &[&[(Some(*number), *value)]]).await;
        } else {
            let change = Change::Delete {
                records: vec![RecordId(id(*number))].into(),
                definition: None,
            };
            let data_type = data_type(TYPE);
            let work = Work::Small(vec![PartitionChanges {
                data_type: data_type.id.clone(),
                layout: Arc::clone(&data_type.layout),
                changes: vec![change],
            }]);
            process.commit(person, work).await;
        }
    }
}

/// A body that says one thing of each id, in chunks between which others come, counts as if all of it had
/// come after them.
async fn beside_others(
    process: &Process,
    before: &[Other],
    chunks: &[(Vec<Line>, Vec<Other>)],
) -> Result<(), TestCaseError> {
    let [small, large] = [PersonId(Uuid::now_v7()), PersonId(Uuid::now_v7())];
    for person in [small, large] {
        others_do(process, person, before).await;
    }
    let mut intake = Intake::new(process.shared.clone(), large, data_type(TYPE));
    for (lines, others) in chunks {
        intake.push(chunk(lines)).await.unwrap();
        for person in [small, large] {
            others_do(process, person, others).await;
        }
    }
    let lines: Vec<Line> = chunks.iter().flat_map(|(lines, _)| lines.clone()).collect();
    let expected = send(process, small, &[&lines]).await;
    let effect = process.commit(large, intake.finish().await.unwrap()).await;
    prop_assert_eq!(effect, expected);
    prop_assert_eq!(updates(process, large).await, updates(process, small).await);
    prop_assert_eq!(held(process, large).await, held(process, small).await);
    Ok(())
}

#[test]
fn rule_8_5_a_body_counts_the_same_whatever_others_do_while_it_is_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let process = runtime.block_on(Process::over(directory.path()));
    let others = || prop::collection::vec((0..IDS, prop::option::weighted(0.8, 0..3_u8)), 0..4);
    let number = prop::option::weighted(0.9, 0..IDS);
    let chunks = prop::collection::vec((prop::collection::vec(number, 1..6), others()), 2..5);
    let said = prop::array::uniform4(0..3_u8);
    TestRunner::new(Config::with_cases(200))
        .run(&(others(), said, chunks), |(before, said, chunks)| {
            let value = |number: Option<u16>| number.map_or(0, |number| said[usize::from(number)]);
            let chunks: Vec<(Vec<Line>, Vec<Other>)> = chunks
                .into_iter()
                .map(|(numbers, others)| {
                    let lines = numbers.into_iter().map(|number| (number, value(number)));
                    (lines.collect(), others)
                })
                .collect();
            runtime.block_on(beside_others(&process, &before, &chunks))
        })
        .unwrap();
}

#[tokio::test]
async fn rule_8_2_what_another_stored_in_the_same_words_meanwhile_is_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let line = |value: u8| -> Line { (Some(0), value) };
    let told = |effect: Effect| [effect.stored, effect.replaced, effect.unchanged];
    // A record without an id comes with each body.
    for (before, body, meanwhile, expected, more) in [
        (None, [5, 5], vec![5], [1, 0, 1], 0),
        (Some(4), [5, 5], vec![5], [1, 0, 1], 0),
        (Some(4), [5, 5], vec![5, 6], [1, 1, 0], 1),
        (Some(4), [5, 5], vec![6, 5], [1, 0, 1], 0),
        // What it changes itself and changes back, it changes.
        (Some(4), [6, 5], vec![5], [1, 1, 0], 2),
    ] {
        let person = PersonId(Uuid::now_v7());
        if let Some(value) = before {
            send(&process, person, &[&[line(value)]]).await;
        }
        let intake = push(&process, person, &[&body.map(line), &[(None, 1)]]).await;
        for value in &meanwhile {
            send(&process, person, &[&[line(*value)]]).await;
        }
        let counted = updates(&process, person).await;
        let effect = process.commit(person, intake.finish().await.unwrap()).await;
        assert_eq!(told(effect), expected, "{before:?}, {body:?}, {meanwhile:?}");
        let counted = updates(&process, person).await - counted;
        assert_eq!(counted, more + 1, "{before:?}, {body:?}, {meanwhile:?}");
    }
}

#[tokio::test]
async fn every_version_of_a_record_counts_among_what_a_body_remembers() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let mut intake = Intake::new(process.shared.clone(), PersonId(Uuid::now_v7()), data_type(TYPE));
    let mut remembered = Vec::new();
    for _ in 0..5 {
        intake.push(chunk(&[(Some(0), 1)])).await.unwrap();
        remembered.push(intake.ids());
    }
    // The first chunk waits, and goes with the second. From then on each leaves a row that no longer counts.
    assert_eq!(remembered, [0, 2, 3, 4, 5]);
}

#[tokio::test]
async fn many_records_that_a_later_chunk_names_again_count_by_what_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::over(directory.path()).await;
    let person = PersonId(Uuid::now_v7());
    // More than are compared at once, in several pieces.
    let numbers: Vec<u16> = (0..18_000).collect();
    let lines = |changed: bool, numbers: &[u16]| {
        let value = |number: u16| u8::from(changed && number.is_multiple_of(3));
        numbers
            .iter()
            .map(|number| (Some(*number), value(*number)))
            .collect::<Vec<Line>>()
    };
    let (first, second) = numbers.split_at(9_000);
    let chunks = [lines(false, first), lines(false, second), lines(true, &numbers)];
    let chunks: Vec<&[Line]> = chunks.iter().map(Vec::as_slice).collect();
    let effect = send(&process, person, &chunks).await;
    assert_eq!((effect.stored, effect.replaced, effect.unchanged), (18_000, 0, 0));
    assert_eq!(updates(&process, person).await, 18_000 + 6_000);
}
