//! Units of measure: what a client may write, and how it converts to the unit of a type.
//!
//! The table is `schemas/units.json`, read once. Factors are fractions of integers, so that exact definitions
//! stay exact: a pound is 45359237/100000 grams. A unit converts only within its dimension; a count of steps
//! is not a count of strokes. What the table does not name is read as a term of UCUM.

mod terms;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::str::FromStr;

use serde::Deserialize;

use super::excerpt::beginning;
use super::metric::MetricTraits;
use terms::{BadDefinition, Ratio, Terms, TermsTable};

/// The length of the longest list of codes.
const MOST_CODES: usize = 8;

/// By how much of itself the molar mass that is sent may differ from that of the substance.
const SAME_SUBSTANCE: f64 = 1e-3;

const UNITS: &str = include_str!("../../schemas/units.json");

/// Why a value cannot be converted to the unit of its metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error(
        "unknown unit {unit:?}; {metric} is stored in {expected}, send that or another unit of the same \
         dimension"
    )]
    Unknown {
        /// The beginning of it, if it is long.
        unit: String,
        metric: String,
        expected: String,
    },
    #[error(
        "{unit:?} does not measure {metric}, which is stored in {expected}; send that or another unit of the \
         same dimension"
    )]
    OtherDimension {
        /// The beginning of it, if it is long.
        unit: String,
        metric: String,
        expected: String,
    },
    #[error("the value is too large to be expressed in {expected}")]
    TooLarge { expected: String },
}

/// Why the table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnitTableError {
    #[error("the table of units cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the table of units cannot be used: {0}")]
    Term(#[from] BadDefinition),
}

/// How values of one unit become values of another. Looked up once per unit and metric, then applied to every
/// row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conversion {
    Same,
    Linear {
        times: f64,
        over: f64,
        plus: f64,
    },
    /// A spelling that some write for hundredths and others for fractions of one: values up to the limit are
    /// fractions.
    FractionUpTo {
        limit: f64,
    },
    /// For each code of another list, at that index, the type's code.
    Codes([f64; MOST_CODES]),
}

/// `value · times / over + plus`. A product may be too large where its quotient is not: then the division
/// comes first, whose last digit may differ.
#[inline]
#[must_use]
pub fn scaled(value: f64, times: f64, over: f64, plus: f64) -> f64 {
    let converted = value * times / over + plus;
    if converted.is_finite() {
        converted
    } else {
        value / over * times + plus
    }
}

impl Conversion {
    #[must_use]
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::Linear { times, over, plus } => scaled(value, times, over, plus),
            Self::FractionUpTo { limit } if value.abs() <= limit => value * 100.0,
            Self::Codes(codes) if value.fract() == 0.0 && value >= 0.0 => {
                codes.get(value as usize).copied().unwrap_or(f64::NAN)
            }
            Self::Codes(_) => f64::NAN,
            Self::Same | Self::FractionUpTo { .. } => value,
        }
    }

    /// Whether converting `value` to `converted` changed what was sent, so that the original is worth
    /// keeping. Another spelling of the type's unit changes nothing.
    #[must_use]
    pub const fn leaves_original(self, value: f64, converted: f64) -> bool {
        match self {
            Self::Same => false,
            Self::Linear { .. } | Self::Codes(_) => true,
            Self::FractionUpTo { .. } => value.to_bits() != converted.to_bits(),
        }
    }
}

/// All units the product knows.
#[derive(Debug)]
pub struct Units {
    known: Vec<Unit>,
    /// Exact spelling to the units it may stand for; one word can name units of several dimensions.
    spellings: HashMap<String, Vec<usize>>,
    /// The same for words, in lower case.
    words: HashMap<String, Vec<usize>>,
    differences: Vec<String>,
    substances: Vec<Substance>,
    ambiguous_percent: AmbiguousPercent,
    codes: Vec<CodeList>,
    systems: Systems,
    terms: Terms,
}

/// The units in which values are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitSystem {
    /// As they are stored.
    Catalogue,
    Metric,
    Us,
}

/// A name that is not a system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown units {0:?}; use one of catalogue, metric, us")]
pub struct UnknownSystem(String);

impl UnitSystem {
    pub const ALL: [Self; 3] = [Self::Catalogue, Self::Metric, Self::Us];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Catalogue => "catalogue",
            Self::Metric => "metric",
            Self::Us => "us",
        }
    }
}

impl FromStr for UnitSystem {
    type Err = UnknownSystem;

    fn from_str(name: &str) -> Result<Self, UnknownSystem> {
        let found = Self::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| UnknownSystem(beginning(name).into_owned()))
    }
}

