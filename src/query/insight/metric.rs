//! The metrics that reports are about, and how texts mention them.
//!
//! Knows names of types; must not know values or days.

use crate::model::registry::MetricKind;

pub const RESTING_HEART_RATE: &str = "RestingHeartRate";
pub const HEART_RATE_VARIABILITY: &str = "HeartRateVariabilitySDNN";
pub const STEPS: &str = "StepCount";
pub const SLEEP: &str = "SleepStage";

/// The metrics that are examined: those that devices keep daily. They are few, because among many some are
/// always unusual.
pub const METRICS: [&str; 20] = [
    STEPS,
    "ActiveCaloriesBurned",
    "BasalCaloriesBurned",
    "DistanceTraveledOnFoot",
    "DistanceTraveledCycling",
    "WatchExerciseTime",
    "WatchStandTime",
    "TimeInDaylight",
    "HeartRate",
    RESTING_HEART_RATE,
    "WalkingHeartRate",
    HEART_RATE_VARIABILITY,
    "RespiratoryRate",
    "BloodOxygenSaturation",
    "BodyTemperature",
    "SleepingWristTemperature",
    "VO2Max",
    "Weight",
    "WalkingSpeed",
    "EnvironmentalAudioLevel",
];

/// A metric, as it is mentioned in texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    pub id: String,
    pub unit: String,
    pub kind: Option<MetricKind>,
}

impl Metric {
    /// `resting heart rate` for `RestingHeartRate`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = String::with_capacity(self.id.len() + 4);
        let letters: Vec<char> = self.id.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let follows_small = at > 0 && letters.get(at - 1).is_some_and(|before| before.is_lowercase());
            let begins_word = letters.get(at + 1).is_some_and(|after| after.is_lowercase());
            let is_short = !begins_word && letter.is_uppercase();
            if letter.is_uppercase() && (follows_small || (at > 0 && begins_word)) {
                words.push(' ');
            }
            if is_short {
                words.push(*letter);
            } else {
                words.extend(letter.to_lowercase());
            }
        }
        words
    }

    #[must_use]
    pub fn title(&self) -> String {
        let words = self.words();
        let mut letters = words.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }
}
