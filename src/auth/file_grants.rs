//! The one decision about reading files: (reader, owner) is refused, or becomes the paths that may be read.
//!
//! Until people can share, a person reads all of their own files and nobody else's.

use super::grants::{Grants, Refused};
use super::tokens::Reader;
use crate::model::ids::PersonId;

/// Permission to read some of one person's files. Made only here.
#[derive(Clone, Debug)]
pub struct ReadableFiles {
    owner: PersonId,
}

impl ReadableFiles {
    #[must_use]
    pub const fn owner(&self) -> PersonId {
        self.owner
    }

    /// Whether the file called `full_name`, folder and name, may be read.
    #[must_use]
    pub const fn cover(&self, full_name: &str) -> bool {
        // All of one's own.
        !full_name.is_empty()
    }
}

impl Grants {
    /// Which files of `owner` `reader` may read.
    #[expect(
        clippy::unused_async,
        reason = "a decision that looks up shares is asynchronous, and callers are not to change for it"
    )]
    pub async fn readable_files(&self, reader: &Reader, owner: PersonId) -> Result<ReadableFiles, Refused> {
        if reader.person() == owner {
            Ok(ReadableFiles { owner })
        } else {
            Err(Refused)
        }
    }
}
