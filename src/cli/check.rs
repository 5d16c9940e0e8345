//! `almanac check`: is everything that is stored what was stored?

use super::Failed;
use super::settings::Settings;

pub fn run(_settings: Settings, _repair: bool) -> Result<(), Failed> {
    Err(Failed::because("`check` is not available yet"))
}
