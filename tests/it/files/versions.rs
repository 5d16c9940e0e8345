//! A file from its announcement to its end, and what of it is listed.

use reqwest::Method;
use serde_json::{Value, json};

use super::{FILES, announce, announcement, download, each, file_path, get, put, upload};
use crate::harness::{ALL_TIME, Backends, Person, Setup, person};

async fn list(person: &Person, parameters: &[(&str, &str)]) -> Value {
    let call = parameters
        .iter()
        .fold(person.get(FILES), |call, (name, value)| call.with(name, value));
    call.await.must_be(200).json()
}

#[tokio::test]
async fn a_file_is_announced_sent_and_read() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let (file, url) = announce(&person, "/notes", "tea.txt", 5).await;
        let members: Vec<&str> = file.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            members,
            [
                "id",
                "fulcra_userid",
                "name",
                "path",
                "size",
                "state",
                "scan_state",
                "created_at",
                "uploaded_at",
                "archived_at",
                "deleted_at",
                "last_scanned",
                "restored_from_id",
                "source_id",
                "source_name",
                "source_data_types",
            ]
        );
        assert_eq!(file["fulcra_userid"], json!(person.id));
        assert_eq!(
            (&file["path"], &file["name"]),
            (&json!("/notes"), &json!("tea.txt"))
        );
        assert_eq!((&file["size"], &file["state"]), (&json!(5), &json!("created")));
        assert_eq!(file["scan_state"], "not_scanned");
        assert_eq!(file["restored_from_id"], "");
        assert!(file["uploaded_at"].is_null());
        download(&person, &file).await.problem(409);

        let uploaded = upload(&url, "green").await.must_be(200).json();
        assert_eq!(
            (&uploaded["id"], &uploaded["state"]),
            (&file["id"], &json!("uploaded"))
        );
        assert!(uploaded["uploaded_at"].is_string());
        assert_eq!(get(&person, &file).await, uploaded);
        assert_eq!(download(&person, &file).await.must_be(200).text(), "green");
        assert_eq!(
            list(&person, &[]).await,
            json!({"files": [uploaded], "folders": ["notes"]})
        );
    }
}

#[tokio::test]
async fn a_new_upload_archives_the_old_and_a_restoration_is_a_new_version() {
    let person = person();
    let first = put(&person, "/", "plan", b"one").await;
    let second = put(&person, "/", "plan", b"two").await;
    let archived = get(&person, &first).await;
    assert_eq!(archived["state"], "archived");
    assert_eq!(archived["archived_at"], second["uploaded_at"]);
    assert_eq!(download(&person, &first).await.must_be(200).text(), "one");

    let restored = person
        .call(Method::POST, &format!("{}/restore", file_path(&first)))
        .await
        .must_be(200)
        .json();
    assert_eq!(restored["restored_from_id"], first["id"]);
    assert_eq!(
        (&restored["state"], &restored["size"]),
        (&json!("uploaded"), &json!(3))
    );
    assert_ne!(restored["id"], first["id"]);
    assert_eq!(download(&person, &restored).await.must_be(200).text(), "one");
    assert_eq!(get(&person, &second).await["state"], "archived");
    assert_eq!(get(&person, &first).await["state"], "archived");
    assert_eq!(list(&person, &[]).await["files"], json!([restored]));

    let (waiting, _) = announce(&person, "/", "plan", 3).await;
    let restore = format!("{}/restore", file_path(&waiting));
    person.call(Method::POST, &restore).await.problem(409);
}

#[tokio::test]
async fn deletion_is_soft_and_can_be_undone_by_restoring() {
    let person = person();
    let file = put(&person, "/a", "b", b"bytes").await;
    person.call(Method::DELETE, &file_path(&file)).await.must_be(204);
    let deleted = get(&person, &file).await;
    assert_eq!(deleted["state"], "deleted");
    assert!(deleted["deleted_at"].is_string());
    download(&person, &file).await.problem(404);
    assert_eq!(list(&person, &[]).await, json!({"files": [], "folders": []}));
    let all = list(&person, &[("include_deleted", "true")]).await;
    assert_eq!(all["files"], json!([deleted]));
    person.call(Method::DELETE, &file_path(&file)).await.must_be(204);
    assert_eq!(get(&person, &file).await, deleted, "deleted once");

    let restored = format!("{}/restore", file_path(&file));
    let restored = person.call(Method::POST, &restored).await.must_be(200).json();
    assert_eq!(download(&person, &restored).await.must_be(200).text(), "bytes");
}

#[tokio::test]
async fn deleting_what_never_came_closes_its_url() {
    let person = person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    person.call(Method::DELETE, &file_path(&file)).await.must_be(204);
    upload(&url, "abc").await.problem(403);
    assert_eq!(get(&person, &file).await["state"], "deleted");
}

