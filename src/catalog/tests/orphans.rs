//! What is condemned is never named, whoever is faster.

use super::*;

#[tokio::test]
async fn whatever_is_condemned_can_be_named_no_more() {
    for bench in Bench::all().await {
        let person = person();
        let (early, late) = (object(&path(person)), object(&path(person)));
        let named = [early.clone(), late.clone()].map(|piece| path_of(&piece));
        let commit = async |piece: NewPiece| {
            let now = bench.stamp(person).await;
            bench.catalog.commit(one(change(person, now, vec![piece]))).await
        };
        assert_eq!(commit(early.clone()).await.unwrap(), CommitOutcome::Done);
        bench.catalog.condemn(&named[1..]).await.unwrap();
        let refused = commit(late.clone()).await;
        assert!(
            matches!(refused, Err(CatalogError::Missing { .. })),
            "{refused:?}"
        );
        let flushed = Replace {
            person,
            data_type: heart_rate(),
            inputs: vec![early.id],
            applied: Vec::new(),
            output: vec![late.clone()],
        };
        let refused = bench.catalog.replace(flushed).await;
        assert!(
            matches!(refused, Err(CatalogError::Missing { .. })),
            "{refused:?}"
        );
        assert_eq!(bench.partition(person, &heart_rate()).await.stamp.version, 1);
        // Gone for good, and still not to be named.
        bench.catalog.note_removed(&named[1..]).await.unwrap();
        let refused = commit(late.clone()).await;
        assert!(
            matches!(refused, Err(CatalogError::Missing { .. })),
            "{refused:?}"
        );
        bench.catalog.unmark_orphans(&named[1..]).await.unwrap();
        assert_eq!(commit(late).await.unwrap(), CommitOutcome::Done);
    }
}

#[tokio::test]
async fn a_commit_and_a_condemnation_at_once_see_each_other() {
    for bench in Bench::all().await {
        for _ in 0..20 {
            let person = person();
            let piece = object(&path(person));
            let paths = [path_of(&piece)];
            let (committed, condemned) = tokio::join!(
                bench.catalog.commit(one(change(person, NOTHING, vec![piece]))),
                bench.catalog.condemn(&paths)
            );
            condemned.unwrap();
            // What whoever condemned sees now is what will ever be.
            let is_named = !bench.partition(person, &heart_rate()).await.pieces.is_empty();
            match committed {
                Ok(outcome) => assert!(outcome == CommitOutcome::Done && is_named),
                Err(CatalogError::Missing { .. }) => assert!(!is_named),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test]
async fn strays_go_from_noticed_to_condemned_by_the_time_of_the_database() {
    for bench in Bench::all().await {
        let (young, old) = (path(person()), path(person()));
        bench
            .catalog
            .notice_orphans(std::slice::from_ref(&old))
            .await
            .unwrap();
        bench.pass(std::time::Duration::from_millis(5)).await;
        let between = bench.catalog.now().await.unwrap();
        bench.pass(std::time::Duration::from_millis(5)).await;
        let both = [young.clone(), old.clone()];
        bench.catalog.notice_orphans(&both).await.unwrap();
        let condemned = bench.catalog.condemn_orphans(between).await.unwrap().sound;
        assert!(condemned.contains(&old) && !condemned.contains(&young));
        let end = Instant::from_micros(i64::MAX);
        let waiting = bench.catalog.condemned_before(end).await.unwrap().sound;
        assert!(waiting.contains(&old) && !waiting.contains(&young));
        bench
            .catalog
            .keep_objects(std::slice::from_ref(&young))
            .await
            .unwrap();
        assert!(
            !bench
                .catalog
                .condemn_orphans(end)
                .await
                .unwrap()
                .sound
                .contains(&young)
        );
        bench.catalog.unmark_orphans(&both).await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_note_of_an_orphan_keeps_no_other_one() {
    let bench = Bench::sqlite().await;
    let catalog = &bench.catalog;
    let mut paths: Vec<String> = (0..4).map(|_| path(person())).collect();
    paths.sort_unstable();
    let damage = async |path: &str| {
        let mut session = catalog.database.write().await.unwrap();
        let sql = format!("UPDATE strays SET checksum = checksum + 1 WHERE path = '{path}'");
        assert_eq!(session.execute(sql, Vec::new()).await.unwrap(), 1);
        session.commit().await.unwrap();
    };
    catalog.notice_orphans(&paths).await.unwrap();
    damage(&paths[0]).await;
    let end = Instant::from_micros(i64::MAX);
    let condemned = catalog.condemn_orphans(end).await.unwrap();
    assert_eq!(
        (condemned.sound.as_slice(), condemned.set_aside.len()),
        (&paths[1..], 1)
    );
    damage(&paths[1]).await;
    let condemned = catalog.condemned_before(end).await.unwrap();
    assert_eq!(
        (condemned.sound.as_slice(), condemned.set_aside.len()),
        (&paths[2..], 1)
    );
}

#[tokio::test]
async fn what_a_clock_ahead_noticed_waits_from_when_it_was_put_right() {
    // Only of the bench's own database, whose clock can be set.
    let bench = Bench::sqlite().await;
    let (catalog, owner) = (&bench.catalog, person());
    let right = catalog.now().await.unwrap();
    bench.pass(std::time::Duration::from_hours(24 * 400)).await;
    let (orphan, kept) = (path(owner), path(owner));
    catalog
        .notice_orphans(std::slice::from_ref(&orphan))
        .await
        .unwrap();
    catalog.keep_objects(std::slice::from_ref(&kept)).await.unwrap();
    bench.clock.set(right);
    assert_eq!(catalog.date_anew().await.unwrap(), 1);
    assert_eq!(catalog.date_anew().await.unwrap(), 0);
    let soon = Instant::from_micros(right.micros() + 1);
    let condemned = catalog.condemn_orphans(soon).await.unwrap();
    assert_eq!(condemned.sound, [orphan]);
    assert_eq!(catalog.orphan_totals().await.unwrap().kept, 1);
}

fn path(person: PersonId) -> String {
    format!("data/{person}/{}.parquet", Uuid::now_v7())
}

fn path_of(piece: &NewPiece) -> String {
    match &piece.place {
        NewPlace::Object { path, .. } => path.clone(),
        NewPlace::Tail { .. } => String::new(),
    }
}
