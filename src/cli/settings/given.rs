//! The texts given for settings, and where: flags beat the environment, the environment beats the file.

use std::fmt;
use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::passwords::{is_understood, without_passwords};
use super::table::{Entry, SETTINGS, named};

/// Stands for a value that is not shown.
const HIDDEN: &str = "(hidden)";

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag,
    Environment,
    File(PathBuf),
    Default,
    /// Nobody set it; it follows from another setting.
    Follows(&'static str),
}

/// A setting and the text given for it.
#[derive(Clone, Debug)]
pub struct GivenSetting {
    pub entry: &'static Entry,
    pub text: String,
    pub origin: Origin,
}

/// All settings, each with its value as text.
#[derive(Clone, Debug)]
pub struct GivenSettings(pub(super) Vec<GivenSetting>);

/// The sources of values. Functions, so that no test depends on the machine it runs on.
pub struct Sources<'a> {
    pub flag: &'a dyn Fn(&str) -> Option<String>,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The file's path and content.
    pub file: Option<(PathBuf, String)>,
}

impl GivenSettings {
    pub fn gathered(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let file = match &sources.file {
            Some((path, text)) => Some((path, file_values(path, text)?)),
            None => None,
        };
        let setting = |entry: &'static Entry| {
            if let Some(text) = (sources.flag)(entry.name) {
                return GivenSetting {
                    entry,
                    text,
                    origin: Origin::Flag,
                };
            }
            // Scripts set a variable to the empty string to leave it out.
            if let Some(text) = (sources.variable)(entry.variable).filter(|text| !text.is_empty()) {
                return GivenSetting {
                    entry,
                    text,
                    origin: Origin::Environment,
                };
            }
            if let Some((path, values)) = &file
                && let Some((_, text)) = values.iter().find(|(name, _)| name == entry.name)
            {
                return GivenSetting {
                    entry,
                    text: text.clone(),
                    origin: Origin::File((*path).clone()),
                };
            }
            GivenSetting {
                entry,
                text: entry.default.to_owned(),
                origin: Origin::Default,
            }
        };
        Ok(Self(SETTINGS.iter().map(setting).collect()))
    }

    #[must_use]
    pub fn as_slice(&self) -> &[GivenSetting] {
        &self.0
    }

    /// The text given for `name`, or its default.
    pub fn setting(&self, name: &str) -> Result<&GivenSetting, SettingsError> {
        self.0
            .iter()
            .find(|setting| setting.entry.name == name)
            .ok_or_else(|| SettingsError::Unlisted(name.to_owned()))
    }
}

impl GivenSetting {
    /// The value, unless it is empty.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        Some(self.text.trim()).filter(|text| !text.is_empty())
    }

    /// The value without secrets and without passwords in addresses. In an address that is not understood a
    /// password may be anywhere, so none of it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.value() {
            None => "-".to_owned(),
            Some(_) if self.entry.secret => HIDDEN.to_owned(),
            Some(text) if self.entry.address && !is_understood(text) => HIDDEN.to_owned(),
            Some(text) => without_passwords(text),
        }
    }

    pub(super) fn wrong(&self, expected: impl Into<String>) -> SettingsError {
        SettingsError::Value {
            name: self.entry.name,
            origin: self.place(),
            // In quotes, where nothing is an empty text.
            value: self.value().map(|_| self.shown()).unwrap_or_default(),
            expected: expected.into(),
        }
    }

    /// Where it was given, in words.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.origin {
            Origin::Flag => format!("flag --{}", self.entry.flag),
            Origin::Environment => format!("environment {}", self.entry.variable),
            Origin::File(path) => format!("file {}", path.display()),
            Origin::Default => "default".to_owned(),
            Origin::Follows(name) => format!("default, from {name}"),
        }
    }
}

impl fmt::Display for GivenSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<(&str, String, String)> = self
            .0
            .iter()
            .map(|setting| (setting.entry.name, setting.shown(), setting.place()))
            .collect();
        let name_width = shown
            .iter()
            .map(|(name, ..)| name.len())
            .max()
            .unwrap_or_default();
        let value_width = shown
            .iter()
            .map(|(_, value, _)| value.chars().count())
            .max()
            .unwrap_or_default();
        for (name, value, place) in shown {
            writeln!(formatter, "{name:name_width$}  {value:value_width$}  {place}")?;
        }
        Ok(())
    }
}

fn file_values(path: &Path, text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let malformed = |reason: String| SettingsError::File {
        path: path.to_owned(),
        reason,
    };
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| malformed(error.message().to_owned()))?;
    let mut values = Vec::with_capacity(table.len());
    for (name, value) in table {
        if named(&name).is_none() {
            return Err(SettingsError::UnknownKey {
                path: path.to_owned(),
                key: name,
            });
        }
        let text = file_value(&value).ok_or_else(|| {
            malformed(format!(
                "`{name}` must be a text, a number, a boolean or a list of texts"
            ))
        })?;
        values.push((name, text));
    }
    Ok(values)
}

fn file_value(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Some(texts?.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}
