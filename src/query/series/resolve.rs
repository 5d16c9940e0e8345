//! Who counts where several sources have amounts for the same time: rule 1.4a, in one pass over samples in the order of their starts.
//!
//! Intervals go through the sweep that sleep uses too, and come out as pieces of time with the parts of samples that count there. Instants wait until all
//! intervals that begin no later have been seen; then it is known whether a better source covers them. Holds what is open at one moment.

use std::cmp::Reverse;
use std::ops::Range;

use crate::query::sweep::{Contender, Stretch, Sweep};

use super::clip::Clip;
use super::ranking::Standing;
use super::spec::Counting;

/// Amounts over a longer time come after all others, whoever measured them: they say little about a day.
const LONG: i64 = 7 * 86_400_000_000;
const LONG_RANK: u64 = 1 << 63;
/// So many samples may be open before those that have ended are looked for.
const FIRST_CROWD: usize = 64;

/// A sample as it comes in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) value: f64,
    pub(super) standing: Standing,
}

/// A part of time in which the same samples count.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Indices into the parts.
    pub(super) parts: Range<usize>,
}

/// One of the samples that count in a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The amount of the whole sample, and its whole length.
    value: f64,
    length: i64,
    /// Where the piece ends in which it counted before; the least number if there is none.
    counted_until: i64,
}

impl Part {
    /// What falls to `[start, end)` of its piece.
    pub(super) fn amount(&self, start: i64, end: i64) -> f64 {
        let covered = end - start;
        if covered == self.length {
            self.value
        } else {
            self.value * covered as f64 / self.length as f64
        }
    }

    /// Whether `moment` begins the first bin that it counts in, or a later one.
    pub(super) const fn is_new_since(&self, moment: i64) -> bool {
        self.counted_until <= moment
    }
}

