//! Versions that come back from an archive: who looks through them, and what two imports make of one.

use super::*;
use crate::catalog::documents::{Document, DocumentKind};
use crate::people::documents::BroughtBack;
use crate::store::contents::Content;

async fn document(bench: &Bench, id: Uuid) -> Document {
    let found = bench.catalog.document(DocumentKind::File, id).await.unwrap();
    found.unwrap()
}

/// Another installation, of the same person.
async fn elsewhere(bench: &Bench, scanned: bool) -> Bench {
    let mut there = Bench::sqlite().await;
    there.person = bench.person;
    there.files.settings.scanned = scanned;
    there
}

async fn taken(bench: &Bench, file: &File, bytes: &'static [u8]) -> Content {
    let steps = futures::stream::iter([Ok::<_, ()>(Bytes::from_static(bytes))]);
    let sha256 = file.sha256.as_deref().unwrap();
    let taken = bench.files.take_in(file.person, file.content, sha256, steps);
    taken.await.unwrap()
}

async fn note(bench: &Bench, outcome: ScanState, id: Uuid) {
    bench.pass(Duration::from_secs(1));
    let scanned = bench.get(id).await.scanned(outcome, bench.clock.now());
    let update = Files::update(&scanned).unwrap();
    assert!(bench.files.attempt(vec![update]).await.unwrap());
}

#[tokio::test]
async fn what_comes_back_waits_for_the_scanner_once() {
    let bench = Bench::sqlite().await;
    let id = bench.put("a", b"bytes").await;
    note(&bench, ScanState::Clean, id).await;
    let (file, kept) = (bench.get(id).await, document(&bench, id).await);
    let there = elsewhere(&bench, true).await;
    let content = taken(&there, &file, b"bytes").await;
    let outcome = there.files.bring_back(kept.clone(), Some(content)).await.unwrap();
    assert_eq!(outcome, BroughtBack::New);
    let back = there.get(id).await;
    assert_eq!((back.scan_state, back.last_scanned), (ScanState::Pending, None));
    assert!(matches!(there.bytes(id).await, Err(FilesError::Unscanned)));
    let again = there.files.bring_back(kept.clone(), None).await.unwrap();
    assert_eq!(again, BroughtBack::Same);
    there.pass(Duration::from_hours(1));
    note(&there, ScanState::Clean, id).await;
    let later = there.files.bring_back(kept, None).await.unwrap();
    assert_eq!(later, BroughtBack::Outdated);
    assert_eq!(there.bytes(id).await.unwrap(), b"bytes");
}

#[tokio::test]
async fn what_is_harmful_stays_so_and_without_a_scanner_all_stays_as_it_was() {
    for (scanned, was, becomes) in [
        (true, ScanState::Infected, ScanState::Infected),
        (true, ScanState::NotScanned, ScanState::Pending),
        (true, ScanState::Failed, ScanState::Pending),
        (false, ScanState::Clean, ScanState::Clean),
        (false, ScanState::Pending, ScanState::Pending),
    ] {
        let bench = Bench::sqlite().await;
        let id = bench.put("a", b"bytes").await;
        note(&bench, was, id).await;
        let kept = document(&bench, id).await;
        let there = elsewhere(&bench, scanned).await;
        there.files.bring_back(kept, None).await.unwrap();
        assert_eq!(there.get(id).await.scan_state, becomes, "{was:?}");
    }
}

#[tokio::test]
async fn what_is_here_already_keeps_its_verdict() {
    let mut bench = Bench::sqlite().await;
    let id = bench.put("a", b"bytes").await;
    note(&bench, ScanState::Clean, id).await;
    bench.files.settings.scanned = true;
    let kept = document(&bench, id).await;
    let outcome = bench.files.bring_back(kept, None).await.unwrap();
    assert_eq!(outcome, BroughtBack::Same);
    assert_eq!(bench.get(id).await.scan_state, ScanState::Clean);
}

#[tokio::test]
async fn of_two_imports_at_once_each_comes_to_its_end() {
    for there in Bench::all().await {
        let mut bench = Bench::sqlite().await;
        bench.person = there.person;
        let id = bench.put("a", b"bytes").await;
        let (file, kept) = (bench.get(id).await, document(&bench, id).await);
        let first = taken(&there, &file, b"bytes").await;
        let second = taken(&there, &file, b"bytes").await;
        let outcome = there.files.bring_back(kept.clone(), Some(first)).await.unwrap();
        assert_eq!(outcome, BroughtBack::New);
        let outcome = there.files.bring_back(kept, Some(second)).await.unwrap();
        assert_eq!(outcome, BroughtBack::Same);
        assert_eq!(there.bytes(id).await.unwrap(), b"bytes");
        assert_eq!((there.usage().await, there.objects().await), (5, 1));
    }
}

#[tokio::test]
async fn of_two_versions_with_one_name_the_one_that_was_uploaded_later_is_the_current_one() {
    for is_later_first in [false, true] {
        for there in Bench::all().await {
            let mut bench = Bench::sqlite().await;
            bench.person = there.person;
            let earlier = bench.put("a", b"one").await;
            let mut kept = vec![document(&bench, earlier).await];
            bench.pass(Duration::from_secs(1));
            let later = bench.put("a", b"two").await;
            kept.push(document(&bench, later).await);
            if is_later_first {
                kept.reverse();
            }
            // The second time nothing is left to be told apart.
            for version in kept.iter().chain(&kept) {
                there.files.bring_back(version.clone(), None).await.unwrap();
            }
            let (earlier, later) = (there.get(earlier).await, there.get(later).await);
            assert_eq!(earlier.state, FileState::Archived, "{is_later_first}");
            assert!(earlier.archived_at.is_some());
            assert_eq!(later.state, FileState::Uploaded, "{is_later_first}");
            let named = document(&there, later.id).await.name;
            assert_eq!(named.as_deref(), Some("/notes/a"));
        }
    }
}
