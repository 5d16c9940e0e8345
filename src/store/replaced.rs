//! Who keeps something of objects in memory, and is told when others have taken their place.
//!
//! Nobody asks for what is kept of those any more, but it would stay until something else needs its room: in
//! a long import that was more than what is kept of the objects that are there. Who still has the state of
//! before reads it again.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Paths of objects that were replaced.
pub type Replaced = HashSet<Arc<str>>;

/// All who keep something of objects. Cheap to clone; all clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct Keepers(Arc<Mutex<Vec<Forget>>>);

type Forget = Box<dyn Fn(&Replaced) + Send + Sync>;

impl Keepers {
    pub(super) fn add(&self, forget: impl Fn(&Replaced) + Send + Sync + 'static) {
        let mut keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.push(Box::new(forget));
    }

    pub(super) fn tell(&self, replaced: &Replaced) {
        let keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for forget in keepers.iter() {
            forget(replaced);
        }
    }
}

impl fmt::Debug for Keepers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keepers")
    }
}
