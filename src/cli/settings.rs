//! Settings: read once at start, checked as a whole, then plain values that never change.
//!
//! The list of what can be set is in [`table`]; which of flag, environment and file wins is decided in
//! [`said`]; here texts become values of the rooms that use them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::serve::addresses::{Network, TrustedProxies};
use crate::api::serve::tls::CertificateFiles;
use crate::api::settings::{InterfaceSettings, RateSettings};
use crate::auth::settings::{IdentitySettings, OutsideProvider, Provider, PublicAlgorithm};
use crate::people::files::scan::ClamdAddress;
use crate::people::limits::PersonLimits;
use crate::people::takeout::ExportSettings;
use crate::query::places::geocoder::service::ServiceSettings;
use crate::store::objects::ObjectStoreSettings;
use crate::upkeep::settings::UpkeepSettings;

mod parse;
pub mod said;
pub mod table;
#[cfg(test)]
mod tests;

use said::{Said, Sayings};

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{name} is {value:?} ({origin}); expected {expected}")]
    Value {
        name: &'static str,
        origin: String,
        value: String,
        expected: String,
    },
    #[error("{path} cannot be used: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("{path} sets {key:?}, which is no setting; `almanac config` lists them all")]
    UnknownKey { path: PathBuf, key: String },
    #[error("the variable {0} holds text that is not UTF-8")]
    Variable(String),
    #[error("there is no setting {0:?}")]
    Unlisted(String),
}

/// All settings as values.
#[derive(Clone)]
pub struct Settings {
    pub interface: InterfaceSettings,
    pub identity: IdentitySettings,
    pub data_dir: PathBuf,
    pub database_url: String,
    pub objects: ObjectStoreSettings,
    /// What is stored of people is encrypted, if the operator wants it.
    pub encryption: Option<EncryptionSettings>,
    /// Whether catalogue and object store belong together even where they do not look so.
    pub adopt_store: bool,
    /// Whether others on the network may be spoken to so that everybody on the way can read it.
    pub allow_plaintext: bool,
    pub queries: QuerySettings,
    pub writes: WriteSettings,
    pub upkeep: UpkeepSettings,
    /// How much one person may keep.
    pub limits: PersonLimits,
    pub files: FileSettings,
    /// How archives of everything that a person has are made.
    pub exports: ExportSettings,
    /// Who names positions, if not the places built in.
    pub geocoder: Option<ServiceSettings>,
    pub log: LogSettings,
    /// Where traces are to go.
    pub trace_endpoint: Option<String>,
}

impl std::fmt::Debug for Settings {
    /// Nothing of them: some are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// What answering may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySettings {
    pub threads: usize,
    pub memory_limit: usize,
    pub spill_limit: u64,
}

/// How writes are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSettings {
    pub waiting: usize,
    pub commit_window: Duration,
    pub commit_size: usize,
    /// Bytes of bodies that are being received or wait to be committed.
    pub body_memory: usize,
    /// Bytes of rows that wait to become objects.
    pub tail_limit: usize,
}

