//! Where tests keep a catalogue. Knows nothing of what they keep in it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The file of the SQLite database in this directory.
pub(crate) fn file_in(directory: &Path) -> PathBuf {
    directory.join("catalogue.db")
}

/// The address of the SQLite database in this directory.
pub(crate) fn address_in(directory: &Path) -> String {
    format!("sqlite://{}", file_in(directory).display())
}

/// The files in this directory, among them the SQLite database's, in which `text` is found.
pub(crate) fn files_with(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let has_it = |bytes: Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        if path.is_file() && has_it(std::fs::read(&path).unwrap()) {
            found.push(path);
        }
    }
    found
}

/// The address of every database at hand, each with a directory for what is kept beside it: SQLite and, where
/// `ALMANAC_TEST_POSTGRES_URL` names one, PostgreSQL.
pub(crate) fn databases_at_hand() -> Vec<(TempDir, String)> {
    let directory = || tempfile::tempdir().unwrap();
    let sqlite = directory();
    let address = address_in(sqlite.path());
    let mut databases = vec![(sqlite, address)];
    if let Ok(address) = std::env::var("ALMANAC_TEST_POSTGRES_URL") {
        databases.push((directory(), address));
    }
    databases
}
