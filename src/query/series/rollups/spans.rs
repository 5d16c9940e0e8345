//! Finds where only one piece has rows, and where several have to be read together.

use std::ops::Range;

use crate::store::rollups::Month;

/// The most overlapping pieces that each get a layer of their own. Compaction leaves few that overlap.
const MOST_LAYERS: usize = 8;

/// The time in which a piece may have rows, in whole rollups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) time: Range<i64>,
    /// Rollups of this piece may be used where it is alone.
    pub(super) fit: bool,
}

/// A stretch of time and how it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) time: Range<i64>,
    /// The index of the extent whose piece alone has rows there; `None` where rows are read.
    pub(super) alone: Option<usize>,
}

/// Cuts the part of `window` that any extent covers into spans. Ends of the window inside a rollup are read
/// as rows, and so is the time before `rollups_from`.
pub(super) fn spans(extents: &[Extent], window: Range<i64>, rollups_from: i64, step: i64) -> Vec<Span> {
    let whole = up(rollups_from.max(window.start), step)..down(window.end, step);
    let mut edges: Vec<i64> = extents
        .iter()
        .flat_map(|extent| [extent.time.start, extent.time.end])
        .collect();
    edges.extend([window.start, window.end, whole.start, whole.end]);
    edges.retain(|edge| window.contains(edge) || *edge == window.end);
    edges.sort_unstable();
    edges.dedup();
    let mut found = Vec::new();
    for pair in edges.windows(2) {
        let &[start, end] = pair else { continue };
        let mut covering = extents
            .iter()
            .enumerate()
            .filter(|(_, extent)| extent.time.start < end && extent.time.end > start);
        let Some((first, extent)) = covering.next() else {
            continue;
        };
        let usable = covering.next().is_none() && extent.fit && whole.start <= start && end <= whole.end;
        found.push(Span {
            time: start..end,
            alone: usable.then_some(first),
        });
    }
    joined(found)
}

/// Sorts extents into layers, each a list of their indices. Overlapping pieces get different layers, so that
/// each is alone in its own, as long as there are layers; the remaining ones share the last layer, where rows
/// are read.
pub(super) fn layers(extents: &[Extent]) -> Vec<Vec<usize>> {
    let mut by_start: Vec<(usize, &Extent)> = extents.iter().enumerate().collect();
    by_start.sort_by_key(|(_, extent)| extent.time.start);
    let mut layers: Vec<Layer> = Vec::new();
    let mut left = Vec::new();
    for (number, extent) in by_start {
        let is_room = layers.len() < MOST_LAYERS;
        let free = layers.iter_mut().filter(|layer| layer.end <= extent.time.start);
        match free.max_by_key(|layer| layer.end) {
            Some(layer) => layer.take(number, extent),
            None if extent.fit && is_room => {
                let mut layer = Layer::default();
                layer.take(number, extent);
                layers.push(layer);
            }
            None => left.push(number),
        }
    }
    let numbers = layers.into_iter().map(|layer| layer.numbers);
    numbers
        .chain(Some(left).filter(|left| !left.is_empty()))
        .collect()
}

/// Extents that do not overlap each other.
#[derive(Default)]
struct Layer {
    numbers: Vec<usize>,
    end: i64,
}

impl Layer {
    fn take(&mut self, number: usize, extent: &Extent) {
        self.numbers.push(number);
        self.end = extent.time.end;
    }
}

/// Joins touching spans that are answered in the same way.
pub(super) fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.time.end == span.time.start && last.alone == span.alone => {
                last.time.end = span.time.end;
            }
            _ => joined.push(span),
        }
    }
    joined
}

/// A span with a single piece, cut at the beginnings of months.
pub(super) fn by_month(span: Span) -> Vec<Span> {
    if span.alone.is_none() {
        return vec![span];
    }
    let mut parts = Vec::new();
    let mut start = span.time.start;
    while start < span.time.end {
        let month_end = Month::of(start).map_or(span.time.end, |month| month.time.end);
        let end = span.time.end.min(month_end.max(start + 1));
        parts.push(Span {
            time: start..end,
            alone: span.alone,
        });
        start = end;
    }
    parts
}