/// How files come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSettings {
    pub upload_lifetime: Duration,
    pub concurrent_uploads: usize,
    /// Whether bytes are to go into the object store without passing the service.
    pub direct: bool,
    /// Who looks through them for harm.
    pub clamd: Option<ClamdAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    pub filter: String,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Settings {
    pub fn from_sayings(sayings: &Sayings) -> Result<Self, SettingsError> {
        let said = |name| sayings.said(name);
        let data_dir = PathBuf::from(
            said("data_dir")?
                .value()
                .ok_or_else(|| wrong(sayings, "data_dir", "a directory"))?,
        );
        let database_url = said("database_url")?.value().map(str::to_owned);
        Ok(Self {
            interface: interface(sayings)?,
            identity: identity(sayings)?,
            database_url: database_url
                .unwrap_or_else(|| format!("sqlite://{}", data_dir.join("catalogue.db").display())),
            objects: objects(sayings, &data_dir)?,
            encryption: encryption(sayings, &data_dir)?,
            adopt_store: parse::flag(said("adopt_store")?)?,
            allow_plaintext: parse::flag(said("allow_plaintext")?)?,
            data_dir,
            queries: QuerySettings {
                threads: parse::count(said("query_threads")?, 0)?,
                memory_limit: parse::size(said("memory_limit")?)?,
                spill_limit: parse::size(said("spill_limit")?)? as u64,
            },
            writes: WriteSettings {
                waiting: parse::count(said("waiting_writes")?, 1)?,
                commit_window: parse::duration(said("commit_window")?)?,
                commit_size: parse::size(said("commit_size")?)?,
                body_memory: parse::size(said("body_memory")?)?,
                tail_limit: parse::size(said("tail_limit")?)?,
            },
            upkeep: UpkeepSettings {
                enabled: parse::flag(said("upkeep")?)?,
                interval: parse::duration(said("upkeep_interval")?)?,
                flush_age: parse::duration(said("flush_age")?)?,
                flush_size: parse::size(said("flush_size")?)?,
                grace_period: parse::duration(said("grace_period")?)?,
                search_interval: parse::duration(said("search_interval")?)?,
                purge_deleted_after: parse::duration(said("purge_deleted_after")?)?,
                collect_anyway: parse::flag(said("collect_anyway")?)?,
            },
            limits: PersonLimits {
                annotations: parse::number(said("limit_annotations")?, 0)?,
                tags: parse::number(said("limit_tags")?, 0)?,
                reflections: parse::number(said("limit_reflections")?, 0)?,
                shares: parse::number(said("limit_shares")?, 0)?,
                groups: parse::number(said("limit_groups")?, 0)?,
                definitions: parse::number(said("limit_definitions")?, 0)?,
                sources: parse::number(said("limit_sources")?, 0)?,
                keys: parse::number(said("limit_keys")?, 0)?,
                sessions: parse::number(said("limit_sessions")?, 1)?,
                files: parse::number(said("limit_files")?, 0)?,
                exports: parse::number(said("limit_exports")?, 1)?,
                file_bytes: parse::size(said("limit_file_bytes")?)? as u64,
                all_file_bytes: parse::size(said("limit_all_file_bytes")?)? as u64,
            },
            files: files(sayings)?,
            exports: ExportSettings {
                lifetime: parse::duration(said("export_lifetime")?)?,
                at_once: parse::count(said("concurrent_exports")?, 1)?,
                limit: parse::number(said("limit_exports")?, 1)?,
            },
            geocoder: geocoder(sayings)?,
            log: log(sayings)?,
            trace_endpoint: said("otel_exporter_otlp_endpoint")?.value().map(str::to_owned),
        })
    }
}

impl Settings {
    /// Whether senders put the bytes of files into the object store themselves: nobody else reaches a
    /// directory.
    #[must_use]
    pub const fn sends_directly(&self) -> bool {
        self.files.direct && matches!(self.objects, ObjectStoreSettings::S3 { .. })
    }

    /// The value of a setting that follows from another one when nobody sets it, and that other one.
    fn following(&self, name: &str) -> Option<(String, &'static str)> {
        match name {
            "public_url" => Some((self.interface.public_url.clone(), "listen")),
            "database_url" => Some((self.database_url.clone(), "data_dir")),
            "object_store" => match &self.objects {
                ObjectStoreSettings::Local(path) => Some((path.display().to_string(), "data_dir")),
                ObjectStoreSettings::S3 { .. } => None,
            },
            "issuer" => Some((self.identity.issuer.clone()?, "jwks_url")),
            "audience" => Some((self.identity.audience.clone()?, "jwks_url")),
            _ => None,
        }
    }
}

fn wrong(sayings: &Sayings, name: &str, expected: &str) -> SettingsError {
    sayings
        .said(name)
        .map_or_else(|error| error, |said: &Said| said.wrong(expected))
}

