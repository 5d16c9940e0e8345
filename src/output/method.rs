//! Names the forms: how callers ask for them, and which content types they have.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

use crate::model::names::{UnknownName, named};

/// The `output` parameter of a question that is answered with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputMethod {
    /// One JSON object a line; nothing at all when there are no rows.
    Ndjson,
    /// One JSON array of row objects.
    Jstable,
    /// One JSON object: column name to array of values.
    Jscolumns,
    /// Arrow IPC file (Feather v2).
    Arrow,
    /// Arrow IPC stream.
    Arrowraw,
    /// Parquet, zstd.
    Parquet,
    /// RFC 4180 with a header, quoted where needed.
    Csv,
    /// RFC 4180 with a header, every field quoted.
    Quotecsv,
    /// `csv` without what a spreadsheet would run. Another parameter selects it, so it has no name of its
    /// own.
    #[serde(skip)]
    DefusedCsv,
    /// `quotecsv` likewise.
    #[serde(skip)]
    DefusedQuotecsv,
}

named! {
    "format",
    /// The `format` parameter of questions that answer with records.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum RowFormat {
        /// One JSON array of row objects.
        #[default]
        Json = "json",
        Csv = "csv",
    }
}

impl OutputMethod {
    pub const ALL: [Self; 8] = [
        Self::Ndjson,
        Self::Jstable,
        Self::Jscolumns,
        Self::Arrow,
        Self::Arrowraw,
        Self::Parquet,
        Self::Csv,
        Self::Quotecsv,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Jstable => "jstable",
            Self::Jscolumns => "jscolumns",
            Self::Arrow => "arrow",
            Self::Arrowraw => "arrowraw",
            Self::Parquet => "parquet",
            Self::Csv | Self::DefusedCsv => "csv",
            Self::Quotecsv | Self::DefusedQuotecsv => "quotecsv",
        }
    }

    /// The form with text defused that a spreadsheet would take for a formula. Only CSV forms are affected.
    #[must_use]
    pub const fn defused(self) -> Self {
        match self {
            Self::Csv => Self::DefusedCsv,
            Self::Quotecsv => Self::DefusedQuotecsv,
            other => other,
        }
    }

    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Jstable | Self::Jscolumns => "application/json",
            Self::Arrow => "application/vnd.apache.arrow.file",
            Self::Arrowraw => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Csv | Self::Quotecsv | Self::DefusedCsv | Self::DefusedQuotecsv => {
                "text/csv; charset=utf-8"
            }
        }
    }

    /// The content type without parameters.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        self.content_type().split(';').next().unwrap_or_default()
    }

    /// The extension without the dot, for the name of a download.
    #[must_use]
    pub const fn file_extension(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Jstable | Self::Jscolumns => "json",
            Self::Arrow => "arrow",
            Self::Arrowraw => "arrows",
            Self::Parquet => "parquet",
            Self::Csv | Self::Quotecsv | Self::DefusedCsv | Self::DefusedQuotecsv => "csv",
        }
    }

    /// Whether this is an Arrow form, whose buffers can be compressed.
    #[must_use]
    pub const fn is_arrow(self) -> bool {
        matches!(self, Self::Arrow | Self::Arrowraw)
    }

    /// Whether the transport may compress it. Arrow is meant to be mapped as it is, and Parquet is compressed
    /// already.
    #[must_use]
    pub const fn is_text(self) -> bool {
        !matches!(self, Self::Arrow | Self::Arrowraw | Self::Parquet)
    }
}

impl RowFormat {
    /// The output method that encodes this format.
    #[must_use]
    pub const fn method(self) -> OutputMethod {
        match self {
            Self::Json => OutputMethod::Jstable,
            Self::Csv => OutputMethod::Csv,
        }
    }
}

impl FromStr for OutputMethod {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|method| method.name() == name)
            .ok_or_else(|| UnknownName::new("output", name, Self::ALL.map(Self::name)))
    }
}

/// Says which forms there are, whatever is sent instead of one.
impl<'de> Deserialize<'de> for OutputMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = OutputMethod;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names = OutputMethod::ALL.map(OutputMethod::name).join(", ");
                write!(formatter, "one of {names}")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<OutputMethod, E> {
                let unknown = |_| E::invalid_value(Unexpected::Str(name), &self);
                name.parse().map_err(unknown)
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

impl fmt::Display for OutputMethod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for RowFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for method in OutputMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
            assert_eq!(
                serde_json::to_value(method).unwrap(),
                serde_json::Value::from(method.name())
            );
        }
        for format in RowFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "xml".parse::<OutputMethod>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown output \"xml\"; use one of ndjson, jstable, jscolumns, arrow, arrowraw, parquet, csv, \
             quotecsv"
        );
        assert_eq!(
            "xml".parse::<RowFormat>().unwrap_err().to_string(),
            "unknown format \"xml\"; use one of json, csv"
        );
    }
}