/// Samples in, what counts of them out.
#[derive(Debug)]
pub(super) struct Resolver {
    counting: Counting,
    sweep: Sweep<Claim>,
    ledger: Ledger,
    /// How far the intervals reach that have been seen.
    horizon: i64,
    /// Where the intervals of each standing reach, long ones apart.
    covers: Vec<Cover>,
    /// Instants at one moment, which may still prove to be covered.
    waiting: Vec<Sample>,
    /// Instants that count, in the order of time.
    pub(super) instants: Vec<(i64, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Cover {
    standing: Standing,
    end: i64,
}

/// A sample in the sweep.
#[derive(Clone, Copy, Debug)]
struct Claim {
    start: i64,
    end: i64,
    rank: u64,
    slot: usize,
}

impl Contender for Claim {
    type Rank = Reverse<u64>;

    fn start(&self) -> i64 {
        self.start
    }

    fn end(&self) -> i64 {
        self.end
    }

    fn rank(&self) -> Reverse<u64> {
        Reverse(self.rank)
    }
}

/// The samples in the sweep, and what has come out of it.
#[derive(Debug)]
struct Ledger {
    clip: Clip,
    open: Vec<Open>,
    free: Vec<usize>,
    crowded: usize,
    /// By number of source: the class it showed itself as, and whether it has shown another since.
    shown: Vec<Option<Shown>>,
    pieces: Vec<Piece>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    sample: Sample,
    rank: u64,
    counted_until: i64,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    rank: u64,
    several: bool,
}

impl Resolver {
    pub(super) fn new(counting: Counting, clip: Clip) -> Self {
        Self {
            counting,
            sweep: Sweep::default(),
            ledger: Ledger {
                clip,
                open: Vec::new(),
                free: Vec::new(),
                crowded: FIRST_CROWD,
                shown: Vec::new(),
                pieces: Vec::new(),
                parts: Vec::new(),
            },
            horizon: i64::MIN,
            covers: Vec::new(),
            waiting: Vec::new(),
            instants: Vec::new(),
        }
    }

    /// Takes the next sample. None to come starts before `next`.
    pub(super) fn push(&mut self, sample: Sample, next: i64) {
        if self.waiting.first().is_some_and(|waiting| waiting.start < sample.start) {
            self.settle_instants();
        }
        if sample.start >= sample.end {
            return self.push_instant(sample);
        }
        let rank = self.rank(&sample);
        if self.counting == Counting::BestSource {
            self.ledger.note(sample.standing);
            if rank < LONG_RANK {
                self.cover(sample);
            }
        }
        let alone = self.horizon <= sample.start && sample.end <= next;
        self.horizon = self.horizon.max(sample.end);
        if alone {
            self.advance(sample.start);
            return self.ledger.record_alone(&sample);
        }
        let slot = self.ledger.keep(sample, rank, self.sweep.decided_until());
        let claim = Claim {
            start: sample.start,
            end: sample.end,
            rank,
            slot,
        };
        let ledger = &mut self.ledger;
        self.sweep.push(claim, &mut |stretch| ledger.record(&stretch));
    }

    /// Decides all before `moment`; no sample to come starts before it.
    pub(super) fn advance(&mut self, moment: i64) {
        let ledger = &mut self.ledger;
        self.sweep.advance(moment, &mut |stretch| ledger.record(&stretch));
    }

    /// Decides the rest.
    pub(super) fn finish(&mut self) {
        self.settle_instants();
        let ledger = &mut self.ledger;
        self.sweep.finish(&mut |stretch| ledger.record(&stretch));
    }

    pub(super) fn piece(&self, index: usize) -> Option<&Piece> {
        self.ledger.pieces.get(index)
    }

    pub(super) fn parts(&self, piece: &Piece) -> &[Part] {
        self.ledger.parts.get(piece.parts.clone()).unwrap_or_default()
    }

    /// Forgets the pieces, and instants before number `instants`.
    pub(super) fn forget(&mut self, instants: usize) {
        self.ledger.pieces.clear();
        self.ledger.parts.clear();
        self.instants.drain(..instants.min(self.instants.len()));
    }

    fn rank(&self, sample: &Sample) -> u64 {
        match self.counting {
            Counting::Everything => 0,
            Counting::BestSource if sample.end.saturating_sub(sample.start) > LONG => sample.standing.rank | LONG_RANK,
            Counting::BestSource => sample.standing.rank,
        }
    }

    fn cover(&mut self, sample: Sample) {
        match self.covers.iter_mut().find(|cover| cover.standing == sample.standing) {
            Some(cover) => cover.end = cover.end.max(sample.end),
            None => self.covers.push(Cover {
                standing: sample.standing,
                end: sample.end,
            }),
        }
    }

    fn push_instant(&mut self, sample: Sample) {
        if self.ledger.clip.until(sample.start).is_none() {
            return;
        }
        match self.counting {
            Counting::Everything => self.instants.push((sample.start, sample.value)),
            Counting::BestSource => self.waiting.push(sample),
        }
    }

    /// Of the instants at one moment those count that no better source covers, by an interval or by an instant.
    fn settle_instants(&mut self) {
        let Some(first) = self.waiting.first() else { return };
        let at = first.start;
        let covering = self.covers.iter().filter(|cover| cover.end > at).map(|cover| cover.standing);
        let present = covering.chain(self.waiting.iter().map(|instant| instant.standing));
        // The best of all, and the best of those of another source.
        let mut best: Option<Standing> = None;
        let mut second: Option<Standing> = None;
        for standing in present {
            match best {
                Some(leader) if leader.source == standing.source => best = Some(if standing.rank < leader.rank { standing } else { leader }),
                Some(leader) if standing.rank < leader.rank => (best, second) = (Some(standing), best),
                Some(_) if second.is_none_or(|runner_up| standing.rank < runner_up.rank) => second = Some(standing),
                Some(_) => {}
                None => best = Some(standing),
            }
        }
        for instant in self.waiting.drain(..) {
            let rival = if best.is_some_and(|best| best.source == instant.standing.source) {
                second
            } else {
                best
            };
            if rival.is_none_or(|rival| instant.standing.rank < rival.rank) {
                self.instants.push((at, instant.value));
            }
        }
    }
}

impl Ledger {
    fn note(&mut self, standing: Standing) {
        let place = standing.source as usize;
        if self.shown.len() <= place {
            self.shown.resize(place + 1, None);
        }
        if let Some(shown) = self.shown.get_mut(place) {
            let first = shown.get_or_insert(Shown {
                rank: standing.rank,
                several: false,
            });
            first.several |= first.rank != standing.rank;
        }
    }

    /// Keeps a sample while it is in the sweep; where it is kept.
    fn keep(&mut self, sample: Sample, rank: u64, decided: i64) -> usize {
        if self.free.is_empty() && self.open.len() >= self.crowded {
            let ended = |(slot, open): (usize, &Open)| (open.sample.end <= decided).then_some(slot);
            self.free.extend(self.open.iter().enumerate().filter_map(ended));
            self.crowded = FIRST_CROWD.max(2 * (self.open.len() - self.free.len()));
        }
        let open = Open {
            sample,
            rank,
            counted_until: i64::MIN,
        };
        match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.open.get_mut(slot) {
                    *place = open;
                }
                slot
            }
            None => {
                self.open.push(open);
                self.open.len() - 1
            }
        }
    }

