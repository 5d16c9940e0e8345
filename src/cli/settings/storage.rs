//! Settings of where objects and people's keys are stored.

use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::given::GivenSettings;
use super::parse;
use crate::cli::hosts;
use crate::store::objects::ObjectStoreSettings;
use crate::store::sealing::KeyServiceSettings;

/// How people's keys are stored and wrapped.
#[derive(Clone, Debug)]
pub struct EncryptionSettings {
    /// The file of the master keys. With a key service it only unwraps what it wrapped before.
    pub master: Option<PathBuf>,
    /// The service that wraps instead.
    pub service: Option<KeyServiceSettings>,
    /// The store of people's keys, which are wrapped.
    pub keys: ObjectStoreSettings,
}

pub(super) fn encryption(
    given: &GivenSettings,
    data_dir: &Path,
) -> Result<Option<EncryptionSettings>, SettingsError> {
    let master = given.setting("master_key_file")?.value().map(PathBuf::from);
    let service = key_service(given)?;
    let keys = storage(given, "person_keys", data_dir.join("person-keys"))?;
    if master.is_none() && service.is_none() {
        return Ok(None);
    }
    let place = given.setting("person_keys")?;
    if place.value().is_none() && given.setting("object_store")?.value().is_some() {
        return Err(place.wrong("a place that every node reaches: s3://bucket/prefix or a directory"));
    }
    Ok(Some(EncryptionSettings {
        master,
        service,
        keys,
    }))
}

fn key_service(given: &GivenSettings) -> Result<Option<KeyServiceSettings>, SettingsError> {
    let address = given.setting("key_service")?;
    let token = given.setting("key_service_token_file")?;
    let Some(key) = address.value() else {
        return Ok(None);
    };
    if !hosts::is_safe(key) {
        return Err(address.wrong("https://HOST/v1/transit/keys/NAME: people's keys are sent to it"));
    }
    let file = token.value().map(PathBuf::from);
    Ok(Some(KeyServiceSettings {
        key: key.to_owned(),
        token: file.ok_or_else(|| token.wrong("a file with the service's token"))?,
    }))
}

/// The store that the setting `name` names: a bucket or a directory, by default `usual`.
pub(super) fn storage(
    given: &GivenSettings,
    name: &str,
    usual: PathBuf,
) -> Result<ObjectStoreSettings, SettingsError> {
    let setting = given.setting(name)?;
    let connection = connection(given)?;
    match setting.value() {
        None => Ok(ObjectStoreSettings::Local(usual)),
        Some(url) if url.strip_prefix("s3://").is_some_and(|bucket| !bucket.is_empty()) => {
            Ok(ObjectStoreSettings::S3 {
                url: url.to_owned(),
                options: s3_options(given, &connection)?,
            })
        }
        Some(path) => match path.strip_prefix("file://").unwrap_or(path) {
            path if path.is_empty() || begins_with_scheme(path) => {
                Err(setting.wrong("s3://bucket/prefix or a directory (./NAME where it has a colon)"))
            }
            path => Ok(ObjectStoreSettings::Local(PathBuf::from(path))),
        },
    }
}

/// Whether `s3:/bucket` and the like were meant for an address, though they could be a directory.
fn begins_with_scheme(text: &str) -> bool {
    let is_symbol = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '+' | '-' | '.');
    text.split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_symbol))
}

/// How S3 is spoken to.
struct Connection {
    endpoint: Option<String>,
    allow_http: bool,
}

/// Read wherever objects are: a mistake is told before it has an effect.
fn connection(given: &GivenSettings) -> Result<Connection, SettingsError> {
    Ok(Connection {
        endpoint: parse::base_url(given.setting("aws_endpoint_url")?)?,
        allow_http: parse::flag(given.setting("aws_allow_http")?)?,
    })
}

/// The standard variables of S3, as far as they are set.
fn s3_options(
    given: &GivenSettings,
    connection: &Connection,
) -> Result<Vec<(String, String)>, SettingsError> {
    let allow_http = connection.allow_http;
    let endpoint = connection.endpoint.as_deref();
    if !allow_http && endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        let allowed = given.setting("aws_allow_http")?;
        return Err(allowed.wrong("true where AWS_ENDPOINT_URL begins with http://"));
    }
    let mut options: Vec<(String, String)> = given
        .as_slice()
        .iter()
        .filter(|setting| {
            setting.entry.variable.starts_with("AWS_") && setting.entry.name != "aws_allow_http"
        })
        .filter_map(|setting| Some((setting.entry.variable.to_owned(), setting.value()?.to_owned())))
        .collect();
    options.push(("AWS_ALLOW_HTTP".to_owned(), allow_http.to_string()));
    Ok(options)
}
