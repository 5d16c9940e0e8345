//! The samples that compete for time, and the resulting portions of time.

use crate::model::grid::Grid;
use crate::model::time::Instant;
use crate::query::ground::clip_windows::WindowClip;
use crate::query::ground::measure::prorated;
use crate::query::ground::turn::Turn;
use crate::query::sweep::{Contender, Stretch};

use super::ranking::Standing;

/// An incoming sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) value: f64,
    pub(super) standing: Standing,
    /// The group of the sample; always equal where amounts are not split.
    pub(super) group: u32,
}

/// Ranks from here on belong to samples that rank after all others.
pub(super) const LONG_RANK: u64 = 1 << 63;
/// The number of open samples at which ended ones are looked for.
const FIRST_CROWD: usize = 64;

/// A sample in the sweep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Less is better.
    pub(super) rank: u64,
    /// Its index in the contest.
    pub(super) slot: usize,
}

impl Contender for Claim {
    type Rank = std::cmp::Reverse<u64>;

    fn start(&self) -> i64 {
        self.start
    }

    fn end(&self) -> i64 {
        self.end
    }

    fn rank(&self) -> std::cmp::Reverse<u64> {
        std::cmp::Reverse(self.rank)
    }
}

/// A part of time in which the same samples count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portion {
    pub(super) start: i64,
    pub(super) end: i64,
    /// An amount with a uniform rate, and the length of time that it covers.
    amount: f64,
    length: i64,
    /// How many samples count, and how many of them did not count earlier in the bin.
    pub(super) samples: u64,
    pub(super) new_samples: u64,
    /// The group of its sample; of the first one, where several are combined.
    pub(super) group: u32,
}

impl Portion {
    /// The part of the amount that falls into `[start, end)`.
    pub(super) fn amount(&self, start: i64, end: i64) -> f64 {
        prorated(self.amount, end - start, self.length)
    }
}

/// The open samples, and the portions that resulted from earlier ones.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) clip: WindowClip,
    /// The bins in which samples are counted, if they are.
    counts: Option<Grid>,
    open: Vec<Open>,
    free: Vec<usize>,
    crowded: usize,
    /// By number of source: the first rank of its samples, and whether another has appeared since.
    shown: Vec<Option<SourceRanks>>,
    pub(super) portions: Vec<Portion>,
    /// Whether samples that count together get separate portions.
    pub(super) apart: bool,
    /// A stretch that is recorded in part.
    unfinished: Option<Beside>,
    /// How many samples were touched that no turn has spent yet.
    touched: usize,
}

/// A stretch in which others of the winners' source count along with them.
#[derive(Debug)]
struct Beside {
    winners: Vec<Claim>,
    others: Vec<Claim>,
    /// Where the stretch begins and ends, and where one of the others does; the first are done with.
    cuts: Vec<i64>,
    done: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    sample: Sample,
    rank: u64,
    /// The end of the last portion in which it counted.
    counted_until: i64,
}

#[derive(Clone, Copy, Debug)]
struct SourceRanks {
    rank: u64,
    several: bool,
}

impl Open {
    const fn new(sample: Sample, rank: u64) -> Self {
        Self {
            sample,
            rank,
            counted_until: i64::MIN,
        }
    }

    const fn length(&self) -> i64 {
        self.sample.end - self.sample.start
    }
}

impl Contest {
    pub(super) const fn new(clip: WindowClip, counts: Option<Grid>) -> Self {
        Self {
            clip,
            counts,
            open: Vec::new(),
            free: Vec::new(),
            crowded: FIRST_CROWD,
            shown: Vec::new(),
            portions: Vec::new(),
            apart: false,
            unfinished: None,
            touched: 0,
        }
    }

    /// Records the rank that the source of a sample has in it.
    pub(super) fn note(&mut self, sample: &Sample) {
        let (place, rank) = (sample.standing.source as usize, sample.standing.rank);
        if self.shown.len() <= place {
            self.shown.resize(place + 1, None);
        }
        if let Some(shown) = self.shown.get_mut(place) {
            let first = shown.get_or_insert(SourceRanks { rank, several: false });
            first.several |= first.rank != rank;
        }
    }

    /// Keeps a sample while it is in the sweep; returns its slot. `decided`: no later portion begins before
    /// it.
    pub(super) fn keep(&mut self, sample: Sample, rank: u64, decided: i64) -> usize {
        if self.free.is_empty() && self.open.len() >= self.crowded {
            let ended = |(slot, open): (usize, &Open)| (open.sample.end <= decided).then_some(slot);
            self.free.extend(self.open.iter().enumerate().filter_map(ended));
            self.crowded = FIRST_CROWD.max(2 * (self.open.len() - self.free.len()));
        }
        let open = Open::new(sample, rank);
        let slot = self.free.pop().unwrap_or(self.open.len());
        match self.open.get_mut(slot) {
            Some(place) => *place = open,
            None => self.open.push(open),
        }
        slot
    }

    /// Records a sample that no other touches.
    pub(super) fn record_alone(&mut self, sample: Sample) {
        self.record_unfinished();
        let mut alone = Open::new(sample, sample.standing.rank);
        let Self {
            clip,
            counts,
            portions,
            ..
        } = self;
        for (start, end) in clip.parts(sample.start, sample.end) {
            portions.push(portion(start, end, counts.as_ref(), std::iter::once(&mut alone)));
        }
    }

    /// Records a stretch that the sweep found. Where that may take long, it is only begun.
    pub(super) fn record(&mut self, stretch: &Stretch<'_, Claim>) {
        self.record_unfinished();
        let winner = stretch
            .winners
            .first()
            .and_then(|winner| self.open.get(winner.slot))
            .copied();
        match winner {
            Some(winner) if self.showed_several(&winner) => self.begin_beside(stretch, &winner),
            _ => self.record_winners(stretch.start, stretch.end, stretch.winners),
        }
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.open.capacity() * (size_of::<Open>() + size_of::<Claim>())
            + self.portions.capacity() * size_of::<Portion>()
            + self.unfinished.as_ref().map_or(0, Beside::memory)
    }

