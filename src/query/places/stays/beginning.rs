//! Tells from where on stays are the same, whatever came before.
//!
//! After a silence every stay is over. The same holds for a move: if two updates are less than the shortest
//! stay apart in time and more than three times [`NEAR`] in space, no stay holds both; none begins and
//! becomes one between them; and whatever may begin before the second of them and go on with it, is too far
//! from the first to have belonged to a stay together with that. Of two updates that follow each other this
//! is so whatever the time between them.

use super::update::{LEAST_STAY, LONGEST_GAP, NEAR, Update};

/// The distance in metres that makes a move. The last metre is more than rounding takes.
const MOVE: f64 = 3.0 * NEAR + 1.0;

/// Looks for a silence or a move before a range.
#[derive(Debug)]
pub(super) struct Beginning {
    /// The start of the range.
    range: i64,
    is_found: bool,
    /// The moment of the last update; before the first one, that from which on updates are known.
    last: i64,
    previous: Option<Update>,
    /// An earlier one that is compared with those of the next ten minutes.
    earlier: Option<Update>,
}

impl Beginning {
    /// For a range that begins at `range`, where updates are known from `known` on.
    pub(super) const fn new(range: i64, known: i64) -> Self {
        Self {
            range,
            is_found: false,
            last: known,
            previous: None,
            earlier: None,
        }
    }

    /// Takes the next update: of those in the range, only the first one is needed.
    pub(super) fn take(&mut self, update: &Update) {
        let is_silence = update.time - self.last > LONGEST_GAP;
        let earlier = self
            .earlier
            .filter(|earlier| update.time - earlier.time < LEAST_STAY);
        let mut compared = self.previous.iter().chain(&earlier);
        let is_move = compared.any(|other| other.position.distance_to(update.position) > MOVE);
        // A stay that ends with a move ends with its second update, and would reach into the range with it.
        self.is_found |= is_silence && self.last < self.range || is_move && update.time <= self.range;
        self.last = update.time;
        self.previous = Some(*update);
        self.earlier = earlier.or(self.previous);
    }

    /// Whether the stays in the range are the same, whatever there is before the first update.
    pub(super) const fn is_found(&self) -> bool {
        self.is_found
    }
}
