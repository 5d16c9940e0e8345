//! What is held until something is over.

use std::any::Any;

/// Releases something by being dropped, when the work that holds it is over. What is released then, only
/// whoever made the guard knows.
pub type ReleaseGuard = Box<dyn Any + Send + Sync>;
