//! Settings: read once at start, checked as a whole, then plain values that never change.
//!
//! [`table`] lists what can be set; [`given`] decides which of flag, environment and file wins; this module
//! turns texts into values of the rooms that use them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::settings::InterfaceSettings;
use crate::api::traces::sending::TraceSettings;
use crate::auth::settings::{IdentitySettings, OutsideProvider, Provider, PublicAlgorithm};
use crate::catalog::Catalog;
use crate::people::files::antivirus::ClamdAddress;
use crate::people::frames::FrameSettings;
use crate::people::limits::PersonLimits;
use crate::people::takeout::ExportSettings;
use crate::query::places::geocoder::service::ServiceSettings;
use crate::store::objects::ObjectStoreSettings;
use crate::upkeep::backup::{CATALOGUE_FILE, OBJECTS_FOLDER};
use crate::upkeep::settings::UpkeepSettings;

mod error;
pub mod given;
mod interface;
mod limits;
mod parse;
mod passwords;
mod storage;
pub mod table;
#[cfg(test)]
mod tests;

use given::{GivenSetting, GivenSettings, Origin};
use interface::interface;
use limits::limits;
use storage::{encryption, storage};

pub use error::SettingsError;
pub use interface::own_url;
pub(super) use passwords::without_passwords;
pub use storage::EncryptionSettings;

/// The most threads that compute answers. Each has a stack of its own, and a system refuses what is too many.
const MOST_THREADS: u64 = 1024;
/// The most connections to a database: room for each of them is made at the start.
const MOST_CONNECTIONS: u64 = 10_000;

/// The longest wait for more to commit: whoever sent the first of it waits for as long.
const LONGEST_COMMIT_WINDOW: Duration = Duration::from_secs(10);

/// All settings as values.
#[derive(Clone)]
pub struct Settings {
    pub interface: InterfaceSettings,
    pub identity: IdentitySettings,
    pub data_dir: PathBuf,
    pub database_url: String,
    pub database_connections: u32,
    pub objects: ObjectStoreSettings,
    /// How stored data of people is encrypted, if it is.
    pub encryption: Option<EncryptionSettings>,
    /// Whether catalogue and object store belong together even if they do not appear to.
    pub adopt_store: bool,
    /// Whether unencrypted connections over a network are allowed, which everybody on the way can read.
    pub allow_plaintext: bool,
    pub queries: QuerySettings,
    pub writes: WriteSettings,
    pub upkeep: UpkeepSettings,
    /// How much each person may store.
    pub limits: PersonLimits,
    pub files: FileIntakeSettings,
    /// How archives of everything that a person has are made.
    pub exports: ExportSettings,
    pub frames: FrameSettings,
    /// The service that names positions, if not the built-in places.
    pub geocoder: Option<ServiceSettings>,
    pub log: LogSettings,
    /// Where traces are sent, if anywhere.
    pub traces: Option<TraceSettings>,
}

