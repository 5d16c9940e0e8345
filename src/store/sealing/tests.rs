//! Sealing: what was sealed opens as it was, only with its key and only in its place.

mod short_parts;

use bytes::Bytes;
use futures::TryStreamExt as _;
use uuid::Uuid;

use super::*;
use crate::store::objects::ObjectStoreSettings;

const FIRST: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const SECOND: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
const OWNER: PersonId = PersonId(Uuid::from_u128(1));
const OTHER: PersonId = PersonId(Uuid::from_u128(2));

struct Bench {
    directory: tempfile::TempDir,
    beneath: ObjectStorage,
    above: ObjectStorage,
    keys: Arc<PersonKeys>,
}

impl Bench {
    fn new() -> Self {
        Self::with(FIRST, tempfile::tempdir().unwrap())
    }

    /// A store with the keys of people from before, if there are any in `directory`.
    fn with(masters: &str, directory: tempfile::TempDir) -> Self {
        let at = |name: &str| ObjectStoreSettings::Local(directory.path().join(name));
        let open = |name: &str| ObjectStorage::open(&at(name)).unwrap();
        let wrapping = Wrapping::new(MasterKeys::parse(masters), None);
        let keys = Arc::new(PersonKeys::new(open("keys"), wrapping));
        Self {
            beneath: open("objects"),
            above: over(open("objects"), &keys),
            keys,
            directory,
        }
    }

    /// The only file below a folder.
    fn file_in(&self, folder: &str) -> std::path::PathBuf {
        let folder = self.directory.path().join("objects").join(folder);
        let mut entries = std::fs::read_dir(folder).unwrap();
        entries.next().unwrap().unwrap().path()
    }
}

fn path(person: PersonId, name: &str) -> String {
    format!("data/{person}/{name}")
}

