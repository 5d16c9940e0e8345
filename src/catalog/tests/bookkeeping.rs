//! What the catalogue remembers besides pieces: people, sources, definitions, leases, and what waits for
//! upkeep.

use super::super::deletions::{NoticedDeletion, STILL_APPEARS};
use super::super::estates::KnownManifest;
use super::super::records::StoredDefinition;
use super::*;

/// The notice that somebody's manifest is to be written, if there is one.
async fn urgent(catalog: &Catalog, owner: PersonId) -> Option<NoticedDeletion> {
    let waiting = catalog.people_needing_manifest(None, None).await.unwrap().sound;
    waiting.into_iter().find(|notice| notice.person == owner)
}

#[tokio::test]
async fn a_lease_is_held_by_one_until_it_ends() {
    for bench in Bench::all().await {
        let length = std::time::Duration::from_millis(300);
        let name = Uuid::now_v7().to_string();
        let acquire = async |holder: &str| bench.catalog.acquire_lease(&name, holder, length).await.unwrap();
        assert!(acquire("a").await);
        assert!(!acquire("b").await);
        assert!(acquire("a").await);
        bench.pass(length).await;
        assert!(acquire("b").await);
        bench.catalog.release_lease(&name, "a").await.unwrap();
        assert!(acquire("b").await && !acquire("a").await);
        bench.catalog.release_lease(&name, "b").await.unwrap();
        assert!(acquire("a").await);
    }
}

#[tokio::test]
async fn a_lease_is_renewed_until_somebody_else_has_had_it() {
    for bench in Bench::all().await {
        let length = std::time::Duration::from_millis(300);
        let name = Uuid::now_v7().to_string();
        let acquire = async |holder: &str| bench.catalog.acquire_lease(&name, holder, length).await.unwrap();
        let renew = async |holder: &str| bench.catalog.renew_lease(&name, holder, length).await.unwrap();
        assert!(!renew("a").await, "it was never taken");
        assert!(acquire("a").await);
        assert!(renew("a").await && !renew("b").await);
        bench.pass(length).await;
        assert!(!renew("b").await, "nobody renews what they do not have");
        assert!(renew("a").await, "nobody took it");
        bench.pass(length).await;
        assert!(acquire("b").await);
        assert!(!renew("a").await);
        bench.catalog.release_lease(&name, "b").await.unwrap();
        assert!(!renew("a").await, "somebody else had it");
        assert!(acquire("a").await);
    }
}

#[tokio::test]
async fn of_manifests_the_highest_is_known_whichever_is_noted_last() {
    for bench in Bench::all().await {
        let (catalog, owner) = (&bench.catalog, person());
        catalog.ensure_person(owner, None).await.unwrap();
        let manifest = |number| KnownManifest {
            number,
            state: number,
        };
        let known = catalog.known_manifest(owner).await.unwrap();
        assert_eq!(known, Some(KnownManifest::NONE));
        catalog.expect_first_manifest(owner).await.unwrap();
        assert_eq!(catalog.known_manifest(owner).await.unwrap(), None);
        for (number, highest) in [(2, 2), (1, 2), (4, 4), (3, 4), (4, 4)] {
            let noted = catalog.note_manifest(owner, manifest(number), false).await;
            assert_eq!(noted.unwrap(), number == highest);
            let known = catalog.known_manifest(owner).await.unwrap();
            assert_eq!(known, Some(manifest(highest)));
        }
        let noting = (5..13).map(|number| catalog.note_manifest(owner, manifest(number), false));
        for noted in futures::future::join_all(noting).await {
            noted.unwrap();
        }
        catalog.expect_first_manifest(owner).await.unwrap();
        let known = catalog.known_manifest(owner).await.unwrap();
        assert_eq!(known, Some(manifest(12)));
    }
}

