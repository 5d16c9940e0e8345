//! Data directories that `almanac backup` made: they are used once they are complete, with what is in them,
//! and with nothing else.
//!
//! Whoever serves a copy names its directory, and may not think of a catalogue or an object store that the
//! environment or the file still names. These would take the place of the copied ones: the copy would be
//! taken for damaged, or the live installation for the copy. A backup that was killed is no installation, and
//! one made in its place would look like a backup of nobody.

use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::store::objects::ObjectStoreSettings;
use crate::upkeep::backup::{CATALOGUE_FILE, COPY_MARK, OBJECTS_FOLDER, UNFINISHED_CATALOGUE};

use super::settings::given::GivenSettings;
use super::settings::{Settings, SettingsError};

/// Refuses a copy that was never completed.
pub(super) fn refuse_unfinished(settings: &Settings) -> Result<(), SettingsError> {
    let unfinished = settings.data_dir.join(UNFINISHED_CATALOGUE);
    if !unfinished.exists() {
        return Ok(());
    }
    Err(SettingsError::Unfinished {
        directory: settings.data_dir.clone(),
        sign: unfinished,
    })
}

/// Refuses a copy together with a catalogue or objects from elsewhere.
pub(super) fn refuse_what_is_elsewhere(
    given: &GivenSettings,
    settings: &Settings,
) -> Result<(), SettingsError> {
    let directory = &settings.data_dir;
    let mark = directory.join(COPY_MARK);
    if !mark.exists() {
        return Ok(());
    }
    let outside = |name: &str, own: String| {
        let setting = given.setting(name)?;
        Err(SettingsError::Apart(format!(
            "{} holds a backup, whose catalogue and objects are in it, but {} is {:?} ({}): unset it, or set \
             it to {own:?}; if the backup is to be used with that all the same, remove {} first",
            directory.display(),
            setting.entry.name,
            setting.shown(),
            setting.place(),
            mark.display()
        )))
    };
    let objects = directory.join(OBJECTS_FOLDER);
    if !matches!(&settings.objects, ObjectStoreSettings::Local(path) if is_same(path, &objects)) {
        return outside("object_store", objects.display().to_string());
    }
    let catalogue = directory.join(CATALOGUE_FILE);
    let file = Catalog::file_at(&settings.database_url).ok().flatten();
    if !file.is_some_and(|file| is_same(&file, &catalogue)) {
        return outside("database_url", format!("sqlite://{}", catalogue.display()));
    }
    Ok(())
}

/// Whether two paths lead to the same place, which need not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    place(one) == place(other)
}

/// Whether a path, of which the end need not exist, leads into a directory.
pub(super) fn is_within(path: &Path, directory: &Path) -> bool {
    let (Ok(path), Ok(directory)) = (std::path::absolute(path), directory.canonicalize()) else {
        return false;
    };
    let mut existing = path
        .ancestors()
        .filter_map(|ancestor| ancestor.canonicalize().ok());
    existing
        .next()
        .is_some_and(|nearest| nearest.starts_with(directory))
}

fn place(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = parent.canonicalize()
    {
        return parent.join(name);
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::settings::given::Sources;

    /// What is said of a directory, with variables and a file beside it.
    fn told(directory: &Path, variables: &[(&str, &str)], file: &str) -> Option<String> {
        let flag = |name: &str| (name == "data_dir").then(|| directory.display().to_string());
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let given = GivenSettings::gathered(&Sources {
            flag: &flag,
            variable: &variable,
            file: Some(("almanac.toml".into(), file.to_owned())),
        })
        .unwrap();
        let settings = Settings::from_given(&given).unwrap();
        let refused = refuse_what_is_elsewhere(&given, &settings).err();
        refused.map(|error| error.to_string())
    }

    #[test]
    fn a_copy_that_was_never_completed_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let flag = |name: &str| (name == "data_dir").then(|| home.path().display().to_string());
        let given = GivenSettings::gathered(&Sources {
            flag: &flag,
            variable: &|_| None,
            file: None,
        })
        .unwrap();
        let settings = Settings::from_given(&given).unwrap();
        assert!(refuse_unfinished(&settings).is_ok());
        std::fs::write(home.path().join(UNFINISHED_CATALOGUE), "").unwrap();
        let refused = refuse_unfinished(&settings).unwrap_err().to_string();
        assert!(refused.contains("was not finished"), "{refused}");
    }

    #[test]
    fn a_path_is_within_a_directory_by_where_it_leads() {
        let home = tempfile::tempdir().unwrap();
        let objects = home.path().join("objects");
        assert!(!is_within(&objects, &objects), "there is none");
        std::fs::create_dir(&objects).unwrap();
        std::os::unix::fs::symlink(&objects, home.path().join("link")).unwrap();
        for (path, expected) in [
            ("objects", true),
            ("objects/new", true),
            ("objects/new/newer", true),
            ("link/new/newer", true),
            ("objects/../new", false),
            ("objects-2", false),
            ("", false),
        ] {
            assert_eq!(is_within(&home.path().join(path), &objects), expected, "{path}");
        }
    }

    #[test]
    fn a_copy_is_used_with_what_is_in_it_and_with_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = [
            (("ALMANAC_OBJECT_STORE", "/store"), "object_store"),
            (("ALMANAC_OBJECT_STORE", "s3://bucket/prefix"), "object_store"),
            (
                ("ALMANAC_DATABASE_URL", "postgres://localhost/almanac"),
                "database_url",
            ),
            (
                ("ALMANAC_DATABASE_URL", "sqlite:///srv/catalogue.db"),
                "database_url",
            ),
        ];
        for (variable, _) in elsewhere {
            assert_eq!(told(home.path(), &[variable], ""), None);
        }
        std::fs::write(home.path().join(COPY_MARK), "").unwrap();
        for (variable, name) in elsewhere {
            let said = told(home.path(), &[variable], "").unwrap();
            let origin = format!("(environment {})", variable.0);
            assert!(said.contains(name) && said.contains(&origin), "{said}");
        }
        let said = told(home.path(), &[], "object_store = '/store'").unwrap();
        assert!(said.contains("(file almanac.toml)"), "{said}");
        assert_eq!(told(home.path(), &[], ""), None);
        let objects = home.path().join("./objects").display().to_string();
        let catalogue = format!("sqlite://{}", home.path().join("catalogue.db").display());
        let own = [
            ("ALMANAC_OBJECT_STORE", objects.as_str()),
            ("ALMANAC_DATABASE_URL", catalogue.as_str()),
        ];
        assert_eq!(told(home.path(), &own, ""), None);
    }
}
