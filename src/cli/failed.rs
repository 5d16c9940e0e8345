//! Why a command failed, for the person who gave it.

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(String);

impl Failed {
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// A failure with the reason `error`.
    pub fn from_error(error: impl std::error::Error) -> Self {
        Self(error.to_string())
    }
}