fn interface(sayings: &Sayings) -> Result<InterfaceSettings, SettingsError> {
    let said = |name| sayings.said(name);
    let listen = parse::address(said("listen")?)?;
    let public_url = parse::optional_url(said("public_url")?)?;
    let certificate = certificate(sayings)?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let concurrent_queries = parse::count(said("concurrent_queries")?, 1)?;
    let person_queries = match parse::count(said("person_queries")?, 0)? {
        0 => (concurrent_queries * 3).div_ceil(4),
        some => some,
    };
    Ok(InterfaceSettings {
        listen,
        public_url: public_url.unwrap_or_else(|| own_url(scheme, listen)),
        cors_origins: parse::list(said("cors_origins")?),
        body_limit: parse::size(said("body_limit")?)?,
        text_limit: parse::size(said("text_limit")?)?,
        query_deadline: parse::duration(said("query_deadline")?)?,
        concurrent_queries,
        person_queries,
        waiting_queries: parse::count(said("waiting_queries")?, 0)?,
        queue_patience: parse::duration(said("queue_patience")?)?,
        cell_limit: parse::number(said("cell_limit")?, 1)?,
        slow_client_limit: parse::duration(said("slow_client_limit")?)?,
        connection_limit: parse::count(said("connection_limit")?, 1)?,
        address_connections: parse::count(said("address_connections")?, 1)?,
        trusted_proxies: networks(said("trusted_proxies")?)?,
        operations_address: operations_address(sayings)?,
        certificate,
        rates: RateSettings {
            reads: parse::number(said("rate_reads")?, 0)?,
            writes: parse::number(said("rate_writes")?, 0)?,
            bytes: rate_of_bytes(said("rate_bytes")?)?,
            address: parse::number(said("rate_address")?, 0)?,
        },
        log_people: parse::flag(said("log_people")?)?,
        shutdown_limit: parse::duration(said("shutdown_limit")?)?,
        source_prefix: said("source_prefix")?
            .value()
            .map(str::to_owned)
            .ok_or_else(|| wrong(sayings, "source_prefix", "a name"))?,
    })
}

/// How a client on this machine reaches a service that listens on `listen`.
#[must_use]
pub fn own_url(scheme: &str, listen: SocketAddr) -> String {
    if listen.ip().is_unspecified() {
        format!("{scheme}://localhost:{}", listen.port())
    } else {
        format!("{scheme}://{listen}")
    }
}