/// The last multiple of `step` that is not after `moment`.
pub(super) const fn down(moment: i64, step: i64) -> i64 {
    moment - moment.rem_euclid(step)
}

/// The first multiple of `step` that is not before `moment`.
pub(super) const fn up(moment: i64, step: i64) -> i64 {
    down(moment + step - 1, step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(time: Range<i64>, fit: bool) -> Extent {
        Extent { time, fit }
    }

    #[test]
    fn a_piece_answers_where_it_is_alone() {
        let extents = [
            extent(0..100, true),
            extent(80..120, true),
            extent(200..220, false),
        ];
        let found = spans(&extents, 5..300, 5, 10);
        let expected = [
            (5..10, None),
            (10..80, Some(0)),
            (80..100, None),
            (100..120, Some(1)),
            (200..220, None),
        ];
        assert_eq!(
            found,
            expected.map(|(time, alone)| Span { time, alone }),
            "the part of a rollup at the start, the time that two share, and the unfit piece are read"
        );
    }

    #[test]
    fn pieces_that_overlap_come_into_different_layers() {
        let extents = [
            extent(0..100, true),
            extent(10..400, true),
            extent(20..30, false),
            extent(100..200, true),
            extent(150..180, false),
            extent(200..300, false),
        ];
        assert_eq!(layers(&extents), [vec![0, 3, 5], vec![1], vec![2, 4]]);
        let many = vec![extent(0..10, true); MOST_LAYERS + 2];
        assert_eq!(layers(&many).last(), Some(&vec![MOST_LAYERS, MOST_LAYERS + 1]));
        assert_eq!(layers(&extents[..1]), [[0]]);
        assert_eq!(layers(&[]), Vec::<Vec<usize>>::new());
    }

    proptest! {
        #[test]
        fn every_piece_is_in_one_layer_and_alone_in_all_but_the_last(
            pieces in prop::collection::vec((0_i64..20, 1_i64..10, any::<bool>()), 0..20)
        ) {
            let extents: Vec<Extent> = pieces
                .iter()
                .map(|(at, length, fit)| extent(*at..at + length, *fit))
                .collect();
            let layers = layers(&extents);
            let mut numbers: Vec<usize> = layers.iter().flatten().copied().collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..extents.len()).collect::<Vec<_>>());
            for layer in layers.iter().rev().skip(1) {
                for pair in layer.windows(2) {
                    prop_assert!(extents[pair[0]].time.end <= extents[pair[1]].time.start);
                }
            }
        }

        #[test]
        fn every_covered_moment_is_answered_for_once(
            pieces in prop::collection::vec((0_i64..20, 1_i64..10, any::<bool>()), 0..6),
            start in 0_i64..150,
            length in 1_i64..150
        ) {
            let extents: Vec<Extent> = pieces
                .iter()
                .map(|(at, length, fit)| extent(at * 10..(at + length) * 10, *fit))
                .collect();
            let window = start..start + length;
            let found = spans(&extents, window.clone(), window.start, 10);
            for moment in 0..320 {
                let covering: Vec<usize> = (0..extents.len())
                    .filter(|at| extents[*at].time.contains(&moment))
                    .collect();
                let answering: Vec<&Span> = found.iter().filter(|span| span.time.contains(&moment)).collect();
                prop_assert_eq!(
                    answering.len(),
                    usize::from(!covering.is_empty() && window.contains(&moment))
                );
                let rollup = down(moment, 10)..down(moment, 10) + 10;
                let whole = window.start <= rollup.start && rollup.end <= window.end;
                let alone = covering.len() == 1 && extents[covering[0]].fit && whole;
                if let Some(span) = answering.first() {
                    prop_assert_eq!(span.alone.is_some(), alone);
                }
            }
        }
    }
}