/// The units that each system uses in place of others.
#[derive(Debug, Deserialize)]
struct Systems {
    metric: HashMap<String, String>,
    us: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Table {
    differences: Vec<String>,
    substances: Vec<Substance>,
    ambiguous_percent: AmbiguousPercent,
    codes: Vec<CodeList>,
    systems: Systems,
    terms: TermsTable,
    units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
struct Unit {
    #[serde(rename = "unit")]
    name: String,
    dimension: String,
    /// One of this unit in base units of its dimension: numerator and denominator.
    factor: [u64; 2],
    /// Its zero in base units; absent when zero is zero.
    zero: Option<[i64; 2]>,
    #[serde(default)]
    spellings: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
}

/// What converting needs of a unit.
#[derive(Clone, Copy, Debug)]
struct Measure<'u> {
    dimension: &'u str,
    /// In base units of its dimension.
    factor: Ratio,
    zero: [i64; 2],
    /// Grams of one mole, if the unit tells.
    grams_per_mole: Option<f64>,
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

/// Another list of codes with the same meanings as those of the type's unit `to`.
#[derive(Debug, Deserialize)]
struct CodeList {
    unit: String,
    to: String,
    codes: Vec<i32>,
    /// The codes that mean that there is no value.
    absent: Vec<i32>,
}

/// A substance whose mass and amount can be converted into each other.
#[derive(Debug, Deserialize)]
struct Substance {
    types: Vec<String>,
    mass: String,
    amount: String,
    grams_per_mole: [u64; 2],
}

#[derive(Debug, Deserialize)]
struct AmbiguousPercent {
    spelling: String,
    is_fraction_up_to: f64,
    except: HashMap<String, f64>,
}

impl Units {
    /// The table that comes with the product.
    pub fn builtin() -> Result<Self, UnitTableError> {
        let table: Table = serde_json::from_str(UNITS)?;
        let mut spellings: HashMap<String, Vec<usize>> = HashMap::new();
        let mut words: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, unit) in table.units.iter().enumerate() {
            for spelling in std::iter::once(&unit.name).chain(&unit.spellings) {
                spellings.entry(spelling.clone()).or_default().push(index);
            }
            for word in &unit.words {
                words.entry(word.clone()).or_default().push(index);
            }
        }
        let Table {
            differences,
            substances,
            ambiguous_percent,
            codes,
            systems,
            terms,
            units,
        } = table;
        Ok(Self {
            terms: Terms::new(terms)?,
            known: units,
            spellings,
            words,
            differences,
            substances,
            ambiguous_percent,
            codes,
            systems,
        })
    }

    /// `value` converted from the unit `from` to the unit of the metric `data_type`.
    pub fn convert(
        &self,
        value: f64,
        from: &str,
        traits: &MetricTraits,
        data_type: &str,
    ) -> Result<f64, UnitError> {
        let converted = self.conversion(from, traits, data_type)?.apply(value);
        if converted.is_finite() {
            return Ok(converted);
        }
        Err(UnitError::TooLarge {
            expected: traits.unit.clone().unwrap_or_default(),
        })
    }

    /// How values in the unit `from` become values of the metric `data_type`. A metric without a unit takes
    /// every value as it is.
    pub fn conversion(
        &self,
        from: &str,
        traits: &MetricTraits,
        data_type: &str,
    ) -> Result<Conversion, UnitError> {
        let Some(expected) = traits.unit.as_deref() else {
            return Ok(Conversion::Same);
        };
        if from == expected {
            return Ok(Conversion::Same);
        }
        if let Some(list) = self
            .codes
            .iter()
            .find(|list| list.unit == from && list.to == expected)
        {
            let mut codes = [f64::NAN; MOST_CODES];
            for (place, code) in codes.iter_mut().zip(&list.codes) {
                *place = f64::from(*code);
            }
            return Ok(Conversion::Codes(codes));
        }
        let told = || {
            let unit = beginning(from).into_owned();
            (unit, data_type.to_owned(), expected.to_owned())
        };
        let unknown = || {
            let (unit, metric, expected) = told();
            UnitError::Unknown {
                unit,
                metric,
                expected,
            }
        };
        let target = self.stored_in(expected).ok_or_else(unknown)?;
        if from == self.ambiguous_percent.spelling && target.dimension == "percentage" {
            return Ok(self.percent(data_type));
        }
        let candidates = self.measures(from).ok_or_else(unknown)?;
        if let Some(unit) = candidates.iter().find(|unit| unit.dimension == target.dimension) {
            let is_difference = self.differences.iter().any(|name| name == data_type);
            return between(*unit, target, is_difference).ok_or_else(unknown);
        }
        candidates
            .iter()
            .find_map(|unit| self.through_substance(*unit, target, data_type))
            .ok_or_else(|| {
                let (unit, metric, expected) = told();
                UnitError::OtherDimension {
                    unit,
                    metric,
                    expected,
                }
            })
    }

    /// The unit in which `system` shows the metric `data_type`, which is stored in the unit `kept`, and the
    /// conversion to it. `None`: it is shown as stored.
    #[must_use]
    pub fn shown(&self, system: UnitSystem, kept: &str, data_type: &str) -> Option<(String, Conversion)> {
        let kept = self.target(kept)?;
        let shown = match system {
            UnitSystem::Catalogue => None,
            UnitSystem::Metric => self.systems.metric.get(&kept.name),
            UnitSystem::Us => self.systems.us.get(&kept.name),
        }?;
        let shown = self.target(shown)?;
        let is_difference = self.differences.iter().any(|name| name == data_type);
        let conversion = between(kept.into(), shown.into(), is_difference)?;
        Some((shown.name.clone(), conversion))
    }

    /// Whether `value` is a code of the unit `from` that means that there is no value.
    #[must_use]
    pub fn is_absent(&self, from: &str, value: f64) -> bool {
        let lists = self.codes.iter().filter(|list| list.unit == from);
        lists
            .flat_map(|list| &list.absent)
            .any(|code| f64::from(*code).total_cmp(&value).is_eq())
    }

    fn percent(&self, data_type: &str) -> Conversion {
        // A person who defines a metric in percent means percent; only platform exports write fractions this
        // way.
        if data_type.contains('/') {
            return Conversion::Same;
        }
        let limit = self
            .ambiguous_percent
            .except
            .get(data_type)
            .copied()
            .unwrap_or(self.ambiguous_percent.is_fraction_up_to);
        Conversion::FractionUpTo { limit }
    }

    /// The unit a metric is stored in: by its name, or by a spelling that can mean only one unit.
    fn target(&self, expected: &str) -> Option<&Unit> {
        if let Some(unit) = self.known.iter().find(|unit| unit.name == expected) {
            return Some(unit);
        }
        match self.candidates(expected) {
            &[only] => self.known.get(only),
            _ => None,
        }
    }

    /// The unit that records are converted to. An own metric may have one that the table does not name.
    fn stored_in(&self, expected: &str) -> Option<Measure<'_>> {
        if let Some(unit) = self.target(expected) {
            return Some(unit.into());
        }
        match self.measures(expected)?.as_slice() {
            &[only] => Some(only),
            _ => None,
        }
    }

