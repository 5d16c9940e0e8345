//! Decides which samples count where several cover the same time.
//!
//! A sweep takes contenders in the order of their starts and emits stretches of time, each with the
//! contenders of the greatest rank in it. A contender that loses never splits a stretch. It holds only the
//! contenders that are open at one moment. Knows ranks and spans; the caller defines the rank (the stage and
//! start of a piece of sleep, the place of a source in a person's order).

use std::cmp::Ordering;

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
pub struct Sweep<C> {
    /// Those that may still win, worst first. Losers that have ended stay until they come to the top, or
    /// until there are too many.
    open: Vec<C>,
    /// The index of the first winner: winners are all that have the rank of the last.
    first_winner: usize,
    /// Everything before this moment is decided.
    at: i64,
    /// How many may be open before ended ones are looked for.
    crowded: usize,
}

const FIRST_CROWD: usize = 16;

impl<C: Contender> Default for Sweep<C> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            first_winner: 0,
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
        let rank = contender.rank();
        let best = self.open.last().map(|best| best.rank().cmp(&rank));
        if best != Some(Ordering::Greater) {
            self.decide_until(start, emit);
        }
        if self.open.len() >= self.crowded {
            let at = self.at.max(start);
            self.open.retain(|open| open.end() > at);
            self.crowded = FIRST_CROWD.max(self.open.len() * 2);
            self.find_winners();
        }
        match best {
            Some(Ordering::Greater) => {
                let losers = self.open.get(..self.first_winner).unwrap_or_default();
                let place = losers.partition_point(|open| open.rank() <= rank);
                self.open.insert(place, contender);
                self.first_winner += 1;
            }
            Some(Ordering::Equal) => self.open.push(contender),
            Some(Ordering::Less) | None => {
                self.first_winner = self.open.len();
                self.open.push(contender);
            }
        }
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
        self.drop_ended();
        let end = self.winners().iter().map(C::end).min();
        let Some(end) = end.filter(|end| *end <= moment) else {
            return false;
        };
        self.decide_until(end, emit);
        true
    }

    /// How many contenders win now: every step takes as long as there are winners.
    #[must_use]
    pub const fn winning(&self) -> usize {
        self.open.len() - self.first_winner
    }

    /// Emits what is left and resets the sweep.
    pub fn finish(&mut self, emit: &mut impl FnMut(Stretch<'_, C>)) {
        self.settle(i64::MAX, emit);
        *self = Self::default();
    }

    /// How many contenders are held.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open.len()
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
        let winners = self.winners();
        if self.at < moment && !winners.is_empty() {
            emit(Stretch {
                start: self.at,
                end: moment,
                winners,
            });
        }
        self.at = self.at.max(moment);
    }

    fn winners(&self) -> &[C] {
        self.open.get(self.first_winner..).unwrap_or_default()
    }

    fn find_winners(&mut self) {
        let winners = match self.open.last() {
            Some(best) => {
                let rank = best.rank();
                let from_best = self.open.iter().rev();
                from_best.take_while(|open| open.rank() == rank).count()
            }
            None => 0,
        };
        self.first_winner = self.open.len() - winners;
    }

    /// Drops winners that have ended, and then those behind them that ended while they were losing.
    fn drop_ended(&mut self) {
        let at = self.at;
        if !self.winners().is_empty() && self.winners().iter().all(|winner| winner.end() > at) {
            return;
        }
        loop {
            let mut kept = self.first_winner;
            for place in self.first_winner..self.open.len() {
                if self.open[place].end() > at {
                    self.open.swap(kept, place);
                    kept += 1;
                }
            }
            self.open.truncate(kept);
            if self.open.len() > self.first_winner || self.first_winner == 0 {
                return;
            }
            self.find_winners();
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

    type Found = Vec<(i64, i64, Vec<usize>)>;

    fn swept(spans: &[Span]) -> Found {
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
    fn looked_at(spans: &[Span]) -> Found {
        let mut found: Found = Vec::new();
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
        assert!(sweep.open.len() < 1000, "{}", sweep.open.len());
    }
}
