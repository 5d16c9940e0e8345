//! Stays as they are defined: from each update on, all that follow are looked at, again and again.

use std::collections::VecDeque;

use super::super::search::Stay;
use super::super::update::{LEAST_STAY, LONGEST_GAP, NEAR, Update};
use crate::model::geo::Middle;

pub(super) fn found(updates: &[Update]) -> Vec<Stay> {
    let (mut search, mut stays) = (Search::default(), Vec::new());
    for update in updates {
        search.take(*update, &mut stays);
    }
    search.finish(&mut stays);
    stays
}

/// Finds stays in updates that come by time.
#[derive(Debug, Default)]
struct Search {
    /// Updates since the first one of a possible stay. Dropped as soon as it is a stay.
    waiting: VecDeque<Update>,
    /// The possible stay of the waiting updates.
    hoped_for: Option<Staying>,
    staying: Option<Staying>,
}

/// A stay that is not over.
#[derive(Debug)]
struct Staying {
    first: Update,
    last: i64,
    middle: Middle,
    accuracies: (f64, u32),
}

impl Staying {
    fn new(first: Update) -> Self {
        let mut staying = Self {
            first,
            last: first.time,
            middle: Middle::default(),
            accuracies: (0.0, 0),
        };
        staying.add(first);
        staying
    }

    fn add(&mut self, update: Update) {
        self.last = update.time;
        self.middle.add(update.position);
        if let Some(accuracy) = update.accuracy {
            self.accuracies.0 += accuracy;
            self.accuracies.1 += 1;
        }
    }

    /// Whether an update belongs to the stay.
    fn holds(&self, update: &Update) -> bool {
        update.time - self.last <= LONGEST_GAP && self.first.position.distance_to(update.position) <= NEAR
    }

    /// The end of the stay, given the first update that does not belong to it.
    fn end(&self, next: Option<&Update>) -> i64 {
        next.filter(|next| next.time - self.last <= LONGEST_GAP)
            .map_or(self.last, |next| next.time)
    }

    fn ended(self, to: i64) -> Stay {
        Stay {
            first: self.first.id,
            from: self.first.time,
            to,
            position: self.middle.position().unwrap_or(self.first.position),
            accuracy: (self.accuracies.1 > 0).then(|| self.accuracies.0 / f64::from(self.accuracies.1)),
        }
    }
}

impl Search {
    fn take(&mut self, update: Update, found: &mut Vec<Stay>) {
        if let Some(staying) = &mut self.staying {
            if staying.holds(&update) {
                staying.add(update);
                return;
            }
            let to = staying.end(Some(&update));
            found.extend(self.staying.take().map(|staying| staying.ended(to)));
        }
        self.waiting.push_back(update);
        match self.hoped_for.take() {
            Some(mut hoped_for) if hoped_for.holds(&update) => {
                hoped_for.add(update);
                self.hope(hoped_for);
            }
            _ => self.settle(found, false),
        }
    }

    /// Continues a possible stay. Once it is long enough, it is a stay, and its updates need not be kept.
    fn hope(&mut self, hoped_for: Staying) {
        if hoped_for.last - hoped_for.first.time >= LEAST_STAY {
            self.waiting.clear();
            self.staying = Some(hoped_for);
        } else {
            self.hoped_for = Some(hoped_for);
        }
    }

    fn finish(&mut self, found: &mut Vec<Stay>) {
        if let Some(staying) = self.staying.take() {
            let to = staying.end(None);
            found.push(staying.ended(to));
        }
        self.settle(found, true);
    }

    /// Decides about the waiting updates, as far as possible.
    fn settle(&mut self, found: &mut Vec<Stay>, all: bool) {
        while let Some(first) = self.waiting.front() {
            let mut staying = Staying::new(*first);
            let mut elsewhere = None;
            let mut held = 1;
            for update in self.waiting.iter().skip(1) {
                if !staying.holds(update) {
                    elsewhere = Some(update);
                    break;
                }
                staying.add(*update);
                held += 1;
            }
            let to = staying.end(elsewhere);
            if elsewhere.is_none() && !all {
                return self.hope(staying);
            }
            if to - staying.first.time >= LEAST_STAY {
                self.waiting.drain(..held);
                found.push(staying.ended(to));
            } else {
                self.waiting.pop_front();
            }
        }
    }
}
