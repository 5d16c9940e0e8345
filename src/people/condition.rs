//! Conditions of changes: what is changed still is what its sender has seen.
//!
//! A change reads the state that it is to replace, asks its condition, and writes only if that state is still
//! stored then. So where both succeed, the state that was judged is the one that was replaced. Knows nothing
//! of how a state is seen.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// Looks at what is to be changed.
pub trait Look: Send + Sync {
    /// Fails unless it is as it was seen.
    fn look(&self) -> BoxFuture<'_, Result<(), Outdated>>;
}

/// What is to be changed is not what its sender has seen, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Outdated {
    #[error("it has changed; read it again before changing it")]
    Changed,
    #[error("it exists, which `if-none-match` rules out; leave out that header to change it")]
    Unwanted,
    #[error("what is to be changed cannot be looked at")]
    Unknown,
}

/// The condition of one change.
#[derive(Clone, Default)]
pub struct Condition(Option<Arc<dyn Look>>);

impl Condition {
    /// No condition: the change is always made.
    pub const NONE: Self = Self(None);

    #[must_use]
    pub const fn of(look: Arc<dyn Look>) -> Self {
        Self(Some(look))
    }

    /// To be asked between reading what is replaced and writing.
    pub async fn hold(&self) -> Result<(), Outdated> {
        match &self.0 {
            Some(look) => look.look().await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Condition")
            .field("is_set", &self.0.is_some())
            .finish()
    }
}
