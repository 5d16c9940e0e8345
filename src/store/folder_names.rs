//! The names of the folders of the object store. Knows nothing of what is in them, so that every layer above
//! the store can use them.

/// Not a folder, but everything in a store.
pub const WHOLE_STORE: &str = "";
/// The folder of all objects of pieces.
pub const DATA_FOLDER: &str = "data";
/// The folder of all parts of files.
pub const FILES_FOLDER: &str = "files";
/// The folder of all parts of exports.
pub const EXPORTS_FOLDER: &str = "exports";
/// The folder of all parts of frames.
pub const FRAMES_FOLDER: &str = "frames";
/// The folder of what is written about people beside their data.
pub const PEOPLE_FOLDER: &str = "people";
/// The folder of contents that their senders put into the object store themselves.
pub const INCOMING_FOLDER: &str = "incoming";
/// The folder of notes about erasures.
pub const ERASED_FOLDER: &str = "erased";
