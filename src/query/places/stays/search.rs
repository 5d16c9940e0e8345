//! Finds stays in updates that come by time.
//!
//! Updates wait as long as all of them are near the first one and less than ten minutes after it. If the
//! next comes later than that, they are a stay, whether it goes on with it or ends there. If one comes
//! earlier that is not near, no stay begins with the first, nor with any other that is not near all after
//! it. These go, and what is left is younger still: so only the first of those that wait can have become a
//! stay, and updates are put together once, when they have.

use uuid::Uuid;

use crate::model::geo::{Middle, Position};
use crate::query::ground::turn::Turn;

use super::update::{LEAST_STAY, LONGEST_GAP, Update};
use super::waiting::Waiting;

/// A time spent in one place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stay {
    /// The id of its first update.
    pub(super) first: Uuid,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) position: Position,
    pub(super) accuracy: Option<f64>,
}

/// A search in which updates are taken one after another.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The updates since the first one of a possible stay: all near it, without a silence, and of less than
    /// the shortest stay.
    waiting: Waiting,
    /// The stay that is not over. Nothing waits then.
    staying: Option<Staying>,
}

impl Search {
    /// Takes the next update. Gives way between turns.
    pub(super) async fn take(&mut self, update: Update, found: &mut Vec<Stay>, turn: &mut Turn) {
        turn.spend(1);
        turn.give_way().await;
        if let Some(staying) = &mut self.staying {
            if staying.holds(&update) {
                staying.add(update);
                return;
            }
            let to = staying.end(&update);
            found.extend(self.staying.take().map(|staying| staying.ended(to)));
        }
        let (Some(first), Some(last)) = (self.waiting.first(), self.waiting.last()) else {
            self.waiting.push(update);
            return;
        };
        let is_near = first.is_near(&update);
        if update.time - last.time > LONGEST_GAP {
            self.waiting.clear();
            self.waiting.push(update);
        } else if update.time - first.time >= LEAST_STAY {
            let staying = self.gathered(turn).await;
            if is_near {
                self.staying = staying.map(|staying| staying.with(update));
            } else {
                found.extend(staying.map(|staying| staying.ended(update.time)));
                self.waiting.push(update);
            }
        } else {
            self.waiting.push(update);
            if !is_near {
                self.begin_later(turn).await;
            }
        }
    }

    /// There are no more updates. What still waits is shorter than a stay.
    pub(super) fn finish(&mut self, found: &mut Vec<Stay>) {
        self.waiting.clear();
        found.extend(self.staying.take().map(|staying| {
            let to = staying.last;
            staying.ended(to)
        }));
    }

    /// Whether a stay that is not over, or a possible one, began before a moment.
    pub(super) fn began_before(&self, moment: i64) -> bool {
        let staying = self.staying.as_ref().map(|staying| &staying.first);
        let first = staying.or(self.waiting.first());
        first.is_some_and(|first| first.time < moment)
    }

    /// The start of the stay that is not over, if it may go on at `moment`, before which there is no other
    /// update.
    pub(super) fn going_on_at(&self, moment: i64) -> Option<i64> {
        let staying = self.staying.as_ref()?;
        (moment - staying.last <= LONGEST_GAP).then_some(staying.first.time)
    }

    /// Makes a stay of the updates that wait.
    async fn gathered(&mut self, turn: &mut Turn) -> Option<Staying> {
        let mut staying = Staying::new(self.waiting.pop()?);
        while let Some(update) = self.waiting.pop() {
            staying.add(update);
            turn.spend(1);
            turn.give_way().await;
        }
        Some(staying)
    }

    /// Drops the updates that no stay can begin with. The last one always remains.
    async fn begin_later(&mut self, turn: &mut Turn) {
        while !self.waiting.are_near_the_first(turn).await {
            self.waiting.pop();
            turn.give_way().await;
        }
    }
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
        let staying = Self {
            first,
            last: first.time,
            middle: Middle::default(),
            accuracies: (0.0, 0),
        };
        staying.with(first)
    }

    fn with(mut self, update: Update) -> Self {
        self.add(update);
        self
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
        update.time - self.last <= LONGEST_GAP && self.first.is_near(update)
    }

    /// The end of the stay, given the first update that does not belong to it.
    const fn end(&self, next: &Update) -> i64 {
        if next.time - self.last <= LONGEST_GAP {
            next.time
        } else {
            self.last
        }
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
