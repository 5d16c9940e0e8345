//! Tells caches which objects have been replaced, so that they drop what they hold of them.
//!
//! Nothing would ask for those entries again, but they would stay until something else needed their room:
//! during a long import they outweighed those of existing objects. A reader with an older snapshot reads them
//! again.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Paths of objects that were replaced.
pub type Replaced = HashSet<Arc<str>>;

/// All caches that hold something of objects. Cheap to clone; all clones share the list.
#[derive(Clone, Default)]
pub(super) struct ReplacementListeners(Arc<Mutex<Vec<Forget>>>);

type Forget = Box<dyn Fn(&Replaced) + Send + Sync>;

impl ReplacementListeners {
    pub(super) fn add(&self, forget: impl Fn(&Replaced) + Send + Sync + 'static) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(forget));
    }

    pub(super) fn notify(&self, replaced: &Replaced) {
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for forget in listeners.iter() {
            forget(replaced);
        }
    }
}

impl fmt::Debug for ReplacementListeners {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReplacementListeners")
    }
}