    /// Whether a stretch is recorded in part.
    pub(super) const fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Goes on with a stretch that was recorded in part, as far as the turn goes. `false`: there is more.
    #[inline]
    pub(super) fn go_on(&mut self, turn: &mut Turn) -> bool {
        turn.spend(std::mem::take(&mut self.touched));
        !self.is_unfinished() || self.go_on_recording(turn)
    }

    #[inline(never)]
    fn go_on_recording(&mut self, turn: &mut Turn) -> bool {
        let Some(mut beside) = self.unfinished.take() else {
            return true;
        };
        while !beside.is_done() {
            if turn.is_over() {
                self.unfinished = Some(beside);
                return false;
            }
            self.record_next(&mut beside);
            turn.spend(std::mem::take(&mut self.touched));
        }
        true
    }

    /// Records the rest of a stretch, so that portions stay in the order of time.
    #[inline]
    fn record_unfinished(&mut self) {
        if self.is_unfinished() {
            self.record_rest();
        }
    }

    #[inline(never)]
    fn record_rest(&mut self) {
        if let Some(mut beside) = self.unfinished.take() {
            while !beside.is_done() {
                self.record_next(&mut beside);
            }
        }
    }

    fn showed_several(&self, open: &Open) -> bool {
        let shown = self
            .shown
            .get(open.sample.standing.source as usize)
            .copied()
            .flatten();
        shown.is_some_and(|shown| shown.several)
    }

    fn record_winners(&mut self, start: i64, end: i64, winners: &[Claim]) {
        let Self {
            clip,
            counts,
            open,
            portions,
            apart,
            touched,
            ..
        } = self;
        for (start, end) in clip.parts(start, end) {
            *touched += winners.len();
            if *apart {
                let each = winners.iter().map(|winner| {
                    portion(start, end, counts.as_ref(), open.get_mut(winner.slot).into_iter())
                });
                portions.extend(each);
                continue;
            }
            portions.push(match winners {
                [only] => portion(start, end, counts.as_ref(), open.get_mut(only.slot).into_iter()),
                several => {
                    let mut all = Portion {
                        length: end - start,
                        ..portion(start, end, None, std::iter::empty())
                    };
                    for winner in several {
                        let one = portion(start, end, counts.as_ref(), open.get_mut(winner.slot).into_iter());
                        all.amount += one.amount(start, end);
                        all.samples += one.samples;
                        all.new_samples += one.new_samples;
                    }
                    all
                }
            });
        }
    }

    /// A source never suppresses itself, even if some of its samples show a better class than others: its
    /// other samples in the stretch count along with the winners.
    fn begin_beside(&mut self, stretch: &Stretch<'_, Claim>, winner: &Open) {
        let is_beside = |open: &Open| {
            open.sample.standing.source == winner.sample.standing.source
                && open.rank != winner.rank
                && (open.rank < LONG_RANK) == (winner.rank < LONG_RANK)
                && open.sample.start < stretch.end
                && open.sample.end > stretch.start
        };
        let claim = |(slot, open): (usize, &Open)| Claim {
            start: open.sample.start,
            end: open.sample.end,
            rank: open.rank,
            slot,
        };
        self.touched += self.open.len();
        let open = self.open.iter().enumerate();
        let others: Vec<Claim> = open.filter(|(_, open)| is_beside(open)).map(claim).collect();
        if others.is_empty() {
            return self.record_winners(stretch.start, stretch.end, stretch.winners);
        }
        let mut cuts = vec![stretch.start, stretch.end];
        cuts.extend(others.iter().flat_map(|claim| [claim.start, claim.end]));
        cuts.retain(|cut| (stretch.start..=stretch.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        self.unfinished = Some(Beside {
            winners: stretch.winners.to_vec(),
            others,
            cuts,
            done: 0,
        });
    }

    /// Records such a stretch up to the next cut.
    fn record_next(&mut self, beside: &mut Beside) {
        if let Some(&[start, end]) = beside.cuts.get(beside.done..beside.done + 2) {
            let others = beside.others.iter();
            let covering = others.filter(|claim| claim.start <= start && claim.end >= end);
            let counting: Vec<Claim> = beside.winners.iter().chain(covering).copied().collect();
            self.record_winners(start, end, &counting);
        }
        beside.done += 1;
        self.touched += 1 + beside.others.len();
    }
}

impl Beside {
    const fn is_done(&self) -> bool {
        self.done + 1 >= self.cuts.len()
    }

    fn memory(&self) -> usize {
        (self.winners.capacity() + self.others.capacity()) * size_of::<Claim>()
            + self.cuts.capacity() * size_of::<i64>()
    }
}

/// The portion of one sample, if there is one.
fn portion<'o>(
    start: i64,
    end: i64,
    counts: Option<&Grid>,
    mut sample: impl Iterator<Item = &'o mut Open>,
) -> Portion {
    let mut portion = Portion {
        start,
        end,
        amount: 0.0,
        length: end - start,
        samples: 0,
        new_samples: 0,
        group: 0,
    };
    if let Some(open) = sample.next() {
        (portion.amount, portion.length, portion.group) =
            (open.sample.value, open.length(), open.sample.group);
        portion.samples = 1;
        let bin = counts.and_then(|grid| Some(grid.edge(grid.bin_of(Instant::from_micros(start))?).micros()));
        portion.new_samples = bin.map_or(0, |bin| u64::from(open.counted_until <= bin));
        open.counted_until = end;
    }
    portion
}