#[tokio::test]
async fn listings_are_by_folder_name_state_and_age() {
    let person = person();
    for (path, name) in [("/", "z"), ("/", "b"), ("/x", "b"), ("/x/y", "c"), ("/xy", "d")] {
        put(&person, path, name, b"1").await;
    }
    put(&person, "/", "b", b"2").await;
    let gone = put(&person, "/gone", "e", b"3").await;
    person.call(Method::DELETE, &file_path(&gone)).await.must_be(204);
    let (waiting, _) = announce(&person, "/", "w", 9).await;

    let names = |listing: &Value| each(listing, "name").join(" ");
    let all = list(&person, &[]).await;
    assert_eq!(names(&all), "b w z b c d");
    assert_eq!(each(&all, "path"), ["/", "/", "/", "/x", "/x/y", "/xy"]);
    assert_eq!(all["folders"], json!(["x", "xy"]));
    let root = list(&person, &[("path", "/")]).await;
    assert_eq!(
        (names(&root).as_str(), &root["folders"]),
        ("b w z", &json!(["x", "xy"]))
    );
    let inside = list(&person, &[("path", "/x/")]).await;
    assert_eq!(
        (names(&inside).as_str(), &inside["folders"]),
        ("b", &json!(["y"]))
    );
    let empty = list(&person, &[("path", "/nosuch")]).await;
    assert_eq!(empty, json!({"files": [], "folders": []}));
    assert_eq!(each(&list(&person, &[("name", "b")]).await, "path"), ["/", "/x"]);

    assert_eq!(names(&list(&person, &[("state", "created")]).await), "w");
    assert_eq!(
        names(&list(&person, &[("state", "archived,deleted")]).await),
        "b e"
    );
    let both = list(&person, &[("state", "archived"), ("state", "created")]).await;
    assert_eq!(names(&both), "b w");
    let archived = list(
        &person,
        &[("include_archived", "true"), ("path", "/"), ("name", "b")],
    )
    .await;
    assert_eq!(each(&archived, "state"), ["archived", "uploaded"]);
    let deleted = list(&person, &[("include_deleted", "true")]).await;
    assert_eq!(deleted["folders"], json!(["gone", "x", "xy"]));

    let created = waiting["created_at"].as_str().unwrap();
    assert_eq!(names(&list(&person, &[("start_time", created)]).await), "w");
    assert_eq!(names(&list(&person, &[("end_time", created)]).await), "b z b c d");
    let nothing = list(
        &person,
        &[("start_time", "2001-01-01"), ("end_time", "2002-01-01")],
    )
    .await;
    assert_eq!(names(&nothing), "");
}

#[tokio::test]
async fn recent_changes_tell_what_happened_to_files_and_so_do_updates() {
    let person = person();
    let first = put(&person, "/a", "b", b"1").await;
    let second = put(&person, "/a", "b", b"22").await;
    let recent = |start: &str, end: &str| {
        person
            .get(&format!("{FILES}/recent_changes"))
            .with("start_time", start)
            .with("end_time", end)
    };
    let changes = recent(ALL_TIME.0, ALL_TIME.1).await.must_be(200).json();
    let files = changes["files"].as_array().unwrap();
    let members: Vec<&str> = files[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "archived_at",
            "deleted_at",
            "full_name",
            "id",
            "last_scanned",
            "scan_state",
            "size",
            "state",
            "uploaded_at"
        ]
    );
    assert_eq!(each(&changes, "full_name"), ["/a/b", "/a/b"]);
    let mut ids = each(&changes, "id");
    ids.sort();
    let mut expected = [&first, &second].map(|file| file["id"].as_str().unwrap().to_owned());
    expected.sort();
    assert_eq!(ids, expected);
    let then = second["uploaded_at"].as_str().unwrap();
    assert_eq!(
        recent(ALL_TIME.0, "2020-01-01").await.must_be(200).json(),
        json!({"files": []})
    );
    let since = recent(then, ALL_TIME.1).await.must_be(200).json();
    assert_eq!(
        since["files"].as_array().unwrap().len(),
        2,
        "the new one and the one it archived"
    );

    let updates = person
        .get("/data/v1/updates")
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1)
        .await
        .must_be(200)
        .json();
    assert_eq!(updates["file_changes"], changes["files"]);
}

