//! What an operator can say about the interface. Plain data, resolved once at start.

use std::net::SocketAddr;
use std::time::Duration;

use crate::api::serve::addresses::TrustedProxies;
use crate::api::serve::tls::CertificateFiles;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSettings {
    pub listen: SocketAddr,
    /// Without a slash at the end. Addresses handed out are built on it.
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
    /// Rows times columns of one computed answer.
    pub cell_limit: u64,
    /// How long a client may neither send what it owes nor take what it asked for.
    pub slow_client_limit: Duration,
    pub connection_limit: usize,
    /// Connections that one address may have, unless it is a proxy of ours.
    pub address_connections: usize,
    pub trusted_proxies: TrustedProxies,
    /// Where metrics are shown instead, and health besides.
    pub operations_address: Option<SocketAddr>,
    /// TLS is spoken with it.
    pub certificate: Option<CertificateFiles>,
    /// Questions of one person that are answered at once.
    pub person_queries: usize,
    pub rates: RateSettings,
    /// Whether the log says who asked.
    pub log_people: bool,
    /// How long a stopping service waits for requests that it accepted.
    pub shutdown_limit: Duration,
    /// First part of the source ids of annotations.
    pub source_prefix: String,
}

/// How much may be asked for in a minute. 0: as much as one likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSettings {
    /// Requests of one person that read.
    pub reads: u64,
    /// Requests of one person that change something.
    pub writes: u64,
    /// Bytes of one person, of bodies and answers together.
    pub bytes: u64,
    /// Requests from one address, whoever they are from.
    pub address: u64,
}
