//! Archives that are not as they were written.

use std::path::Path;

use super::{archive, import, imported, some_records};
use crate::files::put;
use crate::harness::{Person, Setup};

async fn is_nobody(there: &Person) {
    assert!(there.all_samples("HeartRate").await.is_empty());
    let tags = there.get("/user/v1alpha1/tag").await.must_be(200).rows();
    assert!(tags.is_empty(), "{tags:?}");
}

#[tokio::test]
async fn a_flipped_bit_or_a_missing_end_anywhere_is_refused_before_anything_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    person
        .post("/user/v1alpha1/tag", &serde_json::json!({"name": "calm"}))
        .await
        .must_be(201);
    put(&person, "/", "note", b"bytes").await;
    let sound = archive(&person, folder.path()).await;
    let whole = std::fs::read(&sound).unwrap();
    let second = Setup::default().start();
    let there = second.person_called(person.id);
    let broken = folder.path().join("broken.zip");
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&broken, bytes).unwrap();
        let (text, status) = import(&second, &broken, None);
        assert_eq!(status, Some(1), "{what}: {text}");
        assert!(text.contains("damaged"), "{what}: {text}");
    };
    // Some places all over it, and every one of the last few hundred, where its directory and its digest are.
    let last = whole.len() - 1;
    let places = (0..12)
        .map(|n| n * whole.len() / 12)
        .chain((0..12).map(|n| last - n * 17));
    for place in places {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << (place % 8);
        refused(&flipped, &format!("byte {place} of {}", whole.len()));
    }
    for length in [0, 1, 21, 93, 94, whole.len() / 2, last] {
        refused(&whole[..length], &format!("{length} of {} bytes", whole.len()));
    }
    refused(&[whole.as_slice(), b"more"].concat(), "more than there was");
    is_nobody(&there).await;
    imported(&second, &sound, None);
    assert_eq!(there.all_samples("HeartRate").await.len(), 50);
}

#[tokio::test]
async fn what_is_no_archive_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let absent = folder.path().join("absent.zip");
    let (text, status) = import(&server, &absent, None);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("absent.zip"), "{text}");
    let other = folder.path().join("other.zip");
    std::fs::write(&other, "x".repeat(1000)).unwrap();
    let (text, status) = import(&server, &other, None);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("damaged"), "{text}");
    let (text, status) = import(&server, Path::new("/"), None);
    assert_eq!(status, Some(1), "{text}");
}
