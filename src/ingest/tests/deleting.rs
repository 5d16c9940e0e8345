//! What tombstones become: changes of many partitions that share the ids.

use super::*;
use crate::ingest::changes::Change;
use crate::ingest::decode::DecodeError;
use crate::ingest::deletions::deletions;
use crate::ingest::several::{NotTaken, Several};
use crate::ingest::tombstone::{Target, Tombstone};
use crate::ingest::upload::{PartitionChanges, Work};
use crate::model::ids::{PersonId, RecordId};

const TYPES: [&str; 3] = ["Event", "HeartRate", "StepCount"];
const ID_BYTES: usize = size_of::<RecordId>();

const fn record(number: u128) -> RecordId {
    RecordId(Uuid::from_u128(number))
}

fn targets() -> Vec<Target> {
    let target = |name: &&str| {
        let data_type = data_type(name);
        Target {
            data_type: data_type.id.clone(),
            layout: Arc::clone(&data_type.layout),
            definition: None,
        }
    };
    TYPES.iter().map(target).collect()
}

/// What is done to a partition: the numbers of the records deleted, or how many are put.
fn told(partition: &PartitionChanges) -> Vec<String> {
    let told = |change: &Change| match change {
        Change::Put { rows, .. } => format!("put {}", rows.num_rows()),
        Change::Delete { records, .. } => {
            let numbers = records.as_slice().iter().map(|id| id.0.as_u128());
            format!("delete {:?}", numbers.collect::<Vec<_>>())
        }
    };
    partition.changes.iter().map(told).collect()
}

#[test]
fn tombstones_for_many_partitions_hold_their_ids_once() {
    let tombstone = |number: u128| Tombstone {
        record: record(number % 3),
        data_type: if number < 3 { "Event" } else { "event" }.to_owned(),
        place: RecordPosition::Whole,
    };
    let tombstones: Vec<Tombstone> = (0..6).rev().map(tombstone).collect();
    let mut asked = Vec::new();
    let changes = deletions(&tombstones, |name| {
        asked.push(name.to_owned());
        targets()
    });
    assert_eq!(asked, ["event", "Event"], "once each");
    let types: Vec<&str> = changes
        .iter()
        .map(|partition| partition.data_type.as_str())
        .collect();
    assert_eq!(types, TYPES);
    for partition in &changes {
        assert_eq!(told(partition), ["delete [0, 1, 2]"]);
    }
    let work = Work::Small(changes);
    assert_eq!((work.bytes(), work.bytes_asked()), (3 * ID_BYTES, 9 * ID_BYTES));
}

#[test]
fn what_means_nothing_deletes_nothing() {
    let tombstone = Tombstone {
        record: record(1),
        data_type: "nothing".to_owned(),
        place: RecordPosition::Whole,
    };
    assert!(deletions(&[tombstone], |_| Vec::new()).is_empty());
    let mut several = Several::new(PersonId(Uuid::from_u128(7)));
    let nowhere = several.list_for(Vec::new());
    several.delete(nowhere, RecordPosition::Whole, record(1)).unwrap();
    assert!(several.finish().unwrap().0.is_empty());
}

#[test]
fn a_tombstone_is_not_put_among_the_rows() {
    let tombstones = COMPILED.get(&data_type("Tombstone")).unwrap();
    let line = format!(r#"{{"deleted_id":"{}","deleted_type":"HeartRate"}}"#, record(1).0);
    let mut several = Several::new(PersonId(Uuid::from_u128(7)));
    let refused = several.put(&tombstones, &context(), RecordPosition::Whole, line.as_bytes());
    assert!(
        matches!(refused, Err(NotTaken::Decode(DecodeError::Tombstone))),
        "{refused:?}"
    );
    assert!(several.finish().unwrap().0.is_empty());
}

#[test]
fn one_body_of_several_types_holds_its_ids_once_and_keeps_their_order() {
    let mut several = Several::new(PersonId(Uuid::from_u128(7)));
    let heart_rate = COMPILED.get(&data_type("HeartRate")).unwrap();
    let time = "2024-05-01T10:00:00Z";
    let line = format!(r#"{{"id":"{}","start_date":"{time}","value":60}}"#, record(1).0);
    let context = context();
    let everywhere = several.list_for(targets());
    assert_eq!(several.list_for(targets()), everywhere);
    several
        .delete(everywhere, RecordPosition::Line(0), record(1))
        .unwrap();
    several
        .put(&heart_rate, &context, RecordPosition::Line(1), line.as_bytes())
        .unwrap();
    several
        .delete(everywhere, RecordPosition::Line(2), record(0))
        .unwrap();
    several
        .delete(everywhere, RecordPosition::Line(3), record(1))
        .unwrap();
    several
        .put(&heart_rate, &context, RecordPosition::Line(4), line.as_bytes())
        .unwrap();
    several
        .delete(everywhere, RecordPosition::Line(5), record(2))
        .unwrap();
    let (changes, _) = several.finish().unwrap();
    let changes_of = |name: &str| {
        changes
            .iter()
            .find(|partition| partition.data_type.as_str() == name)
    };
    assert_eq!(
        told(changes_of("HeartRate").unwrap()),
        ["delete [1, 0]", "put 1", "delete [1, 2]", "put 1"]
    );
    for name in ["Event", "StepCount"] {
        assert_eq!(told(changes_of(name).unwrap()), ["delete [1, 0, 1, 2]"]);
    }
    let puts = changes.iter().flat_map(|partition| &partition.changes);
    let puts = puts.filter(|change| matches!(change, Change::Put { .. }));
    let puts: usize = puts.map(Change::bytes).sum();
    assert_eq!(Work::Small(changes).bytes(), puts + 4 * ID_BYTES);
}
