//! Decides which amounts count where several sources have some for the same time: rule 1.4a, in one pass over
//! samples in the order of their starts.
//!
//! Intervals go through the same sweep as sleep, and come out as portions of time with the amounts that count
//! there. Instants wait until all intervals that begin no later have been seen; then it is known whether a
//! better source covers them. Holds only what is open at one moment.

use crate::model::grid::Grid;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::LONG;
use crate::query::ground::turn::Turn;
use crate::query::sweep::{Stretch, Sweep};

use super::contest::{Claim, Contest, LONG_RANK, Portion, Sample};
use super::ranking::Standing;

/// So many open samples are decided at once: where some of a source count beside others, the cube of that
/// many may be touched.
const FEW: usize = 16;

/// Takes samples and returns what counts of them.
#[derive(Debug)]
pub(super) struct Resolver {
    sweep: Sweep<Claim>,
    contest: Contest,
    /// The latest end of the intervals seen so far.
    horizon: i64,
    /// The latest end of intervals by standing, without long ones.
    covers: Vec<Cover>,
    /// Instants at one moment that a better source may still cover.
    waiting: Vec<Sample>,
    /// Instants that count, in the order of time.
    pub(super) instants: Vec<CountedInstant>,
}

/// An instant that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedInstant {
    pub(super) at: i64,
    pub(super) value: f64,
    pub(super) group: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cover {
    standing: Standing,
    end: i64,
}

impl Resolver {
    /// `counts`: the bins in which samples are counted.
    pub(super) fn new(clip: WindowClip, counts: Option<Grid>) -> Self {
        Self {
            sweep: Sweep::default(),
            contest: Contest::new(clip, counts),
            horizon: i64::MIN,
            covers: Vec::new(),
            waiting: Vec::new(),
            instants: Vec::new(),
        }
    }

    /// Gives each of the samples that count together in a part of time its own portion, so that they can be
    /// distinguished.
    pub(super) fn apart(mut self) -> Self {
        self.contest.apart = true;
        self
    }

    /// Decides what is certain once no later sample starts before `moment`, as far as the turn goes. `false`:
    /// there is more. Where few samples are open nothing is decided, since the next call that decides
    /// anything does all of it.
    #[inline]
    pub(super) fn settle(&mut self, moment: i64, turn: &mut Turn) -> bool {
        if self.waiting.first().is_some_and(|waiting| waiting.start < moment) {
            self.settle_instants();
        }
        if self.sweep.open() > FEW || self.contest.is_unfinished() {
            return self.settle_many(moment, turn);
        }
        self.contest.go_on(turn);
        let is_settled = !turn.is_over();
        turn.spend(1 + self.covers.len());
        is_settled
    }

    #[inline(never)]
    fn settle_many(&mut self, moment: i64, turn: &mut Turn) -> bool {
        while self.contest.go_on(turn) && !turn.is_over() {
            // A sample is compared with the sources seen so far, and what is decided touches all winners.
            turn.spend(1 + self.covers.len());
            let contest = &mut self.contest;
            let record = &mut |stretch: Stretch<'_, Claim>| contest.record(&stretch);
            if !self.sweep.settle_next(moment, record) {
                return true;
            }
            turn.spend(self.sweep.winning());
        }
        false
    }

    /// Goes on with what was recorded in part, as far as the turn goes. `false`: there is more, and portions
    /// are still to come.
    pub(super) fn go_on(&mut self, turn: &mut Turn) -> bool {
        self.contest.go_on(turn)
    }

