//! Decides which samples count where several cover the same time.
//!
//! A sweep takes contenders in the order of their starts and emits stretches of time, each with the
//! contenders of the greatest rank in it. A contender that loses never splits a stretch. It holds only the
//! contenders that are open at one moment. Knows ranks and spans; the caller defines the rank (the stage and
//! start of a piece of sleep, the place of a source in a person's order).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Something that covers a span of time and competes for it.
pub trait Contender {
    /// The greatest rank wins. Contenders of equal rank share.
    type Rank: Ord;

    /// Microseconds since 1970, inclusive.
    fn start(&self) -> i64;
    /// Microseconds since 1970, exclusive, after the start.
    fn end(&self) -> i64;
    fn rank(&self) -> Self::Rank;
}

/// A span of time in which the same contenders win.
#[derive(Debug)]
pub struct Stretch<'a, C> {
    pub start: i64,
    pub end: i64,
    pub winners: &'a [C],
}

/// The sweep over one sequence of contenders.
#[derive(Debug)]
pub struct Sweep<C: Contender> {
    /// Those of the greatest rank, in the order in which they came.
    winners: Vec<C>,
    /// When the first of the winners ends; the end of time if there are none.
    first_end: i64,
    /// Those that may still win: however many there are, another one finds its place in few steps. Losers
    /// that have ended stay until their rank is the greatest, or until there are too many.
    losers: BinaryHeap<Loser<C>>,
    /// How many have lost so far.
    lost: u64,
    /// Everything before this moment is decided.
    at: i64,
    /// How many may be open before ended ones are looked for.
    crowded: usize,
}

/// A contender that does not win now. Those of the greatest rank are the first to win again, and among these
/// those that came first.
#[derive(Debug)]
struct Loser<C> {
    contender: C,
    /// How many had lost before.
    came: Reverse<u64>,
}

impl<C: Contender> Ord for Loser<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rank = self.contender.rank().cmp(&other.contender.rank());
        by_rank.then(self.came.cmp(&other.came))
    }
}

impl<C: Contender> PartialOrd for Loser<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C: Contender> PartialEq for Loser<C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<C: Contender> Eq for Loser<C> {}

const FIRST_CROWD: usize = 16;

impl<C: Contender> Default for Sweep<C> {
    fn default() -> Self {
        Self {
            winners: Vec::new(),
            first_end: i64::MAX,
            losers: BinaryHeap::new(),
            lost: 0,
            at: i64::MIN,
            crowded: FIRST_CROWD,
        }
    }
}

