//! Everything that is left to chance, from one number.

use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::model::clock::Clock;
use crate::model::ids::IdSource;

/// A sequence of numbers that its seed decides (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number from `first` to `last`.
    pub(super) fn between(&mut self, first: i64, last: i64) -> i64 {
        first + (self.next() % (last - first + 1) as u64) as i64
    }

    /// Never for 0.
    pub(super) fn one_in(&mut self, many: usize) -> bool {
        many != 0 && self.below(many) == 0
    }

    pub(super) fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}

/// Ids that look like UUIDs of version 7 by the clock of their node, wrong as it may be.
pub(super) struct ChanceIds {
    chance: Mutex<Chance>,
    clock: Arc<dyn Clock>,
}

impl ChanceIds {
    pub(super) fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            chance: Mutex::new(Chance::of(seed)),
            clock,
        }
    }
}

impl IdSource for ChanceIds {
    fn next(&self) -> Uuid {
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
        let random = (u128::from(chance.next()) << 64) | u128::from(chance.next());
        let millis = (self.clock.now().micros() / 1_000).max(0) as u128 & 0xffff_ffff_ffff;
        let bits = (millis << 80) | (random & ((1 << 80) - 1));
        let bits = (bits & !(0xf << 76)) | (0x7 << 76);
        Uuid::from_u128((bits & !(0x3 << 62)) | (0x2 << 62))
    }
}