impl std::fmt::Debug for Settings {
    /// Shows no settings: some are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// The limits for answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySettings {
    pub threads: usize,
    pub memory_limit: usize,
    /// Bytes of everything that is kept so that it need not be read or computed again.
    pub cache_memory: u64,
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

/// How files are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIntakeSettings {
    pub upload_lifetime: Duration,
    pub concurrent_uploads: usize,
    /// Whether senders put bytes into the object store without passing the service.
    pub direct: bool,
    /// The scanner that checks files for malware.
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

impl GivenSettings {
    /// These settings, with the values of those that nobody set and that follow from others.
    #[must_use]
    pub fn completed(mut self, settings: &Settings) -> Self {
        for setting in self.0.iter_mut().filter(|setting| setting.value().is_none()) {
            if let Some((text, from)) = settings.following(setting.entry.name) {
                setting.text = text;
                setting.origin = Origin::Follows(from);
            }
        }
        self
    }
}

impl Settings {
    pub fn from_given(given: &GivenSettings) -> Result<Self, SettingsError> {
        let setting = |name| given.setting(name);
        let data_dir = PathBuf::from(required(setting("data_dir")?, "a directory")?);
        let limits = limits(given)?;
        Ok(Self {
            interface: interface(given)?,
            identity: identity(given)?,
            database_url: database_url(given, &data_dir)?,
            database_connections: parse::count_within(setting("database_connections")?, 4..=MOST_CONNECTIONS)?
                as u32,
            objects: storage(given, "object_store", data_dir.join(OBJECTS_FOLDER))?,
            encryption: encryption(given, &data_dir)?,
            adopt_store: parse::flag(setting("adopt_store")?)?,
            allow_plaintext: parse::flag(setting("allow_plaintext")?)?,
            data_dir,
            queries: queries(given)?,
            writes: writes(given)?,
            upkeep: upkeep(given)?,
            limits,
            files: files(given)?,
            exports: ExportSettings {
                lifetime: parse::some_time(setting("export_lifetime")?)?,
                at_once: parse::count(setting("concurrent_exports")?, 1)?,
                limit: limits.exports,
            },
            frames: FrameSettings {
                lifetime: parse::some_time(setting("frame_lifetime")?)?,
                limit: limits.frames,
                most_bytes: parse::size(setting("limit_frame_bytes")?)? as u64,
            },
            geocoder: geocoder(given)?,
            log: log(given)?,
            traces: traces(given)?,
        })
    }
}

impl Settings {
    /// Whether senders put the bytes of files into the object store themselves: not into a directory, which
    /// nobody else reaches, and not with encryption.
    #[must_use]
    pub const fn sends_directly(&self) -> bool {
        self.files.direct
            && self.encryption.is_none()
            && matches!(self.objects, ObjectStoreSettings::S3 { .. })
    }

    /// The address of the catalogue, without secrets.
    #[must_use]
    pub fn shown_database(&self) -> String {
        without_passwords(&self.database_url)
    }

    /// The value of an unset setting that follows from another one, and the name of that one.
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

fn queries(given: &GivenSettings) -> Result<QuerySettings, SettingsError> {
    let setting = |name| given.setting(name);
    Ok(QuerySettings {
        threads: parse::count_within(setting("query_threads")?, 0..=MOST_THREADS)?,
        memory_limit: parse::size(setting("memory_limit")?)?,
        cache_memory: parse::size(setting("cache_memory")?)? as u64,
        spill_limit: parse::size(setting("spill_limit")?)? as u64,
    })
}

fn writes(given: &GivenSettings) -> Result<WriteSettings, SettingsError> {
    let setting = |name| given.setting(name);
    Ok(WriteSettings {
        waiting: parse::count(setting("waiting_writes")?, 1)?,
        commit_window: parse::duration_up_to(setting("commit_window")?, LONGEST_COMMIT_WINDOW)?,
        commit_size: parse::size(setting("commit_size")?)?,
        body_memory: parse::size(setting("body_memory")?)?,
        tail_limit: parse::size(setting("tail_limit")?)?,
    })
}

fn upkeep(given: &GivenSettings) -> Result<UpkeepSettings, SettingsError> {
    let setting = |name| given.setting(name);
    Ok(UpkeepSettings {
        enabled: parse::flag(setting("upkeep")?)?,
        interval: parse::duration(setting("upkeep_interval")?)?,
        flush_age: parse::duration(setting("flush_age")?)?,
        flush_size: parse::size(setting("flush_size")?)?,
        grace_period: parse::duration(setting("grace_period")?)?,
        search_interval: parse::duration(setting("search_interval")?)?,
        purge_deleted_after: parse::duration(setting("purge_deleted_after")?)?,
        collect_anyway: parse::flag(setting("collect_anyway")?)?,
    })
}

/// The address of the catalogue: in the data directory by default.
fn database_url(given: &GivenSettings, data_dir: &Path) -> Result<String, SettingsError> {
    let setting = given.setting("database_url")?;
    let Some(address) = setting.value() else {
        return Ok(format!("sqlite://{}", data_dir.join(CATALOGUE_FILE).display()));
    };
    match Catalog::understands(address) {
        Ok(()) => Ok(address.to_owned()),
        Err(_) => Err(setting.wrong(format!(
            "sqlite://PATH or postgres://USER@HOST/DATABASE, with no parameters but {}",
            Catalog::SERVER_PARAMETERS.join(", ")
        ))),
    }
}

/// The value of a setting that must have one.
fn required<'a>(setting: &'a GivenSetting, expected: &str) -> Result<&'a str, SettingsError> {
    setting.value().ok_or_else(|| setting.wrong(expected))
}