    /// What a unit may stand for; `None` if it stands for nothing.
    fn measures(&self, spelling: &str) -> Option<Vec<Measure<'_>>> {
        let known = self.candidates(spelling);
        if !known.is_empty() {
            let known = known.iter().filter_map(|&index| self.known.get(index));
            return Some(known.map(Measure::from).collect());
        }
        let read = self.terms.read(spelling)?.into_iter();
        let measures = read.map(|(dimension, meaning)| Measure {
            dimension,
            factor: meaning.factor,
            zero: [0, 1],
            grams_per_mole: meaning.grams_per_mole,
        });
        Some(measures.collect())
    }

    fn candidates(&self, spelling: &str) -> &[usize] {
        let exact = self.spellings.get(spelling);
        let found = exact
            .or_else(|| self.words.get(spelling))
            .or_else(|| self.words.get(&spelling.to_lowercase()));
        found.map_or(&[], Vec::as_slice)
    }

    fn through_substance(
        &self,
        from: Measure<'_>,
        target: Measure<'_>,
        data_type: &str,
    ) -> Option<Conversion> {
        let substance = self
            .substances
            .iter()
            .find(|substance| substance.types.iter().any(|name| name == data_type))?;
        let [grams, moles] = substance.grams_per_mole.map(u128::from);
        let is_another = |told: f64| (told * moles as f64 / grams as f64 - 1.0).abs() > SAME_SUBSTANCE;
        if from.grams_per_mole.is_some_and(is_another) {
            return None;
        }
        // The base units are grams per litre and millimoles per litre.
        let base = Ratio::new(grams, moles * 1000);
        let factor = from.factor.over(target.factor)?;
        let factor = if from.dimension == substance.amount && target.dimension == substance.mass {
            factor.times(base)?
        } else if from.dimension == substance.mass && target.dimension == substance.amount {
            factor.over(base)?
        } else {
            return None;
        };
        Some(linear(factor, 0.0))
    }
}

/// `None` if the factor has too many digits.
fn between(from: Measure<'_>, target: Measure<'_>, is_difference: bool) -> Option<Conversion> {
    let plus = if is_difference || from.zero == target.zero {
        0.0
    } else {
        let [from_zero, from_parts] = from.zero.map(i128::from);
        let [target_zero, target_parts] = target.zero.map(i128::from);
        let distance = from_zero * target_parts - target_zero * from_parts;
        let distance = distance * target.factor.denominator as i128;
        let parts = from_parts * target_parts * target.factor.numerator as i128;
        distance as f64 / parts as f64
    };
    Some(linear(from.factor.over(target.factor)?, plus))
}

/// Both parts of most fractions are exact as floats, because these are in lowest terms.
fn linear(factor: Ratio, plus: f64) -> Conversion {
    if factor == Ratio::ONE && plus == 0.0 {
        return Conversion::Same;
    }
    Conversion::Linear {
        times: factor.numerator as f64,
        over: factor.denominator as f64,
        plus,
    }
}
