//! `/input/v1/file`: what people keep beside their records.

mod direct;
mod downloading;
mod importing;
mod large;
mod refused;
mod scanning;
mod uploading;
mod versions;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Call, Person, Reply};

pub(crate) const FILES: &str = "/input/v1/file";

/// The body that announces a file.
pub(crate) fn announcement(path: &str, name: &str, length: usize) -> Value {
    json!({"path": path, "name": name, "content_type": "text/plain", "content_length": length})
}

/// Announces a file; the file and the url for its bytes.
pub(crate) async fn announce(person: &Person, path: &str, name: &str, length: usize) -> (Value, String) {
    let reply = person.post(FILES, &announcement(path, name, length)).await;
    let answer = reply.must_be(200).json();
    let url = answer["url"].as_str().expect("a url").to_owned();
    (answer["file"].clone(), url)
}

/// A request to an upload url: it carries no token.
pub(crate) fn send(method: Method, url: &str) -> Call {
    Person::without_token("").call(method, url)
}

pub(crate) async fn upload(url: &str, bytes: impl Into<reqwest::Body>) -> Reply {
    send(Method::PUT, url).body(bytes).await
}

/// A part of an upload.
pub(crate) async fn upload_part(url: &str, range: &str, bytes: &[u8]) -> Reply {
    let call = send(Method::PUT, url).header("content-range", range);
    call.body(bytes.to_vec()).await
}

/// A new version of a file, with its bytes.
pub(crate) async fn put(person: &Person, path: &str, name: &str, bytes: &[u8]) -> Value {
    let (_, url) = announce(person, path, name, bytes.len()).await;
    upload(&url, bytes.to_vec()).await.must_be(200).json()
}

pub(crate) fn file_path(file: &Value) -> String {
    format!("{FILES}/{}", file["id"].as_str().expect("an id"))
}

pub(crate) async fn get(person: &Person, file: &Value) -> Value {
    person.get(&file_path(file)).await.must_be(200).json()
}

pub(crate) async fn download(person: &Person, file: &Value) -> Reply {
    person.get(&format!("{}/download", file_path(file))).await
}

/// The members of each file of a listing under a name.
pub(crate) fn each(listing: &Value, member: &str) -> Vec<String> {
    let files = listing["files"].as_array().expect("files");
    let text = |file: &Value| file[member].as_str().expect("a text").to_owned();
    files.iter().map(text).collect()
}
