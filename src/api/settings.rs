//! What an operator can configure about the interface. Plain data, resolved once at start.

pub mod trusted_proxies;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use trusted_proxies::TrustedProxies;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSettings {
    pub listen: SocketAddr,
    /// Without a slash at the end. Addresses in answers begin with it.
    pub public_url: String,
    /// Origins whose pages may call the interface; `*` for all.
    pub cors_origins: Vec<String>,
    /// Bytes of a request's body, before and after decompression.
    pub body_limit: usize,
    /// Bytes of one text of a record.
    pub text_limit: usize,
    /// How long a question may take until its first row.
    pub query_deadline: Duration,
    pub concurrent_queries: usize,
    pub waiting_queries: usize,
    /// How long a question waits for its turn.
    pub queue_patience: Duration,
    /// The most rows times columns of one computed answer.
    pub cell_limit: u64,
    /// How long a client may fail to send what it owes or to take what it asked for.
    pub slow_client_limit: Duration,
    pub connection_limit: usize,
    /// Connections that one address may have, unless it is a trusted proxy.
    pub address_connections: usize,
    pub trusted_proxies: TrustedProxies,
    /// A separate address for metrics, which are then served only there, and for health checks.
    pub operations_address: Option<SocketAddr>,
    /// The certificate for TLS, if the service itself uses TLS.
    pub certificate: Option<CertificateFiles>,
    /// Questions of one person that may run at once.
    pub person_queries: usize,
    pub rates: RateSettings,
    /// Whether the log says who asked.
    pub log_people: bool,
    /// How long a stopping service waits for requests that it accepted.
    pub shutdown_limit: Duration,
    /// First part of the source ids of annotations.
    pub source_prefix: String,
}

impl InterfaceSettings {
    /// The path in front of the routes in the addresses of answers, if a proxy removes one.
    #[must_use]
    pub fn path_before(&self) -> &str {
        let (_, rest) = self.public_url.split_once("://").unwrap_or_default();
        rest.find('/')
            .and_then(|slash| rest.get(slash..))
            .unwrap_or_default()
    }
}

/// The files of certificate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain as PEM, the service's own certificate first.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// How much may be asked for in a minute. 0: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSettings {
    /// Requests of one person that read.
    pub reads: u64,
    /// Requests of one person that change something.
    pub writes: u64,
    /// Bytes of one person, of bodies and answers together.
    pub bytes: u64,
    /// Requests from one address, whoever sends them.
    pub address: u64,
}