/// A duration, or no limit.
fn longest_lifetime(setting: &GivenSetting) -> Result<Duration, SettingsError> {
    setting
        .value()
        .map_or(Ok(Duration::MAX), |_| parse::some_time(setting))
}

fn identity(given: &GivenSettings) -> Result<IdentitySettings, SettingsError> {
    let setting = |name| given.setting(name);
    // All of them are read where no provider needs them, too: a mistake is told before it has an effect.
    let algorithms = algorithms(setting("algorithms")?)?;
    let lifetime = parse::duration(setting("jwks_lifetime")?)?;
    let minimum_interval = parse::duration(setting("jwks_interval")?)?;
    let stale = parse::duration(setting("jwks_stale")?)?;
    let provider = match parse::whole_url(setting("jwks_url")?)? {
        None => Provider::Embedded,
        Some(jwks_url) => Provider::Outside(OutsideProvider {
            jwks_url,
            algorithms,
            lifetime,
            minimum_interval,
            stale,
        }),
    };
    // Tokens made here always name issuer and audience, so that a key that ended up in two installations
    // opens only one of them.
    let own_name = (provider == Provider::Embedded).then(|| IdentitySettings::EMBEDDED_NAME.to_owned());
    Ok(IdentitySettings {
        provider,
        issuer: setting("issuer")?
            .value()
            .map(str::to_owned)
            .or_else(|| own_name.clone()),
        audience: setting("audience")?.value().map(str::to_owned).or(own_name),
        user_claim: required(setting("user_claim")?, "the name of a claim")?.to_owned(),
        subject_as_person: parse::flag(setting("subject_as_person")?)?,
        longest: longest_lifetime(setting("token_lifetime_limit")?)?,
        leeway: parse::duration(setting("token_leeway")?)?,
    })
}

fn algorithms(setting: &GivenSetting) -> Result<Vec<PublicAlgorithm>, SettingsError> {
    let known = |name: &String| {
        PublicAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    };
    let found: Option<Vec<PublicAlgorithm>> = parse::list(setting).iter().map(known).collect();
    found
        .filter(|found| !found.is_empty())
        .ok_or_else(|| setting.wrong("some of RS256, ES256 and EdDSA, with commas between them"))
}

fn files(given: &GivenSettings) -> Result<FileIntakeSettings, SettingsError> {
    let setting = |name| given.setting(name);
    let clamd = setting("clamd")?;
    let address = |text: &str| text.parse().map_err(|()| clamd.wrong("host:port or unix:/path"));
    Ok(FileIntakeSettings {
        upload_lifetime: parse::some_time(setting("upload_lifetime")?)?,
        concurrent_uploads: parse::count(setting("concurrent_uploads")?, 1)?,
        direct: parse::flag(setting("direct_uploads")?)?,
        clamd: clamd.value().map(address).transpose()?,
    })
}

fn geocoder(given: &GivenSettings) -> Result<Option<ServiceSettings>, SettingsError> {
    let url = parse::base_url(given.setting("geocoder_url")?)?;
    let timeout = parse::some_time(given.setting("geocoder_timeout")?)?;
    let cache = parse::number(given.setting("geocoder_cache")?, 0)?;
    let per_person = parse::number(given.setting("geocoder_per_person")?, 1)?;
    Ok(url.map(|url| ServiceSettings {
        url,
        timeout,
        cache,
        per_person,
    }))
}

fn traces(given: &GivenSettings) -> Result<Option<TraceSettings>, SettingsError> {
    let headers = parse::headers(given.setting("otel_exporter_otlp_headers")?)?;
    let endpoint = parse::base_url(given.setting("otel_exporter_otlp_endpoint")?)?;
    Ok(endpoint.map(|endpoint| TraceSettings { endpoint, headers }))
}

fn log(given: &GivenSettings) -> Result<LogSettings, SettingsError> {
    let format = given.setting("log_format")?;
    let format = match format.text.trim() {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        _ => return Err(format.wrong("text or json")),
    };
    Ok(LogSettings {
        filter: parse::log_filter(given.setting("log")?)?,
        format,
    })
}