/// Nothing in it repeats soon.
fn content(bytes: usize) -> Bytes {
    (0..bytes as u64)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

#[tokio::test]
async fn what_is_read_is_what_was_written_wherever_it_begins_and_ends() {
    let bench = Bench::new();
    for length in [0, 1, 65_535, 65_536, 65_537, 200_000, 9_000_000] {
        let (path, whole) = (path(OWNER, &format!("{length}.parquet")), content(length));
        let mut upload = bench.above.upload(&path).unwrap();
        for part in whole.chunks(70_001) {
            upload.write(Bytes::copy_from_slice(part)).await.unwrap();
        }
        upload.finish().await.unwrap();
        assert!(bench.above.get(&path).await.unwrap() == whole, "{length}");
        assert_eq!(bench.above.size(&path).await.unwrap(), length as u64);
        let edges = [0, 1, 40, 65_535, 65_536, 131_072, length / 2, length];
        let mut ranges = Vec::new();
        for from in edges {
            for until in edges {
                if from < until && until <= length {
                    let range = from as u64..until as u64;
                    let read = bench.above.get_range(&path, range.clone()).await.unwrap();
                    assert!(read == whole[from..until], "{length}: {range:?}");
                    ranges.push(range);
                }
            }
        }
        let parts = bench.above.get_ranges(&path, &ranges).await.unwrap();
        for (range, part) in ranges.iter().zip(parts) {
            assert!(
                part == whole[range.start as usize..range.end as usize],
                "{range:?}"
            );
        }
    }
}

#[tokio::test]
async fn beneath_there_is_nothing_of_it_and_above_nothing_tells() {
    let bench = Bench::new();
    let (path, secret) = (path(OWNER, "note"), Bytes::from_static(b"nobody is to read this"));
    bench.above.put(&path, secret.clone()).await.unwrap();
    let stored = std::fs::read(bench.file_in(&format!("data/{OWNER}"))).unwrap();
    assert!(
        !stored
            .windows(6)
            .any(|part| secret.windows(6).any(|word| part == word))
    );
    assert!(matches!(
        bench.beneath.get(&path).await,
        Err(StoreError::Missing { .. })
    ));
    let listed: Vec<_> = bench.above.list("data").unwrap().try_collect().await.unwrap();
    assert_eq!(
        (listed[0].path.as_str(), listed[0].bytes),
        (path.as_str(), secret.len() as u64)
    );
    assert!(matches!(
        bench.above.put(&path, content(7)).await,
        Err(StoreError::Exists { .. })
    ));
    bench.above.delete(&path).await.unwrap();
    assert!(matches!(
        bench.above.get(&path).await,
        Err(StoreError::Missing { .. })
    ));
    let left: Vec<_> = bench.above.list("data").unwrap().try_collect().await.unwrap();
    assert_eq!(left, []);
}

#[tokio::test]
async fn whoever_finds_a_name_claimed_reads_what_takes_the_place_of_the_claim() {
    let bench = Bench::new();
    // Another node, which remembers on its own.
    let other = over(bench.beneath.clone(), &bench.keys);
    let (path, large) = (path(OWNER, "large"), content(3 << 20));
    let mut upload = bench.above.upload_contested(&path).unwrap();
    upload.write(large.clone()).await.unwrap();
    for store in [&bench.above, &other] {
        let listed: Vec<_> = store.list("data").unwrap().try_collect().await.unwrap();
        assert!(listed.len() == 1 && listed[0].is_claim());
        let put = store.put(&path, content(7)).await;
        assert!(matches!(put, Err(StoreError::Exists { .. })), "{put:?}");
    }
    upload.finish().await.unwrap();
    for store in [&bench.above, &other] {
        assert!(store.get(&path).await.unwrap() == large);
    }
}

#[tokio::test]
async fn what_is_nobodys_and_what_is_older_stays_as_it_is() {
    let bench = Bench::new();
    let old = path(OWNER, "old");
    bench.beneath.put(&old, content(100)).await.unwrap();
    assert_eq!(bench.above.get(&old).await.unwrap(), content(100));
    bench.above.delete(&old).await.unwrap();
    assert!(bench.beneath.get(&old).await.is_err());
    bench.above.put("identity", content(10)).await.unwrap();
    assert_eq!(bench.beneath.get("identity").await.unwrap(), content(10));
}

#[tokio::test]
async fn a_changed_bit_and_a_block_or_an_object_in_anothers_place_are_damage() {
    let bench = Bench::new();
    let (one, folder) = (path(OWNER, "one"), format!("data/{OWNER}"));
    bench.above.put(&one, content(200_000)).await.unwrap();
    let file = bench.file_in(&folder);
    let sealed = std::fs::read(&file).unwrap();
    let block = 65_536 + 16;
    let heading = sealed.len() - (200_000 + 4 * 16);
    let mut swapped = sealed.clone();
    swapped[heading..heading + block].copy_from_slice(&sealed[heading + block..heading + 2 * block]);
    let mut flipped = sealed.clone();
    flipped[heading + 100] ^= 1;
    let mut salted = sealed.clone();
    salted[heading - 1] ^= 1;
    let mut formless = sealed.clone();
    formless[0] ^= 1;
    let zeros = vec![0; sealed.len()];
    let cut = [0, 5, heading - 1, heading + 5, sealed.len() - 1].map(|length| sealed[..length].to_vec());
    for damaged in [swapped, flipped, salted, formless, zeros].into_iter().chain(cut) {
        std::fs::write(&file, damaged).unwrap();
        // Nothing of it is remembered.
        let above = over(bench.beneath.clone(), &bench.keys);
        let read = above.get(&one).await;
        assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    }
    // Cut off after its heading was read, which is remembered until a part is not there.
    std::fs::write(&file, &sealed).unwrap();
    assert_eq!(bench.above.get(&one).await.unwrap(), content(200_000));
    std::fs::write(&file, "").unwrap();
    bench.above.get(&one).await.unwrap_err();
    let read = bench.above.get(&one).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    std::fs::write(&file, &sealed).unwrap();
    let elsewhere = file.with_file_name("two.sealed");
    std::fs::rename(&file, elsewhere).unwrap();
    let moved = bench.above.get(&path(OWNER, "two")).await;
    assert!(matches!(moved, Err(StoreError::Corrupt { .. })), "{moved:?}");
}

#[tokio::test]
async fn a_destroyed_key_is_the_end_of_all_it_sealed_and_of_nothing_else() {
    let bench = Bench::new();
    let (one, other) = (path(OWNER, "one"), path(OTHER, "one"));
    for path in [&one, &other] {
        bench.above.put(path, content(1000)).await.unwrap();
    }
    bench.keys.forget(OWNER).await.unwrap();
    assert!(!bench.keys.has(OWNER).await.unwrap());
    // What is missing is a key: nothing is damaged, and nobody is to conclude that it is.
    assert!(matches!(
        bench.above.get(&one).await,
        Err(StoreError::Unavailable { .. })
    ));
    assert_eq!(bench.above.get(&other).await.unwrap(), content(1000));
    bench.above.put(&path(OWNER, "two"), content(10)).await.unwrap();
    assert_eq!(bench.above.get(&path(OWNER, "two")).await.unwrap(), content(10));
    let lost = bench.above.get(&one).await;
    assert!(matches!(lost, Err(StoreError::Corrupt { .. })), "{lost:?}");
}

#[tokio::test]
async fn what_is_remembered_of_objects_and_keys_can_be_forgotten() {
    let bench = Bench::new();
    let (cut_off, keyless) = (path(OWNER, "one"), path(OTHER, "one"));
    for path in [&cut_off, &keyless] {
        bench.above.put(path, content(1000)).await.unwrap();
        assert_eq!(bench.above.get(path).await.unwrap(), content(1000));
    }
    let key = format!("keys/{OTHER}.key");
    std::fs::remove_file(bench.directory.path().join(key)).unwrap();
    std::fs::write(bench.file_in(&format!("data/{OWNER}")), "").unwrap();
    assert_eq!(bench.above.get(&keyless).await.unwrap(), content(1000));
    bench.above.forget_all();
    let read = bench.above.get(&keyless).await;
    assert!(matches!(read, Err(StoreError::Unavailable { .. })), "{read:?}");
    // With its heading remembered, only the second read would tell.
    let read = bench.above.get(&cut_off).await;
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn another_master_key_takes_over_while_the_first_still_opens() {
    let bench = Bench::new();
    let path = path(OWNER, "one");
    bench.above.put(&path, content(10)).await.unwrap();
    let both = Bench::with(&format!("{SECOND}\n{FIRST}\n"), bench.directory);
    assert_eq!(both.above.get(&path).await.unwrap(), content(10));
    let second = Bench::with(SECOND, both.directory);
    assert!(matches!(
        second.above.get(&path).await,
        Err(StoreError::Unavailable { .. })
    ));
}

#[tokio::test]
async fn a_blob_of_the_tail_opens_as_the_piece_that_it_is() {
    let bench = Bench::new();
    let blob = content(500);
    let sealed = bench.keys.seal_blob(OWNER, b"piece", &blob).await.unwrap();
    assert!(PersonKey::is_sealed(&sealed) && !sealed.windows(16).any(|part| blob[..16] == *part));
    let key = bench.keys.key_of(OWNER).await.unwrap();
    assert_eq!(key.open_blob(b"piece", &sealed).unwrap(), blob);
    assert!(key.open_blob(b"another", &sealed).is_err());
    let stranger = bench.keys.ensured(OTHER).await.unwrap();
    assert!(stranger.open_blob(b"piece", &sealed).is_err());
}

#[test]
fn a_master_key_is_private_and_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("master.key");
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&file, permissions).unwrap();
    };
    std::fs::write(&file, format!("{FIRST}\n")).unwrap();
    mode(0o644);
    assert!(matches!(
        MasterKeys::read(&file),
        Err(MasterKeyError::Exposed { .. })
    ));
    mode(0o600);
    let read = MasterKeys::read(&file).unwrap();
    assert!(!format!("{read:?}").contains(FIRST));
    for wrong in [
        "",
        "0001",
        &format!("{FIRST}\nand a note"),
        &FIRST.replace('0', "é"),
        &FIRST.replacen("00", "+0", 1),
    ] {
        std::fs::write(&file, wrong).unwrap();
        assert!(matches!(
            MasterKeys::read(&file),
            Err(MasterKeyError::Malformed { .. })
        ));
    }
}

