//! Where connections without TLS are allowed: to this machine, and to nothing on a network.

use super::failed::Failed;
use super::hosts::{host_of, is_this_machine};
use super::settings::Settings;

/// Modes in which PostgreSQL's client refuses to connect without TLS.
const SAFE_MODES: [&str; 3] = ["require", "verify-ca", "verify-full"];

/// Refuses a database connection that others could read or change on the way. For every command that opens
/// the catalogue: a backup transfers more at once than a service does in a day.
pub(super) fn refuse_unsafe_database(settings: &Settings) -> Result<(), Failed> {
    if settings.allow_plaintext || is_safe_database(&settings.database_url) {
        return Ok(());
    }
    Err(Failed::because(
        "the database is on another machine and may be spoken to without TLS: add sslmode=verify-full (or \
         require) to ALMANAC_DATABASE_URL, or set ALMANAC_ALLOW_PLAINTEXT=true if the network in between is \
         trusted",
    ))
}

/// Whether nobody on the way can read the traffic to the database at `url`.
fn is_safe_database(url: &str) -> bool {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return true;
    }
    let parameter = |name: &str| {
        let (_, query) = url.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
            .next_back()
    };
    if parameter("sslmode")
        .or_else(|| parameter("ssl-mode"))
        .is_some_and(|mode| SAFE_MODES.contains(&mode.as_str()))
    {
        return true;
    }
    match parameter("host")
        .or_else(|| parameter("hostaddr"))
        .or_else(|| host_of(url))
    {
        None => true,
        Some(host) => is_this_machine(&host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_elsewhere_needs_tls() {
        for (url, safe) in [
            ("sqlite://./catalogue.db", true),
            ("postgres://u:p@localhost:5432/db", true),
            ("postgres://u:p@127.0.0.1/db?sslmode=disable", true),
            ("postgres://[::1]/db", true),
            ("postgres:///db?host=/run/postgresql", true),
            ("postgres://%2Frun%2Fpostgresql/db", true),
            ("postgres://u:p@db.example/db", false),
            ("postgres://u:p@db.example/db?sslmode=prefer", false),
            ("postgres://u:p@db.example:5432/db?sslmode=verify-full", true),
            ("postgresql://db.example/db?sslmode=require", true),
            ("postgres://localhost/db?host=db.example", false),
            ("postgres://u:p@localhost@db.example/db", false),
        ] {
            assert_eq!(is_safe_database(url), safe, "{url}");
        }
    }
}