    /// A sample that nothing else touches.
    fn record_alone(&mut self, sample: &Sample) {
        let mut counted_until = i64::MIN;
        for (start, end) in self.clip.parts(sample.start, sample.end) {
            let first = self.parts.len();
            self.parts.push(Part {
                value: sample.value,
                length: sample.end - sample.start,
                counted_until,
            });
            self.pieces.push(Piece {
                start,
                end,
                parts: first..first + 1,
            });
            counted_until = end;
        }
    }

    fn record(&mut self, stretch: &Stretch<'_, Claim>) {
        let winner = stretch.winners.first().and_then(|winner| self.open.get(winner.slot)).copied();
        match winner {
            Some(winner) if self.showed_several(&winner) => self.record_beside(stretch, &winner),
            _ => self.record_winners(stretch.start, stretch.end, stretch.winners),
        }
    }

    fn showed_several(&self, open: &Open) -> bool {
        let shown = self.shown.get(open.sample.standing.source as usize).copied().flatten();
        shown.is_some_and(|shown| shown.several)
    }

    fn record_winners(&mut self, start: i64, end: i64, winners: &[Claim]) {
        for (start, end) in self.clip.parts(start, end) {
            let first = self.parts.len();
            for winner in winners {
                if let Some(open) = self.open.get_mut(winner.slot) {
                    self.parts.push(open.part_until(end));
                }
            }
            self.pieces.push(Piece {
                start,
                end,
                parts: first..self.parts.len(),
            });
        }
    }

    /// A source never suppresses itself, also where some of its samples show a better class than others: those of its others that lie in the stretch
    /// count beside the winners.
    fn record_beside(&mut self, stretch: &Stretch<'_, Claim>, winner: &Open) {
        let is_beside = |open: &Open| {
            open.sample.standing.source == winner.sample.standing.source
                && open.rank != winner.rank
                && (open.rank < LONG_RANK) == (winner.rank < LONG_RANK)
                && open.sample.start < stretch.end
                && open.sample.end > stretch.start
        };
        let beside: Vec<Claim> = (0..)
            .zip(&self.open)
            .filter(|(_, open)| is_beside(open))
            .map(|(slot, open)| Claim {
                start: open.sample.start,
                end: open.sample.end,
                rank: open.rank,
                slot,
            })
            .collect();
        let mut cuts = vec![stretch.start, stretch.end];
        cuts.extend(beside.iter().flat_map(|claim| [claim.start, claim.end]));
        cuts.retain(|cut| (stretch.start..=stretch.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        let mut counting = Vec::new();
        for cut in cuts.windows(2) {
            let &[start, end] = cut else { continue };
            counting.clear();
            counting.extend_from_slice(stretch.winners);
            counting.extend(beside.iter().filter(|claim| claim.start <= start && claim.end >= end));
            self.record_winners(start, end, &counting);
        }
    }
}

impl Open {
    fn part_until(&mut self, end: i64) -> Part {
        Part {
            value: self.sample.value,
            length: self.sample.end - self.sample.start,
            counted_until: std::mem::replace(&mut self.counted_until, end),
        }
    }
}
