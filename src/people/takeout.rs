//! Takeout: exports everything that a person has into an archive, and imports it again.
//!
//! An export is requested and then made in the background, by one node at a time, part by part into the
//! object store; its owner can fetch it until it expires. The operator can have one written into a file. An
//! import reads an archive into an installation, through the same path as all other writes. Interrupted work
//! begins anew after a crash. Knows stored rows, documents and contents; knows nothing of HTTP or of who may
//! ask.

pub mod archive;
mod building;
mod content;
mod export;
mod exports;
mod files;
mod format;
pub mod import;
mod outlet;
mod records;
mod renaming;
#[cfg(test)]
mod tests;
mod zip;

use std::path::Path;

pub use building::Building;
pub use export::{Export, ExportError, ExportState};
pub use exports::{ExportSettings, Exports};

use crate::model::ids::PersonId;
use content::write_archive;
use outlet::{LocalOutlet, Outlet};

/// An archive in a file on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
}

impl Exports {
    /// Writes an archive of everything that `person` has into a new file on this machine; `tell` receives the
    /// number of members written and their total.
    pub async fn save(
        &self,
        person: PersonId,
        path: &Path,
        tell: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Saved, ExportError> {
        let mut outlet = LocalOutlet::begin(path, tell).await?;
        let written = write_archive(self, person, Outlet::Local(&mut outlet));
        if let Err(error) = Box::pin(written).await {
            outlet.abandon().await;
            return Err(error);
        }
        let saved = Saved {
            bytes: outlet.bytes(),
            sha256: outlet.digest(),
        };
        outlet.finish().await?;
        Ok(saved)
    }
}
