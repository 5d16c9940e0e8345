//! Files of others: what `file:` and `filehistory:` open, and to whom (rules 9.1 and 9.2).

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{at, group, join, share, share_of};
use crate::files::{FILES, announce, announcement, each, file_path, put, upload};
use crate::harness::{ALL_TIME, Backends, Call, Person, Setup, heart_rate, id, person};

/// Asks for what is `owner`'s.
fn ask(reader: &Person, path: &str, owner: &Person) -> Call {
    reader.get(path).with("svc_userid", &owner.id.to_string())
}

fn list(reader: &Person, owner: &Person, folder: &str) -> Call {
    ask(reader, FILES, owner)
        .with("path", folder)
        .with("include_archived", "true")
        .with("include_deleted", "true")
}

async fn ids(call: Call) -> Vec<String> {
    each(&call.await.must_be(200).json(), "id")
}

fn updates(reader: &Person, owner: &Person) -> Call {
    ask(reader, "/data/v1/updates", owner)
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1)
}

/// The ids of the files that changed, sorted.
async fn changed(reader: &Person, owner: &Person) -> Vec<String> {
    let updates = updates(reader, owner).await.must_be(200).json();
    let mut ids = each(&json!({"files": updates["file_changes"]}), "id");
    ids.sort();
    ids
}

fn id_of(file: &Value) -> String {
    file["id"].as_str().unwrap().to_owned()
}

fn sorted<const N: usize>(files: [&Value; N]) -> Vec<String> {
    let mut ids = files.map(id_of).to_vec();
    ids.sort();
    ids
}

/// What a refusal says, without what differs between any two answers.
async fn refusal(call: Call) -> Value {
    let mut problem = call.await.problem(403);
    let members = problem.as_object_mut().unwrap();
    members.retain(|name, _| ["title", "status", "detail", "type"].contains(&name.as_str()));
    assert!(members.contains_key("detail"), "{problem}");
    problem
}

#[tokio::test]
async fn a_shared_folder_shows_live_versions_and_a_shared_history_earlier_ones_too() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let (owner, reader) = (server.person(), server.person());
        let old = put(&owner, "/trip/day", "plan", b"first").await;
        let plan = put(&owner, "/trip/day", "plan", b"second").await;
        let map = put(&owner, "/trip", "map", b"map").await;
        let gone = put(&owner, "/trip", "gone", b"gone").await;
        owner.call(Method::DELETE, &file_path(&gone)).await.must_be(204);
        announce(&owner, "/trip", "waiting", 3).await;
        put(&owner, "/trips", "neighbour", b"not this").await;
        let live = share(&owner, &share_of(&["file:/trip"], &reader)).await;

        let shown = list(&reader, &owner, "/trip").await.must_be(200).json();
        assert_eq!(
            (each(&shown, "id"), &shown["folders"]),
            (vec![id_of(&map)], &json!(["day"]))
        );
        assert_eq!(ids(list(&reader, &owner, "/trip/day")).await, [id_of(&plan)]);
        let everywhere = ids(ask(&reader, FILES, &owner)).await;
        assert_eq!(everywhere, [id_of(&map), id_of(&plan)]);
        // The way to what is shared can be walked, and shows nothing beside it.
        let way = list(&reader, &owner, "/").await.must_be(200).json();
        assert_eq!(way, json!({"files": [], "folders": ["trip"]}));
        list(&reader, &owner, "/trips").await.problem(403);

        let path = file_path(&plan);
        assert_eq!(
            ask(&reader, &path, &owner).await.must_be(200).json()["id"],
            plan["id"]
        );
        let bytes = ask(&reader, &format!("{path}/download"), &owner)
            .await
            .must_be(200);
        assert_eq!(bytes.text(), "second");
        assert_eq!(changed(&reader, &owner).await, sorted([&map, &plan]));
        for hidden in [&old, &gone] {
            ask(&reader, &file_path(hidden), &owner).await.problem(403);
            let download = format!("{}/download", file_path(hidden));
            ask(&reader, &download, &owner).await.problem(403);
        }

        let history = json!({"svc_data_types": ["filehistory:/trip"]});
        owner.put(&at(&live), &history).await.must_be(200);
        assert_eq!(
            ids(list(&reader, &owner, "/trip/day")).await,
            [id_of(&old), id_of(&plan)]
        );
        let bytes = ask(&reader, &format!("{}/download", file_path(&old)), &owner)
            .await
            .must_be(200);
        assert_eq!(bytes.text(), "first");
        assert_eq!(changed(&reader, &owner).await, sorted([&old, &map, &plan]));
        ask(&reader, &file_path(&gone), &owner).await.problem(403);

        owner.call(Method::DELETE, &at(&live)).await.must_be(204);
        for path in [FILES.to_owned(), path.clone(), format!("{path}/download")] {
            ask(&reader, &path, &owner).await.problem(403);
        }
    }
}