#[tokio::test]
async fn the_older_name_of_the_routes_does_the_same() {
    let person = person();
    let old = "/input/v1/file_upload";
    let answer = person
        .post(old, &announcement("/", "a", 1))
        .await
        .must_be(200)
        .json();
    upload(answer["url"].as_str().unwrap(), "1").await.must_be(200);
    let path = format!("{old}/{}", answer["file"]["id"].as_str().unwrap());
    assert_eq!(
        person.get(&path).await.must_be(200).json(),
        get(&person, &answer["file"]).await
    );
    assert_eq!(
        person.get(old).await.must_be(200).json(),
        list(&person, &[]).await
    );
    person.get(&format!("{path}/download")).await.must_be(200);
    person
        .call(Method::POST, &format!("{path}/restore"))
        .await
        .must_be(200);
    let changes = person.get(&format!("{old}/recent_changes"));
    changes
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1)
        .await
        .must_be(200);
    person.call(Method::DELETE, &path).await.must_be(204);
    let document = person.get("/openapi.json").await.must_be(200).json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if path.starts_with("/input/v1/file") {
                let old = path.starts_with("/input/v1/file_upload");
                assert_eq!(operation["deprecated"] == json!(true), old, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn two_that_upload_to_one_place_both_become_versions() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let racing = (0..6).map(|number| {
            let person = person.clone();
            async move { put(&person, "/", "a", number.to_string().as_bytes()).await }
        });
        let versions = futures::future::join_all(racing).await;
        let listed = list(&person, &[("include_archived", "1")]).await;
        let mut states = each(&listed, "state");
        states.sort();
        assert_eq!(
            states,
            [
                "archived", "archived", "archived", "archived", "archived", "uploaded"
            ]
        );
        for (number, version) in versions.iter().enumerate() {
            let bytes = download(&person, version).await.must_be(200);
            assert_eq!(bytes.text(), number.to_string());
        }
    }
}

#[tokio::test]
async fn conditions_are_kept() {
    let person = person();
    let only_new = |name: &str| {
        person
            .post(FILES, &announcement("/", name, 1))
            .header("if-none-match", "*")
    };
    let slow = only_new("a").await.must_be(200).json();
    let file = put(&person, "/", "a", b"1").await;
    only_new("a").await.problem(412);
    only_new("b").await.must_be(200);
    upload(slow["url"].as_str().unwrap(), "2").await.problem(412);
    assert_eq!(get(&person, &slow["file"]).await["state"], "created");

    let reply = person.get(&file_path(&file)).await.must_be(200);
    let tag = reply.header("etag").unwrap().to_owned();
    let only_over = |name: &str, tag: &str| {
        person
            .post(FILES, &announcement("/", name, 1))
            .header("if-match", tag)
    };
    only_over("a", "\"other\"").await.problem(412);
    only_over("nothing", "*").await.problem(412);
    only_over("a", "*").await.must_be(200);
    only_over("a", &format!("\"other\", {tag}")).await.must_be(200);
    assert!(tag.starts_with('"'), "a strong tag");
    let known = person.get(&file_path(&file)).header("if-none-match", &tag);
    known.await.must_be(304);
    let delete = |tag: &str| {
        person
            .call(Method::DELETE, &file_path(&file))
            .header("if-match", tag)
    };
    delete("\"other\"").await.problem(412);
    let absent = person.call(Method::DELETE, &file_path(&file));
    absent.header("if-none-match", "*").await.problem(412);
    let absent = person.call(Method::DELETE, &file_path(&file));
    let weakened = format!("\"other\", W/{tag}");
    absent.header("if-none-match", &weakened).await.problem(412);
    let other = person.post(FILES, &announcement("/", "a", 1));
    other.header("if-none-match", &weakened).await.problem(412);
    delete(&format!("W/{tag}")).await.problem(412);
    put(&person, "/", "a", b"2").await;
    delete(&tag).await.problem(412);
    assert_eq!(get(&person, &file).await["state"], "archived");
    let bytes = download(&person, &file).await.must_be(200);
    delete(bytes.header("etag").unwrap()).await.must_be(204);
}

#[tokio::test]
async fn nobody_meets_the_files_of_others() {
    let (one, other) = (person(), person());
    let file = put(&one, "/", "a", b"1").await;
    let path = file_path(&file);
    let nothing = format!("{FILES}/{}", uuid::Uuid::new_v4());
    for (method, end) in [
        (Method::GET, ""),
        (Method::GET, "/download"),
        (Method::DELETE, ""),
        (Method::POST, "/restore"),
    ] {
        let theirs = other
            .call(method.clone(), &format!("{path}{end}"))
            .await
            .problem(404);
        let none = other.call(method, &format!("{nothing}{end}")).await.problem(404);
        let blurred = |problem: &Value, id: &str| problem["detail"].as_str().unwrap().replace(id, "");
        let last = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        assert_eq!(blurred(&theirs, &last(&path)), blurred(&none, &last(&nothing)));
    }
    for owner in [one.id, uuid::Uuid::new_v4()] {
        let owner = owner.to_string();
        for path in [
            FILES.to_owned(),
            path.clone(),
            format!("{path}/download"),
            nothing.clone(),
        ] {
            other.get(&path).with("svc_userid", &owner).await.problem(403);
        }
    }
    let mine = one.get(&path).with("svc_userid", &one.id.to_string());
    mine.await.must_be(200);
    assert_eq!(list(&other, &[]).await, json!({"files": [], "folders": []}));
}
