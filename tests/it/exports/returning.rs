//! Archives brought to where there is something already.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::everything::{Choices, answers, assert_equal, live};
use super::forged::Forged;
use super::{archive, import, imported, some_records};
use crate::files::{announce, download, get, put, upload};
use crate::harness::{Person, Setup, heart_rate, id, instant};

type Answers = BTreeMap<String, Value>;

const TAG: &str = "/user/v1alpha1/tag";

#[tokio::test]
async fn an_archive_can_be_brought_in_as_somebody_else_elsewhere_under_the_same_ids() {
    let folder = tempfile::tempdir().unwrap();
    let first = Setup::default().start();
    let person = first.person();
    live(&person, &mut Choices::new()).await;
    let before = answers(&person).await;
    let taken = archive(&person, folder.path()).await;
    let second = Setup::default().start();
    let other = second.person();
    let said = imported(&second, &taken, Some(&other));
    assert!(said.contains(&other.id.to_string()), "{said}");
    let after = answers(&other).await;
    // Ids of sources follow from the person, so where they stand they differ; and so does whose samples count
    // where sources that came at one moment are ranked by their ids. Nothing else does.
    let nameless = |answers: &Answers, owner: &Person| -> Answers {
        let mut answers = answers.clone();
        answers.retain(|asked, _| !asked.contains("time_series") && !asked.contains("/agg/"));
        let mut text = serde_json::to_string(&answers).unwrap();
        text = text.replace(&owner.id.to_string(), "PERSON");
        let sources = answers["/data/v1alpha1/data_sources"].as_array().unwrap();
        for (number, source) in sources.iter().enumerate() {
            text = text.replace(source["id"].as_str().unwrap(), &format!("SOURCE {number}"));
        }
        serde_json::from_str(&text).unwrap()
    };
    assert_equal(&nameless(&before, &person), &nameless(&after, &other));
}

#[tokio::test]
async fn where_nothing_was_before_there_is_an_installation_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let first = Setup::default().start();
    let person = first.person();
    some_records(&person).await;
    let taken = archive(&person, folder.path()).await;
    let second = Setup::default().prepare();
    imported(&second, &taken, None);
    let id = person.id.to_string();
    for command in [vec!["token", "--user", &id], vec!["key", "list"], vec!["users"]] {
        let output = second.run(&command);
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
}

#[tokio::test]
async fn beside_its_first_owner_an_archive_gets_ids_of_its_own_and_always_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    live(&person, &mut Choices::new()).await;
    let before = answers(&person).await;
    let taken = archive(&person, folder.path()).await;
    let other = server.person();
    imported(&server, &taken, Some(&other));
    assert_equal(&before, &answers(&person).await);
    let there = answers(&other).await;
    let again = imported(&server, &taken, Some(&other));
    assert!(again.contains("the person has 0 more than before"), "{again}");
    assert_equal(&there, &answers(&other).await);
    // All is there, and what refers to something refers to the other one's.
    let count = |answers: &Answers, name: &str| answers[name].as_array().map(Vec::len).unwrap();
    for name in [TAG, "/user/v1alpha1/annotation", "/user/v1alpha1/reflection"] {
        assert_eq!(count(&before, name), count(&there, name), "{name}");
    }
    let text = serde_json::to_string(&there).unwrap();
    for annotation in before["/user/v1alpha1/annotation"].as_array().unwrap() {
        let id = annotation["id"].as_str().unwrap();
        assert!(!text.contains(id), "{id} is still the other person's");
    }
    assert_eq!(
        other.all_samples("HeartRate").await.len(),
        person.all_samples("HeartRate").await.len()
    );
    assert!(server.run(&["check"]).status.success());
}

#[tokio::test]
async fn an_archive_is_still_the_same_one_once_those_whose_ids_it_has_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    live(&person, &mut Choices::new()).await;
    let taken = archive(&person, folder.path()).await;
    let other = server.person();
    imported(&server, &taken, Some(&other));
    let there = answers(&other).await;
    let erase = || person.call(Method::DELETE, "/user/v1alpha1/account");
    let asked = erase().await.must_be(202).json();
    let confirmation = asked["confirmation"].as_str().unwrap();
    erase().with("confirm", confirmation).await.must_be(202);
    let again = imported(&server, &taken, Some(&other));
    assert!(again.contains("the person has 0 more than before"), "{again}");
    assert_equal(&there, &answers(&other).await);
}

#[tokio::test]
async fn what_was_changed_since_stays_and_what_is_missing_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    let kept = person
        .post(TAG, &json!({"name": "kept"}))
        .await
        .must_be(201)
        .json();
    let note = put(&person, "/", "note", b"first").await;
    let taken = archive(&person, folder.path()).await;

    let removed = format!("{TAG}/id/{}", kept["id"].as_str().unwrap());
    person.call(Method::DELETE, &removed).await.must_be(204);
    person.post(TAG, &json!({"name": "new"})).await.must_be(201);
    person.delete("HeartRate", id(3)).await;
    person
        .record("HeartRate", &heart_rate(id(900), &instant(5), 1.0))
        .await
        .upload();
    put(&person, "/", "note", b"second").await;
    imported(&server, &taken, None);

    assert_eq!(person.all_samples("HeartRate").await.len(), 51);
    let names = crate::harness::texts(&person.get(TAG).await.must_be(200).rows(), "name");
    assert_eq!(names, ["kept", "new"]);
    let path = format!("{}/{}", crate::files::FILES, note["id"].as_str().unwrap());
    let state = person.get(&path).await.must_be(200).json()["state"].clone();
    assert_eq!(state, json!("archived"), "there is a newer version since");
}

