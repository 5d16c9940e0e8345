//! The table of units as `schemas/units.json` has it.

use std::collections::HashMap;

use serde::Deserialize;

use super::conversion::Measure;
use super::terms::{Ratio, TermsTable};

pub(super) const UNITS: &str = include_str!("../../../schemas/units.json");

/// The units that each system uses in place of others.
#[derive(Debug, Deserialize)]
pub(super) struct Systems {
    pub(super) metric: HashMap<String, String>,
    pub(super) us: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Table {
    pub(super) differences: Vec<String>,
    pub(super) substances: Vec<Substance>,
    pub(super) ambiguous_percent: AmbiguousPercent,
    pub(super) codes: Vec<CodeList>,
    pub(super) systems: Systems,
    pub(super) terms: TermsTable,
    pub(super) units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    #[serde(rename = "unit")]
    pub(super) name: String,
    pub(super) dimension: String,
    /// One of this unit in base units of its dimension: numerator and denominator.
    pub(super) factor: [u64; 2],
    /// Its zero in base units; absent when zero is zero.
    pub(super) zero: Option<[i64; 2]>,
    #[serde(default)]
    pub(super) spellings: Vec<String>,
    #[serde(default)]
    pub(super) words: Vec<String>,
}

/// Another list of codes with the same meanings as those of the type's unit `to`.
#[derive(Debug, Deserialize)]
pub(super) struct CodeList {
    pub(super) unit: String,
    pub(super) to: String,
    pub(super) codes: Vec<i32>,
    /// The codes that mean that there is no value.
    pub(super) absent: Vec<i32>,
}

/// A substance whose mass and amount can be converted into each other.
#[derive(Debug, Deserialize)]
pub(super) struct Substance {
    pub(super) types: Vec<String>,
    pub(super) mass: String,
    pub(super) amount: String,
    pub(super) grams_per_mole: [u64; 2],
}

#[derive(Debug, Deserialize)]
pub(super) struct AmbiguousPercent {
    pub(super) spelling: String,
    pub(super) is_fraction_up_to: f64,
    pub(super) except: HashMap<String, f64>,
}

impl<'u> From<&'u Unit> for Measure<'u> {
    fn from(unit: &'u Unit) -> Self {
        let [numerator, denominator] = unit.factor.map(u128::from);
        Self {
            dimension: &unit.dimension,
            factor: Ratio::new(numerator, denominator),
            zero: unit.zero.unwrap_or([0, 1]),
            grams_per_mole: None,
        }
    }
}
