//! What a report is computed from, and which checks look at which part of it.
//!
//! Knows the checks and what each needs; must not know how the data is read.

use crate::model::ids::PersonId;

use super::days::{Daily, Days};
use super::draft::Look;
use super::metric::{HEART_RATE_VARIABILITY, METRICS, Metric, RESTING_HEART_RATE, SLEEP, STEPS};
use super::new_place::VisitedPlaces;
use super::nights::Nights;
use super::report::{Kind, Outcome, Report, Skipped};
use super::{changes, new_place, nights, streak, unusual};

/// The metrics whose weeks are compared.
const ACTIVITY: [&str; 3] = [STEPS, "ActiveCaloriesBurned", "WatchExerciseTime"];

/// A person's targets, where they set any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Targets {
    pub sleep_hours: Option<f64>,
    pub daily_steps: Option<f64>,
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
    pub visited_places: Option<VisitedPlaces>,
    pub targets: Targets,
}

impl Material {
    /// The report to `person`.
    #[must_use]
    pub fn report(&self, person: PersonId) -> Report {
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
            Kind::NewPlace => {
                let none = VisitedPlaces::default();
                let visited = self.visited_places.as_ref().unwrap_or(&none);
                vec![new_place::new_place(look, visited)]
            }
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
