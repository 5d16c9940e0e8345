//! Why a command failed, for the person who gave it.

use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Failed {
    reason: String,
    /// What was asked for cannot be done here, however often it is asked.
    is_wrong_usage: bool,
}

impl Failed {
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_wrong_usage: false,
        }
    }

    /// A failure with the reason `error`.
    pub fn from_error(error: impl std::error::Error) -> Self {
        Self::because(error.to_string())
    }

    /// Arguments that the command line itself could not refuse: what they may be depends on more than that.
    pub fn wrong_usage(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_wrong_usage: true,
        }
    }

    /// The same failure, with what else there is to say of it.
    #[must_use]
    pub fn with(self, more: impl std::fmt::Display) -> Self {
        Self {
            reason: format!("{}; {more}", self.reason),
            ..self
        }
    }

    #[must_use]
    pub fn status(&self) -> ExitCode {
        if self.is_wrong_usage {
            ExitCode::from(2)
        } else {
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_said_of_it_leaves_a_failure_what_it_is() {
        let wrong = Failed::wrong_usage("it cannot be").with("nothing was removed");
        assert!(wrong.is_wrong_usage);
        assert_eq!(wrong.to_string(), "it cannot be; nothing was removed");
        assert!(!Failed::because("it broke off").with("try again").is_wrong_usage);
    }
}