impl<C: Contender> Sweep<C> {
    /// Takes the next contender, which starts no earlier than the one before. Empty spans are ignored.
    pub fn push(&mut self, contender: C, emit: &mut impl FnMut(Stretch<'_, C>)) {
        let start = contender.start();
        if contender.end() <= start {
            return;
        }
        self.settle(start, emit);
        let best = self.winners.first();
        let against = best.map(|best| contender.rank().cmp(&best.rank()));
        if against != Some(Ordering::Less) {
            self.decide_until(start, emit);
        }
        if self.open() >= self.crowded {
            self.forget_ended_losers(self.at.max(start));
        }
        match against {
            Some(Ordering::Less) => self.lose(contender),
            Some(Ordering::Greater) => {
                let mut beaten = std::mem::take(&mut self.winners);
                for winner in beaten.drain(..) {
                    self.lose(winner);
                }
                self.winners = beaten;
                self.first_end = i64::MAX;
                self.win(contender);
            }
            Some(Ordering::Equal) | None => self.win(contender),
        }
    }

    fn win(&mut self, contender: C) {
        self.first_end = self.first_end.min(contender.end());
        self.winners.push(contender);
    }

    fn lose(&mut self, contender: C) {
        let came = Reverse(self.lost);
        self.lost += 1;
        self.losers.push(Loser { contender, came });
    }

    /// Decides everything before `moment`, even where that splits a stretch. No later contender may start
    /// before `moment`.
    pub fn advance(&mut self, moment: i64, emit: &mut impl FnMut(Stretch<'_, C>)) {
        self.settle(moment, emit);
        self.decide_until(moment, emit);
    }

    /// Decides until the first of the winners ends, if that is not after `moment`; whether it did. No later
    /// contender may start before `moment`. Whoever has other things to do in between calls this until
    /// nothing is left to decide, and then pushes, advances or finishes: each of these does it all at once.
    #[inline]
    pub fn settle_next(&mut self, moment: i64, emit: &mut impl FnMut(Stretch<'_, C>)) -> bool {
        // However many win, most contenders come while none of them ends.
        if self.first_end > moment.max(self.at) {
            return false;
        }
        self.drop_ended();
        if self.winners.is_empty() || self.first_end > moment {
            return false;
        }
        self.decide_until(self.first_end, emit);
        true
    }

    /// How many contenders win now: every step that decides something takes as long as there are winners.
    #[must_use]
    pub const fn winning(&self) -> usize {
        self.winners.len()
    }

    /// Emits what is left and resets the sweep.
    pub fn finish(&mut self, emit: &mut impl FnMut(Stretch<'_, C>)) {
        self.settle(i64::MAX, emit);
        *self = Self::default();
    }

    /// How many contenders are held.
    #[must_use]
    pub fn open(&self) -> usize {
        self.winners.len() + self.losers.len()
    }

    /// Everything before this is decided: no later stretch begins earlier.
    #[must_use]
    pub fn decided_until(&self) -> i64 {
        self.at
    }

    /// Decides as long as winners end, until `moment` at most.
    fn settle(&mut self, moment: i64, emit: &mut impl FnMut(Stretch<'_, C>)) {
        while self.settle_next(moment, emit) {}
    }

    fn decide_until(&mut self, moment: i64, emit: &mut impl FnMut(Stretch<'_, C>)) {
        if self.at < moment && !self.winners.is_empty() {
            emit(Stretch {
                start: self.at,
                end: moment,
                winners: &self.winners,
            });
        }
        self.at = self.at.max(moment);
    }

    /// Drops losers that have ended at `moment`.
    fn forget_ended_losers(&mut self, moment: i64) {
        self.losers.retain(|loser| loser.contender.end() > moment);
        self.crowded = FIRST_CROWD.max(self.open() * 2);
    }

    /// Drops winners that have ended, and then those behind them that ended while they were losing.
    fn drop_ended(&mut self) {
        self.replace_ended();
        self.first_end = self.winners.iter().map(C::end).min().unwrap_or(i64::MAX);
    }

    fn replace_ended(&mut self) {
        let at = self.at;
        loop {
            self.winners.retain(|winner| winner.end() > at);
            if !self.winners.is_empty() {
                return;
            }
            let Some(Loser { contender, .. }) = self.losers.pop() else {
                return;
            };
            let rank = contender.rank();
            self.winners.push(contender);
            while self
                .losers
                .peek()
                .is_some_and(|next| next.contender.rank() == rank)
            {
                self.winners.extend(self.losers.pop().map(|next| next.contender));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Span {
        start: i64,
        end: i64,
        rank: i64,
        id: usize,
    }

    impl Contender for Span {
        type Rank = i64;

        fn start(&self) -> i64 {
            self.start
        }

        fn end(&self) -> i64 {
            self.end
        }

        fn rank(&self) -> i64 {
            self.rank
        }
    }

    type Winners = Vec<(i64, i64, Vec<usize>)>;

    fn swept(spans: &[Span]) -> Winners {
        let mut sorted = spans.to_vec();
        sorted.sort_by_key(|span| span.start);
        let mut found = Vec::new();
        let mut emit = |stretch: Stretch<'_, Span>| {
            let mut ids: Vec<usize> = stretch.winners.iter().map(|span| span.id).collect();
            ids.sort_unstable();
            found.push((stretch.start, stretch.end, ids));
        };
        let mut sweep = Sweep::default();
        for span in sorted {
            sweep.push(span, &mut emit);
        }
        sweep.finish(&mut emit);
        found
    }

    /// Looks at every unit of time by itself.
    fn looked_at(spans: &[Span]) -> Winners {
        let mut found: Winners = Vec::new();
        for moment in 0..64 {
            let covering: Vec<&Span> = spans
                .iter()
                .filter(|span| span.start <= moment && moment < span.end)
                .collect();
            let best = covering.iter().map(|span| span.rank).max();
            let ids: Vec<usize> = covering
                .iter()
                .filter(|span| Some(span.rank) == best)
                .map(|span| span.id)
                .collect();
            match found.last_mut() {
                _ if ids.is_empty() => {}
                Some((_, end, last)) if *end == moment && *last == ids => *end = moment + 1,
                _ => found.push((moment, moment + 1, ids)),
            }
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_best_ranked_win_every_moment_and_losers_cut_nothing(
            spans in prop::collection::vec((0_i64..50, 0_i64..14, 0_i64..5), 0..24)
        ) {
            let spans: Vec<Span> = spans
                .into_iter()
                .enumerate()
                .map(|(id, (start, length, rank))| Span { start, end: start + length, rank, id })
                .collect();
            prop_assert_eq!(swept(&spans), looked_at(&spans));
        }
    }

    /// A span that counts how often anybody asks when it ends.
    struct Asked<'a>(Span, &'a std::cell::Cell<usize>);

    impl Contender for Asked<'_> {
        type Rank = i64;

        fn start(&self) -> i64 {
            self.0.start
        }

        fn end(&self) -> i64 {
            self.1.set(self.1.get() + 1);
            self.0.end
        }

        fn rank(&self) -> i64 {
            self.0.rank
        }
    }

    #[test]
    fn a_crowd_that_wins_together_is_walked_through_only_where_one_of_it_ends() {
        let crowd = 10_000;
        let asked = std::cell::Cell::new(0);
        let mut stretches = 0;
        let mut emit = |_: Stretch<'_, Asked<'_>>| stretches += 1;
        let mut sweep = Sweep::default();
        for id in 0..crowd {
            let span = Span {
                start: 0,
                end: 60,
                rank: 1,
                id,
            };
            sweep.push(Asked(span, &asked), &mut emit);
            sweep.advance(0, &mut emit);
        }
        sweep.finish(&mut emit);
        assert_eq!(stretches, 1);
        assert!(asked.get() < 10 * crowd, "{}", asked.get());
    }

    #[test]
    fn what_is_hidden_for_long_is_forgotten_when_it_has_ended() {
        let mut sweep = Sweep::default();
        let mut emit = |_: Stretch<'_, Span>| {};
        let long = Span {
            start: 0,
            end: 1_000_000,
            rank: 9,
            id: 0,
        };
        sweep.push(long, &mut emit);
        for start in 0..100_000 {
            let hidden = Span {
                start,
                end: start + 2,
                rank: 1,
                id: 1,
            };
            sweep.push(hidden, &mut emit);
        }
        assert!(sweep.open() < 1000, "{}", sweep.open());
    }

    #[test]
    fn a_crowd_of_losers_wins_again_by_rank_and_equals_in_the_order_in_which_they_came() {
        let crowd = 100_000;
        let mut sweep = Sweep::default();
        let mut won: Vec<(i64, Vec<usize>)> = Vec::new();
        let mut emit = |stretch: Stretch<'_, Span>| {
            won.push((
                stretch.start,
                stretch.winners.iter().map(|span| span.id).collect(),
            ));
        };
        let mut push = |start: i64, end: i64, rank: i64, id: usize| {
            sweep.push(Span { start, end, rank, id }, &mut emit);
        };
        push(0, crowd, crowd, 0);
        // Each is better than all before, and ends earlier; then each loses to all before, and ends later.
        for number in 1..crowd {
            push(0, crowd - number, crowd + number, 0);
        }
        for number in 1..crowd {
            push(0, crowd + number, crowd - number, 0);
        }
        for id in 1..4 {
            push(0, 2 * crowd, 0, id);
        }
        assert_eq!(sweep.open(), 2 * crowd as usize + 2);
        sweep.finish(&mut emit);
        assert!(won.iter().zip(0..).all(|((start, _), moment)| *start == moment));
        let (last, others) = won.split_last().unwrap();
        assert_eq!(last, &(2 * crowd - 1, vec![1, 2, 3]));
        assert!(others.iter().all(|(_, ids)| *ids == [0]));
    }
}
