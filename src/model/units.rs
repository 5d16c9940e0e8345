//! Units of measure: what a client may write, and how it converts to the unit of a type.
//!
//! The table is `schemas/units.json`, read once. Factors are fractions of integers, so that exact definitions
//! stay exact: a pound is 45359237/100000 grams. A unit converts only within its dimension; a count of steps
//! is not a count of strokes. What the table does not name is read as a term of UCUM.

mod conversion;
mod system;
mod table;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::excerpt::beginning;
use super::metric::MetricTraits;
use conversion::{MOST_CODES, Measure, between, linear};
use table::{AmbiguousPercent, CodeList, Substance, Systems, Table, UNITS, Unit};
use terms::{BadDefinition, Ratio, Terms};

pub use conversion::{Conversion, is_same_quantity, scaled};
pub use system::UnitSystem;

/// By how much of itself the molar mass that is sent may differ from that of the substance.
const SAME_SUBSTANCE: f64 = 1e-3;

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
        // A person who defines a metric means percent; only platform exports write fractions this way.
        let is_ambiguous = from == self.ambiguous_percent.spelling && !data_type.contains('/');
        if is_ambiguous && target.dimension == "percentage" {
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
