//! Errors in settings, which name the setting and where it was given.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{name} is {value:?} ({origin}); expected {expected}")]
    Value {
        name: &'static str,
        origin: String,
        value: String,
        expected: String,
    },
    #[error("{path} cannot be used: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("{path} sets {key:?}, which is not a setting; `almanac config` lists them all")]
    UnknownKey { path: PathBuf, key: String },
    /// Settings that do not go together.
    #[error("{0}")]
    Apart(String),
    #[error(
        "{directory} holds a backup that was not finished ({sign}): nothing can be served from it, so remove \
         it and use another one"
    )]
    Unfinished { directory: PathBuf, sign: PathBuf },
    #[error("the variable {0} holds text that is not UTF-8")]
    Variable(String),
    #[error("there is no setting {0:?}")]
    Unlisted(String),
}
