//! Tombstones for one of the annotations whose records share a partition.

use crate::catalog::records::Effect;
use crate::ingest::changes::{Change, OrderedChanges};
use crate::ingest::merge_changes::{Outcome, merge};
use crate::ingest::stored::StoredRows;
use crate::model::ids::{PieceId, RecordId};
use crate::store::find::FoundRows;

use super::*;

const BASE: &str = "MomentAnnotation";
const TEA: u128 = 70;
const WALK: u128 = 71;
const AT_TEN: &str = r#""2024-05-01T10:00:00Z""#;

fn source(definition: u128) -> String {
    format!("com.almanac.annotation.{}", Uuid::from_u128(definition))
}

/// The rows of records, each by its number and its definition.
fn records(of: &[(u128, Option<u128>)], time: &str) -> DecodedRows {
    let line = |(number, definition): &(u128, Option<u128>)| {
        let sources: Vec<String> = definition.iter().map(|id| source(*id)).collect();
        let id = Uuid::from_u128(*number);
        format!(r#"{{"id":"{id}","recorded_at":{time},"sources":{sources:?}}}"#)
    };
    let lines: Vec<String> = of.iter().map(line).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    rows(BASE, &lines)
}

fn put(of: &[(u128, Option<u128>)], time: &str) -> Change {
    let decoded = records(of, time);
    Change::put(decoded.rows, decoded.given.into(), decoded.undated.into())
}

fn delete(numbers: &[u128], definition: Option<u128>) -> Change {
    Change::Delete {
        records: numbers.iter().copied().map(record).collect::<Vec<_>>().into(),
        definition: definition.map(|id| source(id).into()),
    }
}

const fn record(number: u128) -> RecordId {
    RecordId(Uuid::from_u128(number))
}

/// What one request does in a partition that holds `stored`.
fn merged(stored: &[(u128, Option<u128>)], changes: Vec<Change>) -> Outcome {
    let schema = Arc::clone(&data_type(BASE).layout.storage);
    let found = FoundRows {
        piece: PieceId(Uuid::from_u128(1)),
        ids: stored.iter().map(|(number, _)| record(*number)).collect(),
        rows: records(stored, AT_TEN).rows,
    };
    let stored = StoredRows::new(&schema, &[found]).unwrap();
    let mut asked = OrderedChanges::default();
    asked.extend(0, changes);
    merge(&schema, &asked, &stored).unwrap()
}

/// The numbers of the stored records that are gone.
fn dead(outcome: &Outcome) -> Vec<u128> {
    outcome.dead.iter().map(|(_, id)| id.0.as_u128()).collect()
}

const STORED: &[(u128, Option<u128>)] = &[(1, Some(TEA)), (2, Some(WALK)), (3, None)];

#[test]
fn rule_8_3_a_tombstone_for_an_annotation_deletes_what_belongs_to_it() {
    let outcome = merged(STORED, vec![delete(&[1, 2, 3, 4], Some(TEA))]);
    assert_eq!(dead(&outcome), [1]);
    assert_eq!((outcome.records_delta, outcome.updates), (-1, 1));
    let expected = Effect {
        deleted: 1,
        ..Effect::default()
    };
    assert_eq!(outcome.effects, [expected]);
    let nothing = merged(STORED, vec![delete(&[2, 3, 4], Some(TEA))]);
    assert!(dead(&nothing).is_empty());
    assert_eq!(
        (nothing.records_delta, nothing.updates, nothing.effects),
        (0, 0, vec![Effect::default()])
    );
}

#[test]
fn rule_8_3_a_tombstone_for_the_base_deletes_whatever_it_belongs_to() {
    let outcome = merged(STORED, vec![delete(&[1, 2, 3, 4], None)]);
    assert_eq!(dead(&outcome), [1, 2, 3]);
    assert_eq!((outcome.records_delta, outcome.effects[0].deleted), (-3, 3));
}

#[test]
fn rule_8_3_what_a_record_belongs_to_is_said_by_its_newest_row() {
    let moved = || put(&[(1, Some(WALK))], AT_TEN);
    let kept = merged(STORED, vec![moved(), delete(&[1], Some(TEA))]);
    assert_eq!(kept.add.map(|added| added.num_rows()), Some(1));
    assert_eq!((kept.effects[0].replaced, kept.effects[0].deleted), (1, 0));
    let gone = merged(STORED, vec![moved(), delete(&[1], Some(WALK))]);
    assert!(gone.add.is_none());
    assert_eq!((dead(&gone), gone.effects[0].deleted), (vec![1], 1));
    let back = vec![delete(&[1], Some(TEA)), moved(), delete(&[1], Some(TEA))];
    assert_eq!(merged(STORED, back).effects[0].replaced, 1);
    let twice = vec![delete(&[1], Some(TEA)), delete(&[1], None)];
    assert_eq!(merged(STORED, twice).effects[0].deleted, 1);
}

#[test]
fn rule_8_2_a_record_that_a_tombstone_for_another_annotation_names_keeps_its_time() {
    let again = put(&[(2, Some(WALK))], "null");
    let outcome = merged(STORED, vec![delete(&[2], Some(TEA)), again]);
    assert!(outcome.add.is_none());
    assert_eq!(outcome.effects[0].unchanged, 1);
}
