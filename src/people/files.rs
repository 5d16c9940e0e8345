//! Files that a person keeps beside their records, in versions.
//!
//! A file is announced, then its bytes arrive, and from then on it is the current one at its path and name;
//! an older one becomes an earlier version in the same transaction. Neither a new version nor deletion loses
//! anything: any version whose bytes once arrived can be restored as a new one. Knows documents and contents;
//! knows nothing of HTTP, of tickets, or of who may read what.

pub mod antivirus;
mod bring_back;
mod direct;
mod errors;
mod file;
mod file_list;
mod final_removal;
mod handle;
mod listing;
#[cfg(test)]
mod tests;
mod upload;
mod versions;

pub use bring_back::{BringBackError, harmful};
pub use direct::Arrivals;
pub use errors::FilesError;
pub use file::{AnnouncedFile, File, FileState, ScanState};
pub use final_removal::FinalRemoval;
pub use handle::{FileSettings, Files};
pub use listing::{Listing, ListingFilter};
pub use upload::{Awaited, Received, SentBytes, UploadError};
pub use versions::NewFile;