#[tokio::test]
async fn older_manifests_that_may_still_appear_stay_noticed_until_they_cannot() {
    // Only of the bench's own database, since an hour of the other is an hour.
    let bench = Bench::sqlite().await;
    let (catalog, owner) = (&bench.catalog, person());
    catalog.ensure_person(owner, None).await.unwrap();
    let urgent = async || urgent(catalog, owner).await;
    catalog.request_manifest(owner).await.unwrap();
    let asked = urgent().await.unwrap();
    catalog.expect_older_manifests(owner).await.unwrap();
    let expected = urgent().await.unwrap();
    catalog.forget_deletion(&asked).await.unwrap();
    catalog.forget_deletion(&expected).await.unwrap();
    assert_eq!(urgent().await, Some(expected.clone()));
    // Somebody asks for more while that is worked on.
    catalog.request_manifest(owner).await.unwrap();
    bench.pass(STILL_APPEARS).await;
    catalog.forget_deletion(&expected).await.unwrap();
    let later = urgent().await.unwrap();
    bench.pass(std::time::Duration::from_micros(1)).await;
    catalog.forget_deletion(&later).await.unwrap();
    assert_eq!(urgent().await, None);
    // A clock that was ahead keeps nothing.
    bench.pass(STILL_APPEARS).await;
    catalog.expect_older_manifests(owner).await.unwrap();
    let ahead = urgent().await.unwrap();
    bench.clock.set(Instant::from_micros(1_000 * MINUTE));
    catalog.forget_deletion(&ahead).await.unwrap();
    assert_eq!(urgent().await, None);
}

#[tokio::test]
async fn a_notice_that_is_given_while_the_last_one_is_worked_on_stays() {
    for bench in Bench::all().await {
        let (catalog, owner) = (&bench.catalog, person());
        catalog.ensure_person(owner, None).await.unwrap();
        let urgent = async || urgent(catalog, owner).await;
        catalog.request_manifest(owner).await.unwrap();
        let first = urgent().await.unwrap();
        bench.pass(std::time::Duration::from_millis(1)).await;
        catalog.request_manifest(owner).await.unwrap();
        catalog.forget_deletion(&first).await.unwrap();
        let second = urgent().await.unwrap();
        catalog.forget_deletion(&second).await.unwrap();
        assert_eq!(urgent().await, None);
    }
}

#[tokio::test]
async fn a_definition_changes_only_from_the_version_that_was_read() {
    for bench in Bench::all().await {
        let owner = person();
        bench.catalog.ensure_person(owner, Some("Ada")).await.unwrap();
        let now = Instant::from_micros(5);
        let first = StoredDefinition {
            id: Uuid::now_v7(),
            person: owner,
            base: "Event".to_owned(),
            body: "{}".to_owned(),
            version: 1,
            deprecated: false,
            created_at: now,
            updated_at: now,
        };
        bench.catalog.insert_definition(&first).await.unwrap();
        assert!(matches!(
            bench.catalog.insert_definition(&first).await,
            Err(CatalogError::Exists { .. })
        ));
        let second = StoredDefinition {
            version: 2,
            deprecated: true,
            ..first.clone()
        };
        assert!(bench.catalog.update_definition(&second, 1).await.unwrap());
        assert!(!bench.catalog.update_definition(&first, 1).await.unwrap());
        assert_eq!(
            bench.catalog.definitions_of(owner).await.unwrap(),
            std::slice::from_ref(&second)
        );
        assert_eq!(bench.catalog.definition(first.id).await.unwrap(), Some(second));
    }
}

#[tokio::test]
async fn preferences_and_meta_are_kept() {
    for bench in Bench::all().await {
        let person = person();
        assert!(matches!(
            bench.catalog.swap_preferences(person, None, "{}").await,
            Err(CatalogError::Missing { .. })
        ));
        assert!(bench.catalog.ensure_person(person, Some("Ada")).await.unwrap());
        assert!(!bench.catalog.ensure_person(person, Some("Bob")).await.unwrap());
        assert!(bench.catalog.swap_preferences(person, None, "{}").await.unwrap());
        assert!(
            !bench
                .catalog
                .swap_preferences(person, None, "{\"zone\":\"lost\"}")
                .await
                .unwrap()
        );
        assert!(
            bench
                .catalog
                .swap_preferences(person, Some("{}"), "{\"zone\":\"UTC\"}")
                .await
                .unwrap()
        );
        let known = bench.catalog.person(person).await.unwrap().unwrap();
        assert_eq!(
            (known.name.as_deref(), known.preferences.as_deref()),
            (Some("Ada"), Some("{\"zone\":\"UTC\"}"))
        );
        let name = Uuid::now_v7().to_string();
        assert_eq!(bench.catalog.fact(&name).await.unwrap(), None);
        bench.catalog.set_fact(&name, "1").await.unwrap();
        assert_eq!(bench.catalog.fact(&name).await.unwrap().as_deref(), Some("1"));
    }
}

