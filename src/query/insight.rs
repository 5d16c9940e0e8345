//! Insights: what the last days show compared with those before, and nothing that the records do not show.
//!
//! A report is computed from daily values, nights and stays, which are read through permits by the same
//! questions as the routes use, so every number can be retrieved from the routes that the finding names.
//! Where there is too little data, the report says what it skipped, and nothing is filled in. Texts are put
//! together from fixed words; equal data gives an equal report. Knows series, sleep and places; knows nothing
//! of HTTP.

mod changes;
mod days;
mod draft;
mod gather;
mod new_place;
mod nights;
pub mod report;
mod statistics;
mod streak;
#[cfg(test)]
mod tests;
mod unusual;

use crate::model::registry::MetricKind;

pub use days::Days;
pub use gather::{AskedMetric, InsightSources, SleepSource};
pub use new_place::reads as visits_read;
pub use nights::reads as nights_read;

use days::Daily;
use draft::Look;
use new_place::VisitedPlace;
use nights::Nights;
use report::{Kind, Outcome, Report, Skipped};

pub const RESTING_HEART_RATE: &str = "RestingHeartRate";
pub const HEART_RATE_VARIABILITY: &str = "HeartRateVariabilitySDNN";
pub const STEPS: &str = "StepCount";
pub const SLEEP: &str = "SleepStage";

/// The metrics whose weeks are compared.
const ACTIVITY: [&str; 3] = [STEPS, "ActiveCaloriesBurned", "WatchExerciseTime"];

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

/// A person's targets, where they set any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    pub sleep_hours: Option<f64>,
    pub daily_steps: Option<f64>,
}

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

/// Everything that a report is computed from.
#[derive(Clone, Debug)]
pub struct Material {
    pub days: Days,
    /// In the order of [`METRICS`], followed by stages of sleep; only those with data.
    pub metrics: Vec<(Metric, Daily)>,
    /// `None` where no sleep was ever recorded.
    pub nights: Option<Nights>,
    /// `None` where no place was ever recorded.
    pub visited_places: Option<Vec<VisitedPlace>>,
    pub targets: Targets,
}

impl Material {
    /// The report to `person`.
    #[must_use]
    pub fn report(&self, person: crate::model::ids::PersonId) -> Report {
        let look = Look {
            days: &self.days,
            person,
        };
        let outcomes = Kind::ALL.into_iter().flat_map(|kind| self.look_for(&look, kind));
        Report::of(outcomes.collect())
    }

    fn look_for(&self, look: &Look<'_>, kind: Kind) -> Vec<Outcome> {
        match kind {
            Kind::SleepDebt => self.by_night(|nights| nights::debt(look, nights, self.targets.sleep_hours)),
            Kind::SleepTiming => self.by_night(|nights| nights::timing(look, nights)),
            Kind::RestingHeartRateShift => self.by_metric(&[RESTING_HEART_RATE], |metric, values| {
                changes::resting_heart_rate(look, metric, values)
            }),
            Kind::HeartRateVariabilityShift => self.by_metric(&[HEART_RATE_VARIABILITY], |metric, values| {
                changes::heart_rate_variability(look, metric, values)
            }),
            Kind::StepStreak => self.by_metric(&[STEPS], |metric, values| {
                streak::steps(look, metric, values, self.targets.daily_steps)
            }),
            Kind::ActivityChange => self.by_metric(&ACTIVITY, |metric, values| {
                changes::activity(look, metric, values)
            }),
            Kind::Anomaly => {
                self.by_metric(&METRICS, |metric, values| unusual::anomaly(look, metric, values))
            }
            Kind::Record => self.by_metric(&METRICS, |metric, values| unusual::record(look, metric, values)),
            Kind::DataGap => {
                let mut types = METRICS.to_vec();
                types.push(SLEEP);
                self.by_metric(&types, |metric, values| unusual::data_gap(look, metric, values))
            }
            Kind::NewPlace => vec![new_place::new_place(
                look,
                self.visited_places.as_deref().unwrap_or_default(),
            )],
        }
    }

    fn by_night(&self, look: impl Fn(&Nights) -> Outcome) -> Vec<Outcome> {
        let none = Nights::of(&self.days, &[]);
        vec![look(self.nights.as_ref().unwrap_or(&none))]
    }

    /// The outcomes for those of the named metrics that have data; if none has, what such a one would need.
    fn by_metric(&self, names: &[&str], look: impl Fn(&Metric, &Daily) -> Outcome) -> Vec<Outcome> {
        let known = self
            .metrics
            .iter()
            .filter(|(metric, _)| names.contains(&metric.id.as_str()));
        let outcomes: Vec<Outcome> = known.map(|(metric, values)| look(metric, values)).collect();
        if outcomes.is_empty() {
            return vec![look_at_nothing(names, look)];
        }
        outcomes
    }
}

/// The outcome for a metric without data: one of the named ones, whichever that is if they are several.
fn look_at_nothing(names: &[&str], look: impl Fn(&Metric, &Daily) -> Outcome) -> Outcome {
    let only = match names {
        [only] => Some((*only).to_owned()),
        _ => None,
    };
    let metric = Metric {
        id: only.clone().unwrap_or_default(),
        unit: String::new(),
        kind: None,
    };
    match look(&metric, &Daily::default()) {
        Outcome::Skipped(skipped) => Outcome::Skipped(Skipped {
            metric: only,
            ..skipped
        }),
        outcome => outcome,
    }
}
