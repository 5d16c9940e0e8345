//! Where connections without TLS are allowed: to this machine, and to nothing on a network.

use crate::auth::settings::Provider;
use crate::catalog::Catalog;

use super::failed::Failed;
use super::hosts::{is_safe, is_this_machine};
use super::settings::Settings;

/// Refuses a database connection that others could read or change on the way. For every command that opens
/// the catalogue: a backup transfers more at once than a service does in a day.
pub(super) fn refuse_unsafe_database(settings: &Settings) -> Result<(), Failed> {
    if settings.allow_plaintext || is_safe_database(&settings.database_url)? {
        return Ok(());
    }
    Err(Failed::because(
        "the database is on another machine and may be spoken to without TLS: add sslmode=verify-full (or \
         require) to ALMANAC_DATABASE_URL, or set ALMANAC_ALLOW_PLAINTEXT=true if the network in between is \
         trusted",
    ))
}

/// Refuses an identity provider whose keys others could replace on the way.
pub(super) fn refuse_unsafe_provider(settings: &Settings) -> Result<(), Failed> {
    match &settings.identity.provider {
        Provider::Outside(provider) if !settings.allow_plaintext && !is_safe(&provider.jwks_url) => {
            Err(Failed::because(
                "ALMANAC_JWKS_URL is on another machine and has no TLS: anyone in between could sign tokens; \
                 use https://, or set ALMANAC_ALLOW_PLAINTEXT=true if the network in between is trusted",
            ))
        }
        Provider::Outside(_) | Provider::Embedded => Ok(()),
    }
}

/// Whether nobody on the way can read the traffic to the database at `url`.
fn is_safe_database(url: &str) -> Result<bool, Failed> {
    let host = Catalog::plain_host_at(url).map_err(Failed::from_error)?;
    Ok(host.is_none_or(|host| is_this_machine(&host)))
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
            ("postgres:///db?host=localhost&hostaddr=192.0.2.1", false),
            ("postgres://db.example/db?hostaddr=127.0.0.1", true),
            (
                "postgres://db.example/db?host=/run/postgresql&sslmode=disable",
                true,
            ),
            ("postgres://db.example/db?sslmode=require&ssl-mode=disable", false),
            (
                "postgres://db.example/db?ssl-mode=disable&sslmode=VERIFY-FULL",
                true,
            ),
            ("postgres://u:p@localhost@db.example/db", false),
        ] {
            assert_eq!(is_safe_database(url).unwrap(), safe, "{url}");
        }
    }
}
