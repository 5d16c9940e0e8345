//! Why there is no verdict on a file, and what that means for the others. Knows nothing of the protocol.

use std::fmt::Display;

use crate::people::files::file::File;
use crate::store::StoreError;

/// Why there is no verdict.
pub(super) enum Failed {
    Silent(Silent),
    Store(StoreError),
}

impl Failed {
    /// Logs that there is no verdict on `file`.
    pub(super) fn told_of(&self, file: &File) {
        let reason: &dyn Display = match self {
            Self::Silent(silent) => silent,
            Self::Store(error) => error,
        };
        tracing::warn!(file = %file.id, %reason, "there is no verdict on a file, which stays pending");
    }

    /// The outcome where the cause is not the files.
    pub(super) fn ends_a_round(self) -> Result<(), StoreError> {
        match self {
            Self::Silent(silent) => {
                tracing::warn!(%silent, "the scanner does not answer; files stay pending");
                Ok(())
            }
            Self::Store(error) => Err(error),
        }
    }
}

/// The scanner did not answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Silent(pub(super) String);