    /// Takes the next sample. No later one starts before `next`.
    pub(super) fn push(&mut self, sample: Sample, next: i64) {
        if self
            .waiting
            .first()
            .is_some_and(|waiting| waiting.start < sample.start)
        {
            self.settle_instants();
        }
        if sample.start >= sample.end {
            if self.contest.clip.until(sample.start).is_some() {
                self.waiting.push(sample);
            }
            return;
        }
        let mut rank = sample.standing.rank;
        if sample.end.saturating_sub(sample.start) > LONG {
            rank |= LONG_RANK;
        } else {
            self.cover(&sample);
        }
        self.contest.note(&sample);
        let alone = self.horizon <= sample.start && sample.end <= next;
        self.horizon = self.horizon.max(sample.end);
        if alone {
            self.advance(sample.start);
            return self.contest.record_alone(sample);
        }
        let slot = self.contest.keep(sample, rank, self.sweep.decided_until());
        let claim = Claim {
            start: sample.start,
            end: sample.end,
            rank,
            slot,
        };
        let contest = &mut self.contest;
        self.sweep.push(claim, &mut |stretch| contest.record(&stretch));
    }

    /// If nothing so far lasts beyond `start` or competes with what begins there, decides all of it, and
    /// returns the moment until which a sample that begins there is fully visible.
    pub(super) fn clear_from(&mut self, start: i64) -> Option<i64> {
        if self.horizon > start {
            return None;
        }
        if self.waiting.first().is_some_and(|waiting| waiting.start < start) {
            self.settle_instants();
        }
        if !self.waiting.is_empty() {
            return None;
        }
        self.advance(start);
        self.contest.clip.until(start)
    }

    /// Records a sample that shared its time with no other and was not pushed.
    #[inline]
    pub(super) fn pass(&mut self, sample: &Sample) {
        if self.cover(sample) {
            self.contest.note(sample);
        }
        self.horizon = self.horizon.max(sample.end);
    }

    /// Decides everything before `moment`; no later sample starts before it.
    pub(super) fn advance(&mut self, moment: i64) {
        let contest = &mut self.contest;
        self.sweep
            .advance(moment, &mut |stretch| contest.record(&stretch));
    }

    /// Decides the rest once nothing more comes, as far as the turn goes. `false`: there is more.
    #[must_use]
    pub(super) fn finish(&mut self, turn: &mut Turn) -> bool {
        if !self.settle(i64::MAX, turn) {
            return false;
        }
        self.settle_instants();
        let contest = &mut self.contest;
        self.sweep.finish(&mut |stretch| contest.record(&stretch));
        // What is decided last may be recorded in part.
        self.contest.go_on(turn)
    }

    /// A portion that was decided and not forgotten; they are in the order of time.
    pub(super) fn portion(&self, index: usize) -> Option<Portion> {
        self.contest.portions.get(index).copied()
    }

    /// Forgets the portions, and instants before number `instants`.
    pub(super) fn forget(&mut self, instants: usize) {
        self.contest.portions.clear();
        self.instants.drain(..instants.min(self.instants.len()));
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.contest.memory()
            + self.instants.capacity() * size_of::<CountedInstant>()
            + self.waiting.capacity() * size_of::<Sample>()
    }

    /// Extends the cover of the sample's standing; whether it is the first of that standing.
    fn cover(&mut self, sample: &Sample) -> bool {
        let known = self
            .covers
            .iter_mut()
            .find(|cover| cover.standing == sample.standing);
        let is_first = known.is_none();
        match known {
            Some(cover) => cover.end = cover.end.max(sample.end),
            None => self.covers.push(Cover {
                standing: sample.standing,
                end: sample.end,
            }),
        }
        is_first
    }

    /// Decides the instants at one moment: those count whose source is the best one there, by an interval or
    /// by an instant.
    fn settle_instants(&mut self) {
        let Some(first) = self.waiting.first() else { return };
        let at = first.start;
        let covering = self.covers.iter().filter(|cover| cover.end > at);
        let instants = self.waiting.iter().map(|instant| instant.standing);
        let present = covering.map(|cover| cover.standing).chain(instants);
        let best = present.min_by_key(|standing| standing.rank);
        for instant in self.waiting.drain(..) {
            if best.is_some_and(|best| best.source == instant.standing.source) {
                self.instants.push(CountedInstant {
                    at,
                    value: instant.value,
                    group: instant.group,
                });
            }
        }
    }
}
