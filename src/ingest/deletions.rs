//! Turns the tombstones of one body into changes of partitions.
//!
//! Knows tombstones and changes; does not know which types there are, or what is stored.

use std::collections::HashMap;

use super::changes::Change;
use super::deleted_ids::DeletedIds;
use super::tombstone::{Target, Tombstone};
use super::upload::PartitionChanges;
use crate::model::ids::RecordId;

/// The changes of the partitions that may hold the records, as `targets_of` says.
pub fn deletions(
    tombstones: &[Tombstone],
    targets_of: impl FnMut(&str) -> Vec<Target>,
) -> Vec<PartitionChanges> {
    let mut changes = Vec::new();
    for (targets, mut records) in by_targets(tombstones, targets_of) {
        // Each partition looks the ids up in order, and most of them hold few.
        records.sort_unstable();
        records.dedup();
        let records = DeletedIds::from(records);
        for target in targets {
            delete_from(&mut changes, target, records.clone());
        }
    }
    changes
}

/// The ids that tombstones name, by where they delete. Many tombstones name few types, but a type has many
/// spellings.
fn by_targets(
    tombstones: &[Tombstone],
    mut targets_of: impl FnMut(&str) -> Vec<Target>,
) -> Vec<(Vec<Target>, Vec<RecordId>)> {
    let mut lists: Vec<(Vec<Target>, Vec<RecordId>)> = Vec::new();
    let mut meant = HashMap::new();
    let mut named: HashMap<&str, usize> = HashMap::new();
    for tombstone in tombstones {
        let name = tombstone.data_type.as_str();
        let number = *named.entry(name).or_insert_with(|| {
            let targets = targets_of(name);
            let places: Vec<_> = targets.iter().map(Target::place).collect();
            *meant.entry(places).or_insert_with(|| {
                lists.push((targets, Vec::new()));
                lists.len() - 1
            })
        });
        if let Some((_, records)) = lists.get_mut(number) {
            records.push(tombstone.record);
        }
    }
    lists
}

fn delete_from(changes: &mut Vec<PartitionChanges>, target: Target, records: DeletedIds) {
    let Target {
        data_type,
        layout,
        definition,
    } = target;
    let change = Change::Delete { records, definition };
    let known = changes
        .iter_mut()
        .find(|partition| partition.data_type == data_type);
    match known {
        Some(partition) => partition.changes.push(change),
        None => changes.push(PartitionChanges {
            data_type,
            layout,
            changes: vec![change],
        }),
    }
}
