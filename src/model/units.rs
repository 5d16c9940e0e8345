//! Units of measure: what a client may write, and how it converts to the unit of the catalogue.
//!
//! The table is `schemas/units.json`, read once. Factors are fractions of integers, so that exact definitions
//! stay exact: a pound is 45359237/100000 grams. A unit converts only within its dimension; a count of steps
//! is not a count of strokes. What the table does not name is read as a term of UCUM.

mod terms;

use std::collections::HashMap;
use std::str::FromStr;

use serde::Deserialize;

use super::registry::metric::MetricTraits;
use terms::{BadDefinition, Given, Ratio, Terms};

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
        unit: String,
        metric: String,
        expected: String,
    },
    #[error(
        "{unit:?} does not measure {metric}, which is stored in {expected}; send that or another unit of the \
         same dimension"
    )]
    OtherDimension {
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
    /// For each code of another list, at that index, the catalogue's code.
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
        found.ok_or_else(|| UnknownSystem(name.to_owned()))
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
    terms: Given,
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

/// Another list of codes with the same meanings as those of the catalogue's unit `to`.
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
        let told = || (from.to_owned(), data_type.to_owned(), expected.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::registry::Registry;

    fn convert(metric: &str, value: f64, unit: &str) -> Result<f64, UnitError> {
        let registry = Registry::builtin().unwrap();
        let traits = registry.get(metric).unwrap().metric.clone().unwrap();
        registry.units().convert(value, unit, &traits, metric)
    }

    #[test]
    fn rule_8_7_values_become_values_of_the_catalogue_unit() {
        // The tolerance is half of the last digit given.
        let cases = [
            ("BloodGlucose", 5.5, "mmol/L", 99.0857, 5e-5),
            ("Weight", 80.0, "kg", 176.369_81, 5e-6),
            ("BodyTemperature", 37.0, "degC", 98.6, 0.0),
            ("SkinTemperatureDelta", 0.5, "degC", 0.9, 0.0),
            ("DistanceTraveledOnFoot", 5.0, "km", 3.106_856, 5e-7),
            ("ActiveCaloriesBurned", 418.4, "kJ", 100.0, 0.0),
            ("HeartRate", 1.1, "count/s", 66.0, 1e-12),
            ("BloodOxygenSaturation", 0.97, "%", 97.0, 0.0),
            ("BloodOxygenSaturation", 97.0, "%", 97.0, 0.0),
            ("BloodAlcoholContent", 0.0008, "%", 0.08, 1e-12),
            ("BloodAlcoholContent", 0.08, "%", 0.08, 0.0),
            ("BodyTemperature", 310.15, "K", 98.6, 1e-9),
            ("Height", 180.0, "cm", 5.905_512, 5e-7),
            ("DietaryWaterConsumed", 1.0, "L", 33.814_023, 5e-7),
            ("BloodPressureSystolic", 16.0, "kPa", 120.009_852, 5e-7),
            ("WalkingSpeed", 3.6, "km/h", 2.236_936, 5e-7),
            ("TimeInDaylight", 1.5, "Hours", 90.0, 0.0),
            ("StepCount", 7.0, "count", 7.0, 0.0),
            ("Weight", 12.0, "stone", 168.0, 0.0),
            ("CaloriesConsumed", 250.0, "Kilocalories", 250.0, 0.0),
        ];
        for (metric, value, unit, expected, tolerance) in cases {
            let converted =
                convert(metric, value, unit).unwrap_or_else(|error| panic!("{metric} {unit}: {error}"));
            assert!(
                (converted - expected).abs() <= tolerance,
                "{value} {unit} of {metric}: {converted} instead of {expected}"
            );
        }
    }

    #[test]
    fn units_of_a_system_are_units_of_the_same_dimension_and_lead_there() {
        let registry = Registry::builtin().unwrap();
        let units = registry.units();
        for (system, table) in [
            (UnitSystem::Metric, &units.systems.metric),
            (UnitSystem::Us, &units.systems.us),
        ] {
            for (kept, shown) in table {
                let of = |name: &str| units.known.iter().find(|unit| unit.name == name);
                let dimensions = [kept, shown].map(|name| &of(name).unwrap().dimension);
                assert_eq!(dimensions[0], dimensions[1], "{kept} as {shown}");
                assert_eq!(units.shown(system, kept, "X").unwrap().0, *shown);
                assert!(
                    !table.contains_key(shown),
                    "{kept} is told as {shown}, which is not told so"
                );
            }
            assert_eq!(units.shown(system, "bpm", "HeartRate"), None);
            assert_eq!(units.shown(UnitSystem::Catalogue, "lb", "Weight"), None);
        }
        for (system, kept, data_type, value, shown, expected) in [
            (
                UnitSystem::Metric,
                "lb",
                "Weight",
                176.369_809_747_902,
                "kg",
                80.0,
            ),
            (UnitSystem::Metric, "degF", "BodyTemperature", 98.6, "degC", 37.0),
            (
                UnitSystem::Metric,
                "degF",
                "SkinTemperatureDelta",
                0.9,
                "degC",
                0.5,
            ),
            (
                UnitSystem::Metric,
                "mi",
                "DistanceTraveledOnFoot",
                1.0,
                "km",
                1.609_344,
            ),
            (UnitSystem::Us, "cm", "X", 2.54, "in", 1.0),
            (UnitSystem::Us, "kg", "X", 0.453_592_37, "lb", 1.0),
        ] {
            let (unit, conversion) = units.shown(system, kept, data_type).unwrap();
            let told = conversion.apply(value);
            assert_eq!(unit, shown);
            assert!((told - expected).abs() < 1e-9, "{value} {kept} are {told} {unit}");
        }
    }

    #[test]
    fn a_value_is_converted_wherever_the_result_is_a_number() {
        let registry = Registry::builtin().unwrap();
        let units = registry.units();
        let shown = |kept: &str, data_type: &str| units.shown(UnitSystem::Metric, kept, data_type).unwrap().1;
        let fevers = shown("degF", "BodyTemperature");
        for value in [4e307, -4e307, f64::MAX, f64::MIN] {
            let told = fevers.apply(value);
            assert!(
                (told / (value / 9.0 * 5.0) - 1.0).abs() < 1e-15,
                "{value} is told as {told}"
            );
        }
        assert!(fevers.apply(f64::INFINITY).is_infinite() && fevers.apply(f64::NAN).is_nan());
        assert!(
            shown("mi", "DistanceTraveledOnFoot")
                .apply(f64::MAX)
                .is_infinite()
        );
        assert!(convert("Weight", 1e304, "kg").is_ok_and(f64::is_finite));
        // Where the product is a number, nothing changes.
        for value in [98.6, 0.1, -40.0, 1e300, 5e-324] {
            let Conversion::Linear { times, over, plus } = fevers else {
                panic!("{fevers:?}")
            };
            assert_eq!(
                fevers.apply(value).to_bits(),
                (value * times / over + plus).to_bits()
            );
        }
    }

    #[test]
    fn rule_8_7_any_unit_of_the_dimension_is_understood() {
        for (metric, value, unit, expected) in [
            ("ActiveCaloriesBurned", 4.184, "MJ", 1000.0),
            ("ActiveCaloriesBurned", 1500.0, "cal_th", 1.5),
            ("CyclingSpeed", 44.704, "cm/s", 1.0),
            ("CyclingSpeed", 26.8224, "m/min", 1.0),
            ("DietaryWaterConsumed", 1.0, "[qt_us]", 32.0),
            ("DietaryWaterConsumed", 1.0, "[tbs_us]", 0.5),
            ("DietaryWaterConsumed", 6.0, "[tsp_us]", 1.0),
            ("DietaryWaterConsumed", 29_573.529_562_5, "uL", 1.0),
            ("DietaryWaterConsumed", 29_573.529_562_5, "µL", 1.0),
            ("DietaryWaterConsumed", 0.473_176_473, "dm3", 16.0),
            ("DietaryWaterConsumed", 0.473_176_473e-3, "m^3", 16.0),
            ("DietaryWaterConsumed", 2.0, "cup_imp", 19.215_198_808_077_68),
            ("BloodPressureSystolic", 1.333_223_874_15, "bar", 1000.0),
            ("BloodPressureSystolic", 1.0, "atm", 759.999_891_725_611_3),
            ("BloodPressureSystolic", 0.12, "m[Hg]", 120.0),
            ("BloodPressureSystolic", 1.0, "N/cm2", 75.006_157_584_565_62),
            ("DistanceTraveledOnFoot", 16_093.44, "dm", 1.0),
            ("DistanceTraveledOnFoot", 1_609_344_000.0, "um", 1.0),
            ("DistanceTraveledOnFoot", 1_609.344, "[nmi_i]", 1852.0),
            ("DistanceTraveledOnFoot", 3.0, "10*3.[ft_i]", 3000.0 / 5280.0),
            ("TimeInDaylight", 1.0, "wk", 10_080.0),
            ("TimeInDaylight", 6e10, "ns", 1.0),
            ("CyclingPower", 2500.0, "mW", 2.5),
            ("CyclingPower", 6000.0, "J/min", 100.0),
            ("PhysicalEffort", 4.184, "kJ/(h.kg)", 1.0),
            ("PhysicalEffort", 1.0, "W/kg", 3.6 / 4.184),
            ("VO2Max", 0.04, "L/min/kg", 40.0),
            ("PeakExpiratoryFlowRate", 0.06, "m3/h", 1.0),
            ("HeartRate", 0.001, "kHz", 60.0),
            ("HeartRate", 120.0, "{heart beats}.(2.min)-1", f64::NAN),
            ("HeartRate", 60.0, "min-1", 60.0),
            ("HeartRate", 120.0, "/(2.min)", 60.0),
            ("BloodKetones", 1.5, "mol/m3", 1.5),
            ("BloodKetones", 1500.0, "mcmol/L", 1.5),
            ("BloodGlucose", 5.5, "mmol<180.15588000005408>/L", 99.085_734),
            ("BloodGlucose", 5.5, "mol/m3", 99.085_734),
            ("BloodGlucose", 5.5, "mmol<100>/L", f64::NAN),
            ("BodyMassIndex", 1.0, "g/cm2", 10.0),
            ("BloodOxygenSaturation", 970.0, "[ppth]", 97.0),
            ("BloodOxygenSaturation", 97.0, "10*-2", 97.0),
            ("BloodOxygenSaturation", 1.0, "{beats}", f64::NAN),
            ("Weight", 1.0, "dag", 0.022_046_226_218_487_76),
            ("Weight", 45_359_237.0, "pg.10*8", 10.0),
            // Calories of food, or those of physics?
            ("CyclingPower", 1.0, "cal/min", f64::NAN),
            ("CyclingPower", 1.0, "kcal/min", 4184.0 / 60.0),
            ("Weight", 1.0, "kkg", f64::NAN),
            ("Weight", 1.0, "kg.", f64::NAN),
            ("Weight", 1.0, "(kg", f64::NAN),
            ("Weight", 1.0, "kg/0", f64::NAN),
            ("Weight", 1.0, "Yg.10*24", f64::NAN),
            ("Weight", 1.0, " kg", f64::NAN),
            ("StepCount", 1.0, "10*3", f64::NAN),
        ] {
            match convert(metric, value, unit) {
                Ok(found) => assert!(
                    (found / expected - 1.0).abs() < 1e-12,
                    "{value} {unit} of {metric} are {found}, not {expected}"
                ),
                Err(error) => assert!(expected.is_nan(), "{metric}: {error}"),
            }
        }
    }

    /// A term never means anything else than the table where both know it, and the table comes first.
    #[test]
    fn rule_8_7_terms_agree_with_the_table() {
        let units = Units::builtin().unwrap();
        let mut agreed = 0;
        for unit in &units.known {
            let known = Measure::from(unit);
            for spelling in std::iter::once(&unit.name).chain(&unit.spellings) {
                assert!(
                    units
                        .measures(spelling)
                        .unwrap()
                        .iter()
                        .any(|measure| measure.factor == known.factor && measure.dimension == known.dimension),
                    "{spelling}"
                );
                let read = units.terms.read(spelling).unwrap_or_default();
                let same = read.iter().find(|(dimension, _)| *dimension == unit.dimension);
                if let Some((_, meaning)) = same {
                    assert_eq!(meaning.factor, known.factor, "{spelling}");
                    agreed += 1;
                }
            }
        }
        assert!(agreed > 80, "{agreed}");
    }

    #[test]
    fn rule_8_7_a_unit_that_only_an_own_metric_has_takes_others_like_it() {
        let registry = Registry::builtin().unwrap();
        let mut traits = registry.get("Weight").unwrap().metric.clone().unwrap();
        traits.unit = Some("kN.m".to_owned());
        let converted = registry.units().convert(1500.0, "J", &traits, "Metric/x");
        assert_eq!(converted, Ok(1.5));
        assert!(registry.units().convert(1.0, "kg", &traits, "Metric/x").is_err());
    }

    #[test]
    fn rule_8_7_another_dimension_is_refused() {
        for (metric, unit) in [
            ("StepCount", "kg"),
            ("StepCount", "strokes"),
            ("BodyTemperature", "mmHg"),
            ("BloodKetones", "kg"),
            ("HeartRate", "%"),
        ] {
            assert!(
                matches!(
                    convert(metric, 10.0, unit),
                    Err(UnitError::OtherDimension { .. } | UnitError::Unknown { .. })
                ),
                "{metric} in {unit}"
            );
        }
        assert!(matches!(
            convert("Weight", 10.0, "blobs"),
            Err(UnitError::Unknown { .. })
        ));
        assert!(matches!(
            convert("Weight", f64::MAX, "st"),
            Err(UnitError::TooLarge { .. })
        ));
    }

    #[test]
    fn rule_8_7_every_metric_takes_its_own_unit_in_both_spellings() {
        let registry = Registry::builtin().unwrap();
        for data_type in registry
            .types()
            .iter()
            .filter(|data_type| data_type.api_version == crate::model::registry::ApiVersion::V0)
        {
            let Some(traits) = &data_type.metric else { continue };
            for spelling in [traits.unit.as_deref().unwrap(), traits.ucum.as_deref().unwrap()] {
                assert_eq!(
                    registry
                        .units()
                        .convert(250.0, spelling, traits, data_type.id.as_str()),
                    Ok(250.0),
                    "{} in {spelling}",
                    data_type.id
                );
            }
        }
    }
}