#[tokio::test]
async fn who_has_no_keys_is_refused_a_store_in_which_things_are_sealed() {
    let bench = Bench::new();
    refuse_marked(&bench.beneath).await.unwrap();
    mark(&bench.beneath, &bench.keys, false).await.unwrap();
    mark(&bench.beneath, &bench.keys, false).await.unwrap();
    let refused = refuse_marked(&bench.beneath).await.unwrap_err().to_string();
    assert!(refused.contains("ALMANAC_MASTER_KEY_FILE"), "{refused}");
}

#[tokio::test]
async fn a_store_is_opened_with_the_place_of_keys_that_it_was_sealed_from() {
    let (bench, other) = (Bench::new(), Bench::new());
    bench.keys.ensured(OWNER).await.unwrap();
    mark(&bench.beneath, &bench.keys, false).await.unwrap();
    // Neither an empty place nor that of another store.
    for _ in 0..2 {
        for refused in [
            compare(&bench.beneath, &other.keys, false).await.unwrap_err(),
            mark(&bench.beneath, &other.keys, false).await.unwrap_err(),
        ] {
            assert!(refused.to_string().contains("another place"), "{refused}");
        }
        mark(&other.beneath, &other.keys, false).await.unwrap();
    }
    mark(&bench.beneath, &bench.keys, false).await.unwrap();
    // Whoever insists has moved the keys without the name of their place.
    mark(&bench.beneath, &other.keys, true).await.unwrap();
    mark(&bench.beneath, &other.keys, false).await.unwrap();
    assert!(mark(&bench.beneath, &bench.keys, false).await.is_err());
}

