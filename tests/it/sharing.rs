//! Sharing (section 9): who may read what of whom, and what others learn.

mod access_log;
mod datashares;
mod files;
mod groups;
mod matrix;
mod reading;
mod strangers;

use serde_json::{Value, json};

use crate::harness::Person;

pub(crate) const DATASHARE: &str = "/user/v1/datashare";
pub(crate) const DATASET: &str = "/user/v1/dataset";
pub(crate) const GROUP: &str = "/user/v1/group";

/// The body of a share of some types with one person.
pub(crate) fn share_of(types: &[&str], with: &Person) -> Value {
    json!({
        "datashare_name": "a share",
        "svc_data_types": types,
        "permissions": [{"allowed_svc_userid": with.id}],
    })
}

/// Shares; the share as it is answered.
pub(crate) async fn share(owner: &Person, body: &Value) -> Value {
    let reply = owner.post(DATASHARE, body).await.must_be(201);
    reply.json()["datashare"].clone()
}

/// The address of a share.
pub(crate) fn at(share: &Value) -> String {
    format!("{DATASHARE}/{}", share["datashare_id"].as_str().unwrap())
}

/// Creates a group; its id.
pub(crate) async fn group(owner: &Person, body: &Value) -> String {
    let reply = owner.post(GROUP, body).await.must_be(201);
    reply.json()["group"]["group_id"].as_str().unwrap().to_owned()
}

/// Joins a group; the participant's id.
pub(crate) async fn join(member: &Person, group: &str) -> String {
    let reply = member
        .call(reqwest::Method::POST, &format!("{GROUP}/{group}/membership"))
        .await
        .must_be(200);
    reply.json()["participant_id"].as_str().unwrap().to_owned()
}
