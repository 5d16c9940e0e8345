//! Settings of how much each person may store.

use super::error::SettingsError;
use super::given::GivenSettings;
use super::parse;
use crate::people::limits::PersonLimits;

pub(super) fn limits(given: &GivenSettings) -> Result<PersonLimits, SettingsError> {
    let setting = |name| given.setting(name);
    Ok(PersonLimits {
        annotations: parse::number(setting("limit_annotations")?, 0)?,
        tags: parse::number(setting("limit_tags")?, 0)?,
        reflections: parse::number(setting("limit_reflections")?, 0)?,
        shares: parse::number(setting("limit_shares")?, 0)?,
        groups: parse::number(setting("limit_groups")?, 0)?,
        definitions: parse::number(setting("limit_definitions")?, 0)?,
        sources: parse::number(setting("limit_sources")?, 0)?,
        keys: parse::number(setting("limit_keys")?, 0)?,
        sessions: parse::number(setting("limit_sessions")?, 1)?,
        files: parse::number(setting("limit_files")?, 0)?,
        exports: parse::number(setting("limit_exports")?, 1)?,
        frames: parse::number(setting("limit_frames")?, 1)?,
        file_bytes: parse::size(setting("limit_file_bytes")?)? as u64,
        all_file_bytes: parse::size(setting("limit_all_file_bytes")?)? as u64,
    })
}