/// Certificate and key: both or none.
fn certificate(sayings: &Sayings) -> Result<Option<CertificateFiles>, SettingsError> {
    let (certificate, key) = (sayings.said("tls_certificate")?, sayings.said("tls_key")?);
    match (certificate.value(), key.value()) {
        (Some(certificate), Some(key)) => Ok(Some(CertificateFiles {
            certificate: PathBuf::from(certificate),
            key: PathBuf::from(key),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(key.wrong("the file of the certificate's key")),
        (None, Some(_)) => Err(certificate.wrong("the file of the key's certificate")),
    }
}

fn operations_address(sayings: &Sayings) -> Result<Option<SocketAddr>, SettingsError> {
    let said = sayings.said("operations_address")?;
    said.value().map(|_| parse::address(said)).transpose()
}

fn networks(said: &Said) -> Result<TrustedProxies, SettingsError> {
    let networks: Result<Vec<Network>, _> = parse::list(said).iter().map(|text| text.parse()).collect();
    networks
        .map(TrustedProxies)
        .map_err(|error| said.wrong(error.to_string()))
}

/// A duration, or as long as one likes.
fn longest_lifetime(said: &Said) -> Result<Duration, SettingsError> {
    said.value().map_or(Ok(Duration::MAX), |_| parse::duration(said))
}

/// A size, or 0 for none.
fn rate_of_bytes(said: &Said) -> Result<u64, SettingsError> {
    if said.text.trim() == "0" {
        return Ok(0);
    }
    parse::size(said).map(|bytes| bytes as u64)
}

fn identity(sayings: &Sayings) -> Result<IdentitySettings, SettingsError> {
    let said = |name| sayings.said(name);
    let provider = match parse::optional_url(said("jwks_url")?)? {
        None => Provider::Embedded,
        Some(jwks_url) => Provider::Outside(OutsideProvider {
            jwks_url,
            algorithms: algorithms(said("algorithms")?)?,
            lifetime: parse::duration(said("jwks_lifetime")?)?,
            minimum_interval: parse::duration(said("jwks_interval")?)?,
            stale: parse::duration(said("jwks_stale")?)?,
        }),
    };
    // Tokens made here always say for whom and by whom, so that a key that ended up in two places opens only
    // one of them.
    let own_name = (provider == Provider::Embedded).then(|| IdentitySettings::EMBEDDED_NAME.to_owned());
    Ok(IdentitySettings {
        provider,
        issuer: said("issuer")?
            .value()
            .map(str::to_owned)
            .or_else(|| own_name.clone()),
        audience: said("audience")?.value().map(str::to_owned).or(own_name),
        user_claim: said("user_claim")?
            .value()
            .map(str::to_owned)
            .ok_or_else(|| wrong(sayings, "user_claim", "the name of a claim"))?,
        subject_as_person: parse::flag(said("subject_as_person")?)?,
        longest: longest_lifetime(said("token_lifetime_limit")?)?,
        leeway: parse::duration(said("token_leeway")?)?,
    })
}

fn algorithms(said: &Said) -> Result<Vec<PublicAlgorithm>, SettingsError> {
    let known = |name: &String| {
        PublicAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    };
    let found: Option<Vec<PublicAlgorithm>> = parse::list(said).iter().map(known).collect();
    found
        .filter(|found| !found.is_empty())
        .ok_or_else(|| said.wrong("some of RS256, ES256 and EdDSA, with commas between them"))
}

/// Where the keys are.
#[derive(Clone, Debug)]
pub struct EncryptionSettings {
    /// The file of the master keys.
    pub master: PathBuf,
    /// Where the keys of people are, wrapped.
    pub keys: ObjectStoreSettings,
}

fn encryption(sayings: &Sayings, data_dir: &Path) -> Result<Option<EncryptionSettings>, SettingsError> {
    let Some(master) = sayings.said("master_key_file")?.value() else {
        return Ok(None);
    };
    let place = sayings.said("person_keys")?;
    let keys = match place.value() {
        None if sayings.said("object_store")?.value().is_some() => {
            return Err(place.wrong("a place that every node reaches: s3://bucket/prefix or a directory"));
        }
        None => ObjectStoreSettings::Local(data_dir.join("person-keys")),
        Some(url) if url.starts_with("s3://") => ObjectStoreSettings::S3 {
            url: url.to_owned(),
            options: s3_options(sayings)?,
        },
        Some(path) => ObjectStoreSettings::Local(PathBuf::from(path)),
    };
    Ok(Some(EncryptionSettings {
        master: PathBuf::from(master),
        keys,
    }))
}

fn objects(sayings: &Sayings, data_dir: &Path) -> Result<ObjectStoreSettings, SettingsError> {
    let store = sayings.said("object_store")?;
    match store.value() {
        None => Ok(ObjectStoreSettings::Local(data_dir.join("objects"))),
        Some(url) if url.starts_with("s3://") => Ok(ObjectStoreSettings::S3 {
            url: url.to_owned(),
            options: s3_options(sayings)?,
        }),
        Some(path) => match path.strip_prefix("file://").unwrap_or(path) {
            path if path.contains("://") => Err(store.wrong("s3://bucket/prefix or a directory")),
            path => Ok(ObjectStoreSettings::Local(PathBuf::from(path))),
        },
    }
}

/// The usual variables under their usual names, as far as they are set.
fn s3_options(sayings: &Sayings) -> Result<Vec<(String, String)>, SettingsError> {
    parse::optional_url(sayings.said("aws_endpoint_url")?)?;
    let allow_http = parse::flag(sayings.said("aws_allow_http")?)?;
    let mut options: Vec<(String, String)> = sayings
        .as_slice()
        .iter()
        .filter(|said| said.entry.variable.starts_with("AWS_") && said.entry.name != "aws_allow_http")
        .filter_map(|said| Some((said.entry.variable.to_owned(), said.value()?.to_owned())))
        .collect();
    options.push(("AWS_ALLOW_HTTP".to_owned(), allow_http.to_string()));
    Ok(options)
}

fn files(sayings: &Sayings) -> Result<FileSettings, SettingsError> {
    let said = |name| sayings.said(name);
    let clamd = said("clamd")?;
    let address = |text: &str| text.parse().map_err(|()| clamd.wrong("host:port or unix:/path"));
    Ok(FileSettings {
        upload_lifetime: parse::duration(said("upload_lifetime")?)?,
        concurrent_uploads: parse::count(said("concurrent_uploads")?, 1)?,
        direct: parse::flag(said("direct_uploads")?)?,
        clamd: clamd.value().map(address).transpose()?,
    })
}

fn geocoder(sayings: &Sayings) -> Result<Option<ServiceSettings>, SettingsError> {
    let url = parse::optional_url(sayings.said("geocoder_url")?)?;
    let timeout = parse::duration(sayings.said("geocoder_timeout")?)?;
    let cache = parse::number(sayings.said("geocoder_cache")?, 0)?;
    let per_person = parse::number(sayings.said("geocoder_per_person")?, 1)?;
    Ok(url.map(|url| ServiceSettings {
        url,
        timeout,
        cache,
        per_person,
    }))
}

fn log(sayings: &Sayings) -> Result<LogSettings, SettingsError> {
    let format = sayings.said("log_format")?;
    let format = match format.text.trim() {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => return Err(format.wrong("text or json")),
    };
    Ok(LogSettings {
        filter: sayings.said("log")?.text.clone(),
        format,
    })
}
