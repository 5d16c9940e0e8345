//! The index agrees with the ids that it was made of.

use arrow::array::{Array as _, FixedSizeBinaryArray};
use bytes::Bytes;
use uuid::Uuid;

use super::filter::{AskedIds, Filter, may_be_in};
use super::hashed::HashedId;
use super::section::Section;
use super::table::{self, MOST_ROWS};
use super::writing::Indexing;
use crate::model::ids::RecordId;

fn ids(numbers: std::ops::Range<u32>) -> Vec<RecordId> {
    let id = |number: u32| Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_le_bytes());
    numbers.map(id).map(RecordId).collect()
}

fn column(ids: &[RecordId]) -> FixedSizeBinaryArray {
    FixedSizeBinaryArray::try_from_iter(ids.iter().map(RecordId::as_bytes)).unwrap()
}

/// An object that has nothing but indexes, and gaps before them.
struct Written {
    object: Vec<u8>,
    sections: Vec<Section>,
}

impl Written {
    /// Of ids that come in batches.
    fn of(ids: &[RecordId], batch: usize) -> Self {
        let mut object = vec![0; 7];
        let mut indexing = Indexing::default();
        for batch in ids.chunks(batch) {
            let batch = column(batch);
            let mut taken = 0;
            while taken < batch.len() {
                taken += indexing.take(&batch, taken);
                if indexing.is_full() {
                    object.extend(indexing.end_section(object.len() as u64).unwrap());
                    object.extend([0; 5]);
                }
            }
        }
        object.extend(indexing.end_section(object.len() as u64).unwrap_or_default());
        let said = indexing.said().unwrap().value.unwrap();
        Self {
            object,
            sections: serde_json::from_str(&said).unwrap(),
        }
    }

    fn read(&self, range: std::ops::Range<u64>) -> &[u8] {
        &self.object[range.start as usize..range.end as usize]
    }

    fn filter(&self, section: &Section) -> Filter {
        Filter::whole(Bytes::copy_from_slice(self.read(section.filter())))
    }

    /// The rows in which one of these ids may be, one by one.
    fn rows(&self, ids: &[HashedId]) -> Vec<Vec<std::ops::Range<usize>>> {
        let mut rows = vec![Vec::new(); ids.len()];
        for section in &self.sections {
            let filter = self.filter(section);
            for (id, rows) in ids.iter().zip(&mut rows) {
                let one = std::slice::from_ref(id);
                let suspects = filter.suspects(&AskedIds::new(&[id.id]));
                let block = self.read(section.block(id.hash));
                assert_eq!(
                    suspects,
                    one.iter()
                        .filter(|id| may_be_in(block, id))
                        .copied()
                        .collect::<Vec<_>>()
                );
                if !suspects.is_empty() {
                    let offsets = self.read(section.offsets(section.bucket(id.hash)));
                    let bucket = self.read(section.entries(offsets).unwrap());
                    let places = table::places(bucket, one);
                    rows.extend(places.into_iter().map(|place| section.rows_at(place)));
                }
            }
        }
        rows
    }
}

#[test]
fn every_id_is_found_where_it_is_and_few_others_anywhere() {
    for count in [1, 2, 16, 17, 128, 129, 1_023, 1_025, 20_000] {
        let there = ids(0..count);
        let written = Written::of(&there, 999);
        assert_eq!(written.sections.len(), 1);
        let range = written.sections[0].ids();
        assert_eq!(range.start(), there.iter().min().unwrap());
        assert_eq!(range.end(), there.iter().max().unwrap());
        let hashed: Vec<HashedId> = there.iter().copied().map(HashedId::new).collect();
        for (row, rows) in written.rows(&hashed).into_iter().enumerate() {
            assert!(
                rows.iter().any(|rows| rows.contains(&row)),
                "row {row} of {count}"
            );
            assert!(rows.iter().all(|rows| rows.end <= there.len()));
        }
        let strangers = AskedIds::new(&ids(100_000..200_000));
        let filter = written.filter(&written.sections[0]);
        let suspects = filter.suspects(&strangers).len();
        assert!(suspects < 300, "{suspects} of 100,000 beside {count}");
        let found = written.rows(strangers.as_slice());
        let found = found.iter().filter(|rows| !rows.is_empty()).count();
        assert!(found < 5, "{found} of 100,000 beside {count}");
    }
}

#[test]
fn a_filter_says_the_same_as_its_parts() {
    let there = ids(0..20_000);
    let written = Written::of(&there, 20_000);
    let section = &written.sections[0];
    let asked = AskedIds::new(&ids(15_000..50_000));
    let expected = written.filter(section).suspects(&asked);
    assert!((5_000..5_300).contains(&expected.len()), "{}", expected.len());
    for blocks in [
        1,
        2,
        7,
        100,
        section.blocks() - 1,
        section.blocks(),
        section.blocks() + 1,
    ] {
        let mut suspects = Vec::new();
        let mut end = section.filter().start;
        for (first, range) in section.parts(blocks) {
            assert_eq!(range.start, end);
            end = range.end;
            let content = Bytes::copy_from_slice(written.read(range));
            suspects.extend(Filter::part(content, first, section.blocks()).suspects(&asked));
        }
        assert_eq!(end, section.filter().end);
        assert_eq!(suspects, expected, "by {blocks} blocks");
    }
}

#[test]
fn what_is_too_much_for_one_section_goes_on_in_the_next() {
    let there = ids(0..MOST_ROWS as u32 + 5_000);
    let written = Written::of(&there, 300_000);
    assert_eq!(written.sections.len(), 2);
    let some = |row: &usize| row.is_multiple_of(997) || row.abs_diff(MOST_ROWS) < 3;
    let rows: Vec<usize> = (0..there.len()).filter(some).collect();
    let hashed: Vec<HashedId> = rows.iter().map(|row| HashedId::new(there[*row])).collect();
    for (row, found) in rows.into_iter().zip(written.rows(&hashed)) {
        assert!(found.iter().any(|rows| rows.contains(&row)), "row {row}");
    }
}

#[test]
fn nothing_is_written_of_no_rows() {
    let written = Written::of(&[], 1);
    assert_eq!(written.object.len(), 7);
    assert_eq!(written.sections, []);
}

#[test]
fn a_bucket_that_cannot_be_is_refused() {
    let written = Written::of(&ids(0..200), 200);
    let pair = |from: u32, until: u32| [from.to_le_bytes(), until.to_le_bytes()].concat();
    let entries = |offsets: &[u8]| written.sections[0].entries(offsets);
    assert!(entries(&pair(3, 200)).is_some());
    for offsets in [pair(4, 3), pair(0, 201), vec![0; 7]] {
        assert_eq!(entries(&offsets), None, "{offsets:?}");
    }
}
