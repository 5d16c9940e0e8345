//! The address of a catalogue, as operators write it.

use std::path::Path;
use std::str::FromStr as _;

use reqwest::Url;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::catalog::errors::CatalogError;

/// The parameters of the address of a server that count. Others are refused, since a misspelt one would
/// silently not count, except [`IGNORED_PARAMETERS`].
pub(in crate::catalog) const SERVER_PARAMETERS: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "statement-cache-capacity",
    "options",
];

/// Parameters of PostgreSQL's own client that addresses from providers have, and that the client ignores.
const IGNORED_PARAMETERS: &[&str] = &[
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "target_session_attrs",
    "tcp_user_timeout",
];

/// A parsed address.
pub(in crate::catalog) enum Address<'a> {
    Sqlite(&'a Path),
    Postgres(Box<PgConnectOptions>),
}

impl<'a> Address<'a> {
    /// Parses `sqlite://PATH` or `postgres://…`. Does not check that anything is there.
    pub(in crate::catalog) fn read(address: &'a str) -> Result<Self, CatalogError> {
        let sqlite = address
            .strip_prefix("sqlite://")
            .or_else(|| address.strip_prefix("sqlite:"));
        let is_postgres = address.starts_with("postgres://") || address.starts_with("postgresql://");
        let understood = match sqlite {
            Some(path) if is_in_memory(path) => None,
            Some(path) if !path.is_empty() => Some(Self::Sqlite(Path::new(path))),
            None if is_postgres && has_known_parameters(address) => {
                let options = PgConnectOptions::from_str(address).ok();
                options.map(|options| Self::Postgres(Box::new(options)))
            }
            _ => None,
        };
        understood.ok_or(CatalogError::Address)
    }

    /// The host that is reached over a network, if the connection may do without TLS. The client takes what
    /// the address leaves open from PostgreSQL's own variables, and the last of what it says twice, so only
    /// the client's reading of it tells.
    pub(in crate::catalog) fn plain_host(&self) -> Option<&str> {
        let Self::Postgres(options) = self else {
            return None;
        };
        let insists = matches!(
            options.get_ssl_mode(),
            PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull
        );
        let host = options.get_host();
        let is_socket = options.get_socket().is_some() || host.starts_with('/');
        (!insists && !is_socket).then(|| host.trim_matches(['[', ']']))
    }
}

/// Whether all parameters of the address of a server are known.
fn has_known_parameters(address: &str) -> bool {
    let is_known = |name: &str| {
        SERVER_PARAMETERS.contains(&name)
            || IGNORED_PARAMETERS.contains(&name)
            || name.starts_with("options[")
    };
    Url::parse(address).is_ok_and(|url| url.query_pairs().all(|(name, _)| is_known(&name)))
}

/// Whether SQLite would take a path for a database that ends with its connection.
fn is_in_memory(path: &str) -> bool {
    let is_such = |uri: &str| uri.starts_with(":memory:") || uri.contains("mode=memory");
    path == ":memory:" || path.strip_prefix("file:").is_some_and(is_such)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_a_server_is_understood_and_nothing_else() {
        for address in ["sqlite:///srv/a.db", "sqlite:a.db", "sqlite:///srv/:memory:/a.db"] {
            assert!(
                matches!(Address::read(address), Ok(Address::Sqlite(_))),
                "{address}"
            );
        }
        for address in [
            "postgres://me@localhost/a",
            "postgresql://localhost:5433/a",
            "postgres:///a?host=/run/postgresql&sslmode=disable",
            "postgres://me@localhost/a?sslmode=require&channel_binding=require&connect_timeout=10",
            "postgres://localhost/a?options=-c%20work_mem%3D1&options[geqo]=off&statement-cache-capacity=9",
        ] {
            assert!(
                matches!(Address::read(address), Ok(Address::Postgres(_))),
                "{address}"
            );
        }
        for address in [
            "",
            "a.db",
            "mysql://localhost/a",
            "sqlite://",
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite://file::memory:?cache=shared",
            "sqlite:file:a?mode=memory",
            "postgres://me@host:port/a",
            "postgres://me@localhost/a?sslmod=require",
            "postgres://me@localhost/a?sslmode=require&sslpassword=secret",
        ] {
            assert!(Address::read(address).is_err(), "{address}");
        }
    }
}
