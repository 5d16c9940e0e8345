//! The meaning of the stages of sleep, and sets of stages.

use std::fmt::Write as _;

use crate::model::sleep::SleepStage;

/// The table of stages, by number.
#[derive(Clone, Debug)]
pub struct StageTable {
    stages: Vec<SleepStage>,
}

impl StageTable {
    #[must_use]
    pub fn new(stages: &[SleepStage]) -> Self {
        let mut stages = stages.to_vec();
        stages.sort_by_key(|stage| stage.stage);
        Self { stages }
    }

    #[must_use]
    pub fn get(&self, number: i64) -> Option<&SleepStage> {
        let place = self
            .stages
            .binary_search_by_key(&number, |stage| stage.stage)
            .ok()?;
        self.stages.get(place)
    }

    #[must_use]
    pub fn is_asleep(&self, number: i64) -> bool {
        self.get(number).is_some_and(|stage| stage.is_asleep)
    }

    #[must_use]
    pub fn is_in_bed(&self, number: i64) -> bool {
        self.get(number).is_some_and(|stage| stage.is_in_bed)
    }

    /// The stage of being in bed.
    #[must_use]
    pub fn in_bed(&self) -> i64 {
        self.stages
            .iter()
            .find(|stage| stage.is_in_bed)
            .map_or(0, |stage| stage.stage)
    }

    /// `0 (in_bed), 1 (awake), …`, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        let mut text = String::new();
        for stage in &self.stages {
            let separator = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{} ({})", stage.stage, stage.name);
        }
        text
    }
}

/// Some stages, by number. Order and repetition make no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StageSet(Vec<i64>);

impl StageSet {
    #[must_use]
    pub fn contains(&self, stage: i64) -> bool {
        self.0.binary_search(&stage).is_ok()
    }
}

impl FromIterator<i64> for StageSet {
    fn from_iter<I: IntoIterator<Item = i64>>(stages: I) -> Self {
        let mut stages: Vec<i64> = stages.into_iter().collect();
        stages.sort_unstable();
        stages.dedup();
        Self(stages)
    }
}
