//! The outside of archives: what is written is read back, whatever it is, and nothing else is taken for it.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::people::takeout::archive::Archive;
use crate::people::takeout::format::{
    ArchiveContents, Counts, FORMAT, FORMAT_VERSION, MANIFEST, MemberEntry,
};
use crate::people::takeout::zip::{COMMENT, Packing, ZipWriter};

const NOW: Instant = Instant::from_micros(1_700_000_000_123_456);

/// A member to write: its name, how it is packed, whether it might become very large, and its bytes.
type Given = (String, bool, bool, Vec<u8>);

fn written(given: &[Given]) -> Vec<u8> {
    let mut zip = ZipWriter::new(NOW);
    let mut archive = Vec::new();
    let mut members = Vec::new();
    for (name, deflated, large, bytes) in given {
        let packing = if *deflated {
            Packing::Deflated
        } else {
            Packing::Stored
        };
        let most = if *large { u64::MAX } else { bytes.len() as u64 };
        archive.extend_from_slice(&zip.begin(name, packing, most));
        for some in bytes.chunks(7) {
            archive.extend_from_slice(&zip.add(Bytes::copy_from_slice(some)).unwrap());
        }
        let (tail, member) = zip.end().unwrap();
        archive.extend_from_slice(&tail);
        assert_eq!(member.bytes, bytes.len() as u64);
        members.push(MemberEntry {
            name: name.clone(),
            bytes: member.bytes,
            sha256: hexadecimal(&member.sha256),
            data_type: None,
            count: None,
        });
    }
    let manifest = ArchiveContents {
        format: FORMAT.to_owned(),
        format_version: FORMAT_VERSION,
        person: PersonId(uuid::Uuid::from_u128(1)),
        created_at: NOW.to_rfc3339(),
        source_prefix: "com.almanac".to_owned(),
        counts: Counts::default(),
        left_out: Vec::new(),
        removed: Vec::new(),
        members,
    };
    let manifest = serde_json::to_vec(&manifest).unwrap();
    archive.extend_from_slice(&zip.begin(MANIFEST, Packing::Deflated, 1 << 20));
    archive.extend_from_slice(&zip.add(manifest.into()).unwrap());
    archive.extend_from_slice(&zip.end().unwrap().0);
    archive.extend_from_slice(&zip.finish());
    let digest = hexadecimal(&Sha256::digest(&archive));
    archive.extend_from_slice(format!("{COMMENT}{digest}").as_bytes());
    archive
}

fn opened(bytes: &[u8]) -> Option<Archive> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    // The file stays readable through its handle.
    Archive::open(file.path()).ok()
}

fn members() -> impl Strategy<Value = Vec<Given>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let member = (any::<bool>(), any::<bool>(), bytes);
    prop::collection::btree_map("[a-z]{1,8}(/[a-zé~]{1,8})?", member, 0..6).prop_map(|members| {
        members
            .into_iter()
            .map(|(name, (deflated, large, bytes))| (name, deflated, large, bytes))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever members are written, they are read back as they were.
    #[test]
    fn what_is_written_is_read_back(given in members()) {
        let archive = opened(&written(&given)).unwrap();
        for (name, deflated, _, bytes) in &given {
            let found = archive.unpacked(name).unwrap();
            prop_assert_eq!(&found, bytes);
            if !deflated {
                let mut region = archive.region(name).unwrap().unwrap();
                let mut found = Vec::new();
                region.read_to_end(&mut found).unwrap();
                prop_assert_eq!(&found, bytes);
            }
        }
        prop_assert!(archive.region("absent").unwrap().is_none());
    }

    /// A bit that flipped anywhere, or an end that is missing anywhere, and nothing is read.
    #[test]
    fn no_other_archive_is_taken_for_it(given in members(), place: prop::sample::Index, bit in 0..8_u8) {
        let archive = written(&given);
        let place = place.index(archive.len());
        let mut flipped = archive.clone();
        flipped[place] ^= 1 << bit;
        prop_assert!(opened(&flipped).is_none(), "a bit of byte {} of {}", place, archive.len());
        prop_assert!(opened(&archive[..place]).is_none(), "{} of {} bytes", place, archive.len());
    }
}

#[test]
fn a_member_does_not_grow_beyond_what_its_head_has_room_for() {
    let mut zip = ZipWriter::new(NOW);
    zip.begin("a", Packing::Stored, 10);
    assert!(
        zip.add(Bytes::from_static(b"more than was announced is no harm"))
            .is_ok()
    );
    assert!(zip.end().is_ok());
    assert!(zip.add(Bytes::from_static(b"between members")).is_err());
    assert!(zip.end().is_err());
}

#[test]
fn an_archive_in_a_form_that_is_not_known_says_so() {
    let sound = written(&[]);
    assert!(opened(&sound).is_some());
    assert!(opened(b"").is_none());
    assert!(opened(&[0; 200]).is_none());
}

/// The numbers of a list that is a member, or the first thing that is wrong with it.
fn listed(text: &str) -> Result<Vec<u32>, String> {
    let given = ("list.json".to_owned(), true, false, text.as_bytes().to_vec());
    let archive = opened(&written(&[given])).unwrap();
    let elements = archive.list("list.json").unwrap();
    let elements: Result<_, _> = elements.collect();
    elements.map_err(|error| error.to_string())
}

#[test]
fn every_line_of_a_list_but_its_ends_holds_an_element() {
    assert_eq!(listed("[\n]\n"), Ok(vec![]));
    assert_eq!(listed("[\n1,\n2\n]\n"), Ok(vec![1, 2]));
    for (text, expected) in [
        ("[\n\n]\n", "line 2 holds no element"),
        ("[\n1,\n\n\n2\n]\n", "line 3 holds no element"),
        ("[\n[\n]\n", "line 2 holds no element"),
        ("[\n1\n]\n\n", "something follows"),
        ("[\n1\n]\n2\n", "something follows"),
    ] {
        let error = listed(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
