//! Sorts values whose order begins with bits that are scattered evenly, as those of random ids and of hashes
//! are: they are dealt into as many heaps as there are few of them in each, and each heap is sorted.
//!
//! Knows nothing of what it sorts but its order.

/// Fewer values are sorted as usual.
const LEAST: usize = 256;
/// How many values there are in a heap if they are scattered evenly.
const IN_A_HEAP: usize = 4;
/// With more in any heap the values are not scattered, and are sorted as usual.
const MOST_IN_A_HEAP: u32 = 64;

/// Sorts `values`. `leading` is the first 64 bits of a value's place in their order: of two values, the
/// lesser never has the greater bits.
pub fn sort_scattered<T: Copy + Ord>(values: &mut [T], leading: impl Fn(&T) -> u64) {
    if values.len() < LEAST || values.is_sorted() {
        values.sort_unstable();
        return;
    }
    let bits = (values.len() / IN_A_HEAP).ilog2();
    let heap_of = |value: &T| (leading(value) >> (u64::BITS - bits)) as usize;
    let mut sizes = vec![0_u32; 1 << bits];
    for value in values.iter() {
        sizes[heap_of(value)] += 1;
    }
    if sizes.iter().any(|size| *size > MOST_IN_A_HEAP) {
        values.sort_unstable();
        return;
    }
    // For each heap the place of its next value; in the end, that of the first one after it.
    let mut places = Vec::with_capacity(sizes.len());
    let mut before = 0;
    for size in sizes {
        places.push(before);
        before += size as usize;
    }
    let dealt = values.to_vec();
    for value in dealt {
        let place = &mut places[heap_of(&value)];
        values[*place] = value;
        *place += 1;
    }
    let mut begin = 0;
    for end in places {
        values[begin..end].sort_unstable();
        begin = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort_scattered;

    fn assert_sorted(values: &[u64]) {
        let mut expected = values.to_vec();
        expected.sort_unstable();
        let mut sorted = values.to_vec();
        sort_scattered(&mut sorted, |value| *value);
        assert_eq!(sorted, expected);
    }

    proptest! {
        /// Values are sorted however they are scattered: evenly, close to each other, or some of them alike.
        #[test]
        fn the_order_is_the_usual_one(
            values in proptest::collection::vec(any::<u64>(), 0..2_000),
            shift in prop::sample::select(vec![0, 1, 8, 40, 63]),
        ) {
            assert_sorted(&values);
            let close: Vec<u64> = values.iter().map(|value| value >> shift).collect();
            assert_sorted(&close);
            let far = values.iter().map(|value| value.checked_shl(shift).unwrap_or_default());
            assert_sorted(&far.collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_whose_leading_bits_are_alike_are_told_apart_by_the_rest() {
        let mut values: Vec<(u8, u64)> = (0..4_000).map(|number| (number as u8, 4_000 - number)).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        sort_scattered(&mut values, |(first, _)| u64::from(*first) << 56);
        assert_eq!(values, expected);
    }

    #[test]
    fn what_is_sorted_already_stays() {
        let values: Vec<u64> = (0..1_000).map(|number| number << 50).collect();
        assert_sorted(&values);
    }
}