#[tokio::test]
async fn what_is_not_shared_is_refused_like_what_is_not_there() {
    let (owner, reader, stranger) = (person(), person(), person());
    put(&owner, "/", "shared", b"1").await;
    let hidden = put(&owner, "/", "hidden", b"2").await;
    let strangers = put(&stranger, "/", "shared", b"3").await;
    share(&owner, &share_of(&["file:/shared"], &reader)).await;
    let unknown = json!({"id": Uuid::new_v4()});
    for end in ["", "/download"] {
        let path = |file: &Value| format!("{}{end}", file_path(file));
        let expected = refusal(ask(&reader, &path(&unknown), &owner)).await;
        for file in [&hidden, &strangers, &json!({"id": "no-id"})] {
            assert_eq!(
                refusal(ask(&reader, &path(file), &owner)).await,
                expected,
                "{file}"
            );
        }
        assert_eq!(refusal(ask(&reader, &path(&hidden), &stranger)).await, expected);
        assert_eq!(refusal(ask(&stranger, &path(&hidden), &owner)).await, expected);
    }
    let nowhere = refusal(list(&reader, &owner, "/nowhere")).await;
    assert_eq!(refusal(list(&reader, &stranger, "/")).await, nowhere);
}

#[tokio::test]
async fn data_is_shared_without_files_and_files_without_data() {
    let (owner, of_data, of_files, member) = (person(), person(), person(), person());
    owner
        .records(
            "HeartRate",
            &[heart_rate(id(1), &crate::harness::at("10:30"), 61)],
        )
        .await;
    // Composed in the one, decomposed in the other.
    let file = put(&owner, "/Zu\u{308}rich", "a", b"1").await;
    let mut all = share_of(&[], &of_data);
    all["share_all_data"] = json!(true);
    share(&owner, &all).await;
    share(&owner, &share_of(&["file:/Z\u{fc}rich/"], &of_files)).await;
    let friends = group(&owner, &json!({"title": "Friends", "is_public": true})).await;
    let mut through = share_of(&["file:/Zu\u{308}rich"], &member);
    through["permissions"] = json!([]);
    through["group_permissions"] = json!([{"allowed_group_id": friends}]);
    share(&owner, &through).await;
    ask(&member, FILES, &owner).await.problem(403);
    join(&member, &friends).await;

    ask(&of_data, FILES, &owner).await.problem(403);
    ask(&of_data, &file_path(&file), &owner).await.problem(403);
    let told = updates(&of_data, &owner).await.must_be(200).json();
    assert_eq!(told, json!({"data_types": {"HeartRate": 1}, "file_changes": []}));
    for reader in [&of_files, &member] {
        assert_eq!(ids(ask(reader, FILES, &owner)).await, [id_of(&file)]);
        ask(reader, &file_path(&file), &owner).await.must_be(200);
        let told = updates(reader, &owner).await.must_be(200).json();
        assert_eq!(
            (&told["data_types"], changed(reader, &owner).await),
            (&json!({}), sorted([&file]))
        );
    }
}

#[tokio::test]
async fn a_version_belongs_to_a_share_by_the_time_of_its_upload() {
    let (owner, reader) = (person(), person());
    let file = put(&owner, "/", "a", b"1").await;
    let uploaded = file["uploaded_at"].as_str().unwrap();
    let mut body = share_of(&["file:/"], &reader);
    body["time_end"] = json!(uploaded);
    let given = share(&owner, &body).await;
    assert_eq!(ids(ask(&reader, FILES, &owner)).await, [""; 0]);
    ask(&reader, &file_path(&file), &owner).await.problem(403);
    assert_eq!(changed(&reader, &owner).await, [""; 0]);
    let later = json!({"time_start": uploaded, "time_end": null});
    owner.put(&at(&given), &later).await.must_be(200);
    assert_eq!(ids(ask(&reader, FILES, &owner)).await, [id_of(&file)]);
    ask(&reader, &file_path(&file), &owner).await.must_be(200);
    assert_eq!(changed(&reader, &owner).await, [id_of(&file)]);
}

