//! The destination of an archive that is being written: the object store, for its owner to fetch, or a file
//! on this machine, for the operator.

mod local;
mod stored;

use bytes::Bytes;

use super::export::ExportError;

pub(super) use local::LocalOutlet;
pub(super) use stored::StoredOutlet;

/// Receives the bytes of one archive.
pub(super) enum Outlet<'o, 'e> {
    Stored(&'o mut StoredOutlet<'e>),
    Local(&'o mut LocalOutlet<'e>),
}

impl Outlet<'_, '_> {
    /// Appends to the archive.
    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), ExportError> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self {
            Self::Stored(outlet) => outlet.write(bytes).await,
            Self::Local(outlet) => outlet.write(bytes).await,
        }
    }

    /// The SHA-256 of everything so far, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        match self {
            Self::Stored(outlet) => outlet.digest(),
            Self::Local(outlet) => outlet.digest(),
        }
    }

    /// Records that `done` of `total` members are written.
    pub(super) async fn tell(&mut self, done: u64, total: u64) -> Result<(), ExportError> {
        match self {
            Self::Stored(outlet) => outlet.tell(done, total).await,
            Self::Local(outlet) => {
                outlet.tell(done, total);
                Ok(())
            }
        }
    }
}
