//! What a driver's failure means to the catalogue, whichever database it comes from.

use crate::catalog::errors::CatalogError;

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(super) fn classify(error: sqlx::Error) -> CatalogError {
    let detail = error.to_string();
    match &error {
        sqlx::Error::Database(database) => match database.code().as_deref() {
            Some(code) if code.len() == 5 => classify_postgres(code, detail),
            Some(code) => CatalogError::of_sqlite(code.parse().unwrap_or(0), detail),
            None => CatalogError::Refused { detail },
        },
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => CatalogError::Full { detail },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => CatalogError::Unavailable { detail },
        // A value whose type is not the column's.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => CatalogError::Corrupt { what: detail },
        _ => CatalogError::Refused { detail },
    }
}

fn classify_postgres(code: &str, detail: String) -> CatalogError {
    match code {
        "53100" => CatalogError::Full { detail },
        "XX001" | "XX002" => CatalogError::Corrupt { what: detail },
        "23505" => CatalogError::Exists { what: detail },
        // Serialisation failure; deadlock; a lock that somebody else holds.
        "40001" | "40P01" | "55P03" => CatalogError::Contended { detail },
        "57P01" | "57P02" | "57P03" | "57014" | "25P03" | "58030" => CatalogError::Unavailable { detail },
        // Read-only, as a replica is; not accepting connections; or not permitted.
        "25006" | "55000" | "42501" => CatalogError::Unavailable { detail },
        _ if ["08", "28", "53"].iter().any(|class| code.starts_with(class)) => {
            CatalogError::Unavailable { detail }
        }
        _ => CatalogError::Refused { detail },
    }
}