#[tokio::test]
async fn rule_9_2f_a_reader_neither_changes_files_nor_learns_what_they_came_from() {
    let (owner, reader) = (person(), person());
    let mut body = announcement("/", "a", 1);
    body["source_id"] = json!("serial-number");
    body["source_name"] = json!("Scale");
    let answer = owner.post(FILES, &body).await.must_be(200).json();
    upload(answer["url"].as_str().unwrap(), "1").await.must_be(200);
    let restored = owner
        .call(Method::POST, &format!("{}/restore", file_path(&answer["file"])))
        .await
        .must_be(200)
        .json();
    assert_eq!(
        (&restored["source_id"], &restored["restored_from_id"]),
        (&json!("serial-number"), &answer["file"]["id"])
    );
    share(&owner, &share_of(&["file:/"], &reader)).await;
    let path = file_path(&restored);
    let listed = ask(&reader, FILES, &owner).await.must_be(200).json()["files"][0].clone();
    for shown in [listed, ask(&reader, &path, &owner).await.must_be(200).json()] {
        assert_eq!(shown["fulcra_userid"], json!(owner.id));
        assert_eq!(
            (
                &shown["source_id"],
                &shown["source_name"],
                &shown["restored_from_id"]
            ),
            (&json!(null), &json!("Scale"), &json!(""))
        );
    }
    let as_owner = ("svc_userid", owner.id.to_string());
    for (method, path) in [
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/restore")),
    ] {
        let call = reader.call(method, &path);
        call.with(as_owner.0, &as_owner.1).await.problem(404);
    }
    // What a reader announces is the reader's own.
    put(&reader, "/", "a", b"mine").await;
    let path = format!("{path}/download");
    assert_eq!(ask(&reader, &path, &owner).await.must_be(200).text(), "1");
}

#[tokio::test]
async fn a_file_without_bytes_was_read_whole() {
    let (owner, reader) = (person(), person());
    let file = put(&owner, "/trip", "empty", b"").await;
    share(&owner, &share_of(&["file:/trip"], &reader)).await;
    let download = format!("{}/download", file_path(&file));
    for encoding in ["identity", "gzip"] {
        let call = ask(&reader, &download, &owner).header("accept-encoding", encoding);
        let reply = call.await.must_be(200);
        assert_eq!(reply.text(), "");
    }
    let log = super::access_log::ended(&owner).await;
    let outcomes: Vec<&Value> = log.iter().map(|entry| &entry["outcome"]).collect();
    assert_eq!(outcomes, ["answered", "answered", "done"], "{log:?}");
}

#[tokio::test]
async fn the_owner_is_told_who_read_which_file() {
    let (owner, reader) = (person(), person());
    let file = put(&owner, "/trip", "map", b"1").await;
    let given = share(&owner, &share_of(&["file:/trip"], &reader)).await;
    ask(&reader, &format!("{}/download", file_path(&file)), &owner)
        .await
        .must_be(200);
    list(&reader, &owner, "/trip").await.must_be(200);
    list(&reader, &owner, "/other").await.problem(403);
    let log = super::access_log::ended(&owner).await;
    let reads: Vec<&Value> = log.iter().map(|entry| &entry["detail"]["reads"][0]).collect();
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(log[1]["outcome"], "answered", "{log:?}");
    assert_eq!(
        (&reads[0]["kind"], &reads[1]["kind"]),
        (&json!("folder"), &json!("file"))
    );
    assert_eq!(reads[0]["svc_data_types"], json!(["file:/trip"]));
    assert_eq!(reads[1]["svc_data_types"], json!(["file:/trip/map"]));
    for (entry, read) in log.iter().zip(&reads).take(2) {
        assert_eq!(entry["actor_svc_userid"], json!(reader.id));
        assert_eq!(read["grant_ids"], json!([given["permissions"][0]["grant_id"]]));
    }
}
