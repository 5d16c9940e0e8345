//! `almanac backup`: a copy from which the service can be started again.

use std::path::Path;

use super::Failed;
use super::settings::Settings;

pub fn run(_settings: Settings, _directory: &Path) -> Result<(), Failed> {
    Err(Failed::because("`backup` is not available yet"))
}