#[tokio::test]
async fn who_only_compares_marks_neither_the_store_nor_the_place() {
    let bench = Bench::new();
    for insists in [false, true] {
        compare(&bench.beneath, &bench.keys, insists).await.unwrap();
    }
    assert!(bench.beneath.version(MARK).await.unwrap().is_none());
    assert!(!bench.directory.path().join("keys/place.json").exists());
    // Through the seal it is the same mark.
    mark(&bench.above, &bench.keys, false).await.unwrap();
    compare(&bench.beneath, &bench.keys, false).await.unwrap();
    assert!(refuse_marked(&bench.beneath).await.is_err());
}

#[tokio::test]
async fn a_store_from_before_places_had_names_takes_a_place_with_keys_and_no_empty_one() {
    let (bench, other) = (Bench::new(), Bench::new());
    let before = Bytes::from_static(b"{\"format\":1}");
    bench.beneath.put(MARK, before.clone()).await.unwrap();
    bench.beneath.put(&path(OWNER, "a"), content(10)).await.unwrap();
    let refused = mark(&bench.beneath, &other.keys, false).await.unwrap_err();
    assert!(refused.to_string().contains("another place"), "{refused}");
    assert_eq!(bench.beneath.get(MARK).await.unwrap(), before);
    bench.keys.ensured(OWNER).await.unwrap();
    mark(&bench.beneath, &bench.keys, false).await.unwrap();
    assert!(mark(&bench.beneath, &other.keys, false).await.is_err());
}

#[tokio::test]
async fn no_key_is_made_beside_keys_that_another_master_wrapped() {
    let bench = Bench::new();
    bench.keys.ensured(OWNER).await.unwrap();
    let strange = Bench::with(SECOND, bench.directory);
    let newcomer = PersonId(Uuid::from_u128(77));
    let refused = strange.keys.ensured(newcomer).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused}");
    assert!(!strange.keys.has(newcomer).await.unwrap());
    let again = Bench::with(FIRST, strange.directory);
    again.keys.ensured(newcomer).await.unwrap();
}
