//! What a failure of the driver means to the catalogue, whichever database it comes from.

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
        // A value of another type than the column's.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => CatalogError::Corrupt { what: detail },
        _ => CatalogError::Refused { detail },
    }
}

fn classify_postgres(code: &str, detail: String) -> CatalogError {
    match code {
        "53100" => CatalogError::Full { detail },
        "XX001" | "XX002" => CatalogError::Corrupt { what: detail },
        "23505" => CatalogError::Exists { what: detail },
        // Could not be put in an order; deadlock; a lock that somebody else has.
        "40001" | "40P01" | "55P03" => CatalogError::Contended { detail },
        "57P01" | "57P02" | "57P03" | "57014" | "25P03" | "58030" => CatalogError::Unavailable { detail },
        // It only reads, as one that follows another does; takes nobody in; or does not let us do this.
        "25006" | "55000" | "42501" => CatalogError::Unavailable { detail },
        _ if ["08", "28", "53"].iter().any(|class| code.starts_with(class)) => {
            CatalogError::Unavailable { detail }
        }
        _ => CatalogError::Refused { detail },
    }
}