#[tokio::test]
async fn the_backlog_and_the_listing_of_objects_name_what_is_there() {
    for bench in Bench::all().await {
        let person = person();
        let begin = bench.catalog.now().await.unwrap();
        bench
            .catalog
            .commit(one(change(
                person,
                NOTHING,
                vec![tail(b"abc"), tail(b"de"), object("data/listed.parquet")],
            )))
            .await
            .unwrap();
        let backlog = bench.catalog.tail_backlog().await.unwrap().sound;
        let ours = backlog.iter().find(|backlog| backlog.person == person).unwrap();
        assert_eq!((ours.pieces, ours.bytes), (2, 5));
        let end = bench.catalog.now().await.unwrap();
        assert!((begin..=end).contains(&ours.oldest), "{:?}", ours.oldest);
        let mut paths = Vec::new();
        let mut after = None;
        loop {
            let page = bench.catalog.object_paths(after.as_ref()).await.unwrap();
            let Some(last) = page.last().cloned() else { break };
            paths.extend(page.into_iter().map(|object| object.path));
            after = Some(last);
        }
        assert!(paths.contains(&"data/listed.parquet".to_owned()));
        let crowded = bench.catalog.compaction_candidates(3).await.unwrap().sound;
        assert!(
            crowded
                .iter()
                .any(|found| (found.person, &found.data_type) == (person, &heart_rate()))
        );
    }
}

#[tokio::test]
async fn retired_objects_are_listed_page_by_page_the_longest_retired_first() {
    // Only of the bench's own database, since the other is shared.
    let bench = Bench::sqlite().await;
    let person = person();
    let pieces = ["d", "c", "b", "a", "e"].map(object);
    let first = one(change(person, NOTHING, pieces.to_vec()));
    bench.catalog.commit(first).await.unwrap();
    for (number, retired) in [&pieces[..1], &pieces[1..3], &pieces[3..]]
        .into_iter()
        .enumerate()
    {
        let merged = NewPiece {
            rows: retired.len() as i64,
            ..object(&format!("merged-{number}"))
        };
        let replace = Replace {
            person,
            data_type: heart_rate(),
            inputs: retired.iter().map(|piece| piece.id).collect(),
            applied: Vec::new(),
            output: vec![merged],
        };
        assert_eq!(bench.catalog.replace(replace).await.unwrap(), CommitOutcome::Done);
        bench.pass(std::time::Duration::from_secs(1)).await;
    }
    let ever = Instant::from_micros(i64::MAX);
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let retired = bench.catalog.retired_objects(ever, after.as_ref(), 2);
        let page = retired.await.unwrap();
        let Some(last) = page.last().cloned() else { break };
        after = Some(last);
        pages.push(page.into_iter().map(|object| object.path).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec!["d", "b"], vec!["c", "a"], vec!["e"]]);
    let until_second = Instant::from_micros(1_000 * MINUTE + 1);
    let page = bench
        .catalog
        .retired_objects(until_second, None, 2)
        .await
        .unwrap();
    assert_eq!(page.len(), 1, "{page:?}");
}

#[tokio::test]
async fn a_page_of_damaged_rows_does_not_end_a_listing() {
    // Only of the bench's own database, since the other is shared.
    let bench = Bench::sqlite().await;
    let (first, last) = (person(), person());
    let lost = (0..1_000)
        .map(|number| object(&format!("data/lost-{number}.parquet")))
        .collect();
    bench
        .catalog
        .commit(one(change(first, NOTHING, lost)))
        .await
        .unwrap();
    let kept = vec![object("data/kept.parquet")];
    bench
        .catalog
        .commit(one(change(last, NOTHING, kept)))
        .await
        .unwrap();
    let mut session = bench.catalog.database.write().await.unwrap();
    let damage = "UPDATE pieces SET row_count = row_count + 1 WHERE path LIKE 'data/lost-%'".to_owned();
    assert_eq!(session.execute(damage, Vec::new()).await.unwrap(), 1_000);
    session.commit().await.unwrap();
    let page = bench.catalog.object_paths(None).await.unwrap();
    let paths: Vec<&str> = page.iter().map(|object| object.path.as_str()).collect();
    assert_eq!(paths, ["data/kept.parquet"]);
    assert_eq!(bench.catalog.object_paths(page.last()).await.unwrap(), []);
}

#[tokio::test]
async fn a_source_is_listed_once() {
    for bench in Bench::all().await {
        let source = SeenSource {
            person: person(),
            key: "watch".to_owned(),
            name: Some("Watch".to_owned()),
        };
        for _ in 0..2 {
            bench
                .catalog
                .commit(Commit {
                    sources: vec![source.clone()],
                    ..Commit::default()
                })
                .await
                .unwrap();
        }
        let known = bench.catalog.sources_of(source.person).await.unwrap();
        assert_eq!(
            known.iter().map(|source| source.key.as_str()).collect::<Vec<_>>(),
            ["watch"]
        );
    }
}
