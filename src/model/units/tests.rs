//! Rule 8.7: units that clients may write, and the values that they become.

use super::*;
use crate::model::registry::Registry;

fn convert(metric: &str, value: f64, unit: &str) -> Result<f64, UnitError> {
    let registry = Registry::builtin().unwrap();
    let traits = registry.get(metric).unwrap().metric.clone().unwrap();
    registry.units().convert(value, unit, &traits, metric)
}

#[test]
fn rule_8_7_values_become_values_of_the_types_unit() {
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
fn rule_8_7_a_sign_of_percent_means_hundredths_of_an_own_metric_in_whatever_it_is_kept() {
    let registry = Registry::builtin().unwrap();
    let mut traits = registry
        .get("BloodOxygenSaturation")
        .unwrap()
        .metric
        .clone()
        .unwrap();
    for (kept, sent, expected) in [
        ("percent", 0.97, 0.97),
        ("percent", 50.0, 50.0),
        ("{percent}", 50.0, 50.0),
        ("%", 50.0, 50.0),
        ("fraction", 50.0, 0.5),
        ("[ppth]", 5.0, 50.0),
        ("[ppm]", 0.5, 5000.0),
    ] {
        traits.unit = Some(kept.to_owned());
        for sign in ["%", "percent"] {
            let converted = registry.units().convert(sent, sign, &traits, "Metric/x").unwrap();
            assert!(
                (converted - expected).abs() < 1e-9,
                "{sent} {sign} in {kept}: {converted}"
            );
        }
    }
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