#[tokio::test]
async fn a_name_that_is_taken_is_told_before_anything_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    person.post(TAG, &json!({"name": "calm"})).await.must_be(201);
    let taken = archive(&person, folder.path()).await;
    let second = Setup::default().start();
    let there = second.person_called(person.id);
    let other = there
        .post(TAG, &json!({"name": "calm"}))
        .await
        .must_be(201)
        .json();
    let (text, status) = import(&second, &taken, None);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("nothing was changed") && text.contains("calm"),
        "{text}"
    );
    assert!(there.all_samples("HeartRate").await.is_empty());
    let id = other["id"].as_str().unwrap();
    there
        .call(Method::DELETE, &format!("{TAG}/id/{id}"))
        .await
        .must_be(204);
    imported(&second, &taken, None);
    assert_eq!(there.all_samples("HeartRate").await.len(), 50);
}

#[tokio::test]
async fn a_name_that_passed_to_another_version_since_passes_there_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    let (first, first_url) = announce(&person, "/", "note", 5).await;
    let (second, second_url) = announce(&person, "/", "note", 6).await;
    upload(&second_url, "second").await.must_be(200);
    let earlier = archive(&person, folder.path()).await;
    upload(&first_url, "first").await.must_be(200);
    some_records(&person).await;
    let later = archive(&person, folder.path()).await;
    let elsewhere = Setup::default().start();
    let there = elsewhere.person_called(person.id);
    imported(&elsewhere, &earlier, None);
    imported(&elsewhere, &later, None);
    for (file, state) in [(&first, "uploaded"), (&second, "archived")] {
        let (taken, back) = (get(&person, file).await, get(&there, file).await);
        assert_eq!(back["state"], state);
        for name in ["state", "uploaded_at", "archived_at"] {
            assert_eq!(taken[name], back[name], "{name} of {back}");
        }
    }
    assert_eq!(there.all_samples("HeartRate").await.len(), 50);
}

#[tokio::test]
async fn a_newer_version_takes_the_name_of_one_that_has_changed_here_since() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    let first = put(&person, "/", "note", b"first").await;
    let earlier = archive(&person, folder.path()).await;
    let elsewhere = Setup::default().start();
    let there = elsewhere.person_called(person.id);
    imported(&elsewhere, &earlier, None);
    let second = put(&person, "/", "note", b"second").await;
    some_records(&person).await;
    let later = archive(&person, folder.path()).await;
    let mut record = heart_rate(id(900), &instant(5), 1.0);
    record["sources"] = json!([format!("com.almanac.file.{}", first["id"].as_str().unwrap())]);
    there.record("HeartRate", &record).await.upload();
    // The second time everything is as it was.
    for _ in 0..2 {
        imported(&elsewhere, &later, None);
        let noted = get(&there, &first).await;
        assert_eq!(noted["state"], "archived");
        assert!(noted["source_data_types"].is_array(), "{noted}");
        assert_eq!(get(&there, &second).await["state"], "uploaded");
    }
    assert_eq!(download(&there, &second).await.must_be(200).text(), "second");
    assert_eq!(there.all_samples("HeartRate").await.len(), 51);
    assert!(elsewhere.run(&["check"]).status.success());
}

#[tokio::test]
async fn shares_are_told_of_and_not_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let (person, friend) = (server.person(), server.person());
    some_records(&person).await;
    crate::sharing::share(&person, &crate::sharing::share_of(&["HeartRate"], &friend)).await;
    let taken = archive(&person, folder.path()).await;
    let second = Setup::default().start();
    let there = second.person_called(person.id);
    let said = imported(&second, &taken, None);
    assert!(said.contains("1 data shares"), "{said}");
    let shares = there.get("/user/v1/datashare").await.must_be(200).json();
    assert!(!shares.to_string().contains("a share"), "{shares}");
}

#[tokio::test]
async fn what_somebody_else_has_stays_theirs_whatever_has_its_id_in_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let (person, friend) = (server.person(), server.person());
    some_records(&friend).await;
    let share = crate::sharing::share_of(&["HeartRate"], &person);
    let share = crate::sharing::share(&friend, &share).await;
    person.post(TAG, &json!({"name": "calm"})).await.must_be(201);
    let taken = archive(&person, folder.path()).await;
    let given = async || {
        let shares = friend.get(crate::sharing::DATASHARE).await.must_be(200).json();
        let received = person.get(crate::sharing::DATASET).await.must_be(200).json();
        (shares, received)
    };
    let before = given().await;
    let forged = folder.path().join("forged.zip");
    for updated_at in ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"] {
        let named_as_the_share = Forged::of(&taken).with_list("tags.json", |tags| {
            tags[0]["id"] = share["datashare_id"].clone();
            tags[0]["name"] = json!("forged");
            tags[0]["updated_at"] = json!(updated_at);
        });
        named_as_the_share.write(&forged);
        imported(&server, &forged, None);
        assert_eq!(given().await, before);
    }
    let mut names = crate::harness::texts(&person.get(TAG).await.must_be(200).rows(), "name");
    names.sort_unstable();
    assert_eq!(names, ["calm", "forged"]);
    assert!(server.run(&["check"]).status.success());
}
