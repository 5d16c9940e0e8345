//! The stages of sleep: what each number means. The table is data, so that a deployment may number the stages
//! differently.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const STAGES: &str = include_str!("../../schemas/sleep_stages.json");

/// One stage, as `sleep_stage_metadata` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SleepStage {
    pub stage: i64,
    pub name: String,
    pub label: String,
    /// Position in a hypnogram, from top to bottom; null for a stage that could be any.
    #[schema(required)]
    pub depth: Option<i64>,
    pub is_asleep: bool,
    pub is_in_bed: bool,
    /// Where two stages overlap, the one with the greater priority wins.
    pub priority: i64,
    /// How other systems write the stage: system to codes.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub imports: serde_json::Map<String, serde_json::Value>,
}

/// All stages, by number.
pub fn stages() -> Result<Vec<SleepStage>, serde_json::Error> {
    serde_json::from_str(STAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_3_1_unknown_sleep_yields_to_known_stages_and_being_in_bed_to_all() {
        let stages = stages().unwrap();
        let numbers: Vec<_> = stages
            .iter()
            .map(|stage| (stage.stage, stage.name.as_str(), stage.priority))
            .collect();
        assert_eq!(
            numbers,
            [
                (0, "in_bed", 0),
                (1, "awake", 2),
                (2, "unknown", 1),
                (3, "light", 2),
                (4, "deep", 2),
                (5, "rem", 2)
            ]
        );
        assert!(stages.iter().all(|stage| stage.is_asleep == (stage.stage >= 2)));
    }
}
