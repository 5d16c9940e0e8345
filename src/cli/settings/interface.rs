//! Settings of the interface: how clients reach the service, and how much they may ask of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::error::SettingsError;
use super::given::{GivenSetting, GivenSettings};
use super::parse;
use crate::api::settings::trusted_proxies::{Network, TrustedProxies};
use crate::api::settings::{CertificateFiles, InterfaceSettings, RateSettings};

pub(super) fn interface(given: &GivenSettings) -> Result<InterfaceSettings, SettingsError> {
    let setting = |name| given.setting(name);
    let listen = parse::address(setting("listen")?)?;
    let public_url = parse::base_url(setting("public_url")?)?;
    let certificate = certificate(given)?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let concurrent_queries = parse::count(setting("concurrent_queries")?, 1)?;
    let person_queries = match parse::count(setting("person_queries")?, 0)? {
        0 => (concurrent_queries * 3).div_ceil(4),
        some => some,
    };
    Ok(InterfaceSettings {
        listen,
        public_url: public_url.unwrap_or_else(|| own_url(scheme, listen)),
        cors_origins: parse::origins(setting("cors_origins")?)?,
        body_limit: parse::size(setting("body_limit")?)?,
        text_limit: parse::size(setting("text_limit")?)?,
        query_deadline: parse::some_time(setting("query_deadline")?)?,
        concurrent_queries,
        person_queries,
        waiting_queries: parse::count(setting("waiting_queries")?, 0)?,
        queue_patience: parse::duration(setting("queue_patience")?)?,
        cell_limit: parse::number(setting("cell_limit")?, 1)?,
        slow_client_limit: parse::some_time(setting("slow_client_limit")?)?,
        connection_limit: parse::count(setting("connection_limit")?, 1)?,
        address_connections: parse::count(setting("address_connections")?, 1)?,
        trusted_proxies: networks(setting("trusted_proxies")?)?,
        operations_address: operations_address(given)?,
        certificate,
        rates: RateSettings {
            reads: parse::number(setting("rate_reads")?, 0)?,
            writes: parse::number(setting("rate_writes")?, 0)?,
            bytes: rate_of_bytes(setting("rate_bytes")?)?,
            address: parse::number(setting("rate_address")?, 0)?,
        },
        log_people: parse::flag(setting("log_people")?)?,
        shutdown_limit: parse::duration(setting("shutdown_limit")?)?,
        source_prefix: parse::name_prefix(setting("source_prefix")?)?,
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
fn certificate(given: &GivenSettings) -> Result<Option<CertificateFiles>, SettingsError> {
    let (certificate, key) = (given.setting("tls_certificate")?, given.setting("tls_key")?);
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

fn operations_address(given: &GivenSettings) -> Result<Option<SocketAddr>, SettingsError> {
    let setting = given.setting("operations_address")?;
    setting.value().map(|_| parse::address(setting)).transpose()
}

fn networks(setting: &GivenSetting) -> Result<TrustedProxies, SettingsError> {
    let networks: Result<Vec<Network>, _> = parse::list(setting).iter().map(|text| text.parse()).collect();
    networks
        .map(TrustedProxies)
        .map_err(|error| setting.wrong(error.to_string()))
}

/// A size, or 0 for no limit.
fn rate_of_bytes(setting: &GivenSetting) -> Result<u64, SettingsError> {
    if setting.text.trim() == "0" {
        return Ok(0);
    }
    parse::size(setting).map(|bytes| bytes as u64)
}
