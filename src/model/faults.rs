//! What is wrong with a request, and where: the items of a 422 answer. Created where the error is found, and
//! passed up unchanged.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::excerpt::{beginning, is_short, without_middle};

/// After this many faults the search stops: the caller has enough to mend.
pub const MOST_FAULTS: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The path to it, such as body, line 3, `value`.
    pub loc: Vec<LocPart>,
    pub message: String,
    /// A word that programs can branch on.
    pub kind: &'static str,
    /// The value in question, where showing it helps.
    value: Option<Value>,
}

/// One step on the way to what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocPart {
    Name(String),
    Index(usize),
}

impl Fault {
    pub fn new<P: Into<LocPart>>(
        loc: impl IntoIterator<Item = P>,
        kind: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            loc: loc.into_iter().map(Into::into).collect(),
            message: without_middle(message.into()),
            kind,
            value: None,
        }
    }

    /// The value that a JSON reader refused, at `path` below `loc`.
    #[must_use]
    pub fn misread(mut loc: Vec<LocPart>, path: &Path, error: &serde_json::Error) -> Self {
        loc.extend(path.iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(LocPart::Index(*index)),
            Segment::Map { key } => Some(LocPart::Name(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        }));
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'));
        match missing {
            Some(name) => {
                loc.push(LocPart::from(name));
                Self::new(loc, "missing", "this member is required")
            }
            None => Self::new(loc, "value_error", in_words_of_json(message)),
        }
    }

    /// Shows the value in question, unless it is long.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<Value>) -> Self {
        let value: Value = value.into();
        let is_shown = match &value {
            Value::String(text) => is_short(text),
            other => is_short(&other.to_string()),
        };
        self.value = is_shown.then_some(value);
        self
    }
}

/// What a reader expected and found, without its words for types of Rust.
fn in_words_of_json(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let is_object = |expected: &str| {
        let kinds = ["a map", "struct ", "internally tagged enum "];
        kinds.iter().any(|kind| expected.starts_with(kind))
    };
    let expected = match expected {
        "a sequence" => "an array",
        "string or map" => "a string",
        object if is_object(object) => "an object",
        other => other,
    };
    match found {
        "invalid type: sequence" => format!("invalid type: array, expected {expected}"),
        "invalid type: map" => format!("invalid type: object, expected {expected}"),
        found => match found.strip_prefix("unknown variant ") {
            Some(name) => format!("unknown value {name}, expected {expected}"),
            None => format!("{found}, expected {expected}"),
        },
    }
}

/// The first of the faults in `place`, such as `body`. Where there may be others, the last one says so:
/// whoever mends what is listed would otherwise take the whole for mended.
#[must_use]
pub fn first_of(mut faults: Vec<Fault>, place: &str) -> Vec<Fault> {
    if faults.len() >= MOST_FAULTS {
        faults.truncate(MOST_FAULTS);
        let message = format!(
            "only the first {MOST_FAULTS} faults are listed; what follows them was not examined and may have \
             more"
        );
        faults.push(Fault::new([place], "more_faults", message));
    }
    faults
}

impl From<&str> for LocPart {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for LocPart {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for LocPart {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl Serialize for LocPart {
    /// Always a string: the interface promises an array of strings. Of the long name of a member, the
    /// beginning.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(&beginning(name)),
            Self::Index(index) => serializer.collect_str(index),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3 + usize::from(self.value.is_some())))?;
        map.serialize_entry("loc", &self.loc)?;
        map.serialize_entry("msg", &self.message)?;
        map.serialize_entry("type", self.kind)?;
        if let Some(value) = &self.value {
            map.serialize_entry("value", value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_reads_as_loc_msg_and_type() {
        let place: [LocPart; 3] = ["body".into(), 3_usize.into(), "value".into()];
        let fault = Fault::new(place, "unit", "unknown unit").with_value("kgs");
        assert_eq!(
            serde_json::to_value(&fault).unwrap(),
            json!({"loc": ["body", "3", "value"], "msg": "unknown unit", "type": "unit", "value": "kgs"})
        );
    }

    #[test]
    fn what_a_reader_says_is_told_in_words_of_json() {
        for (said, told) in [
            (
                "unknown variant `real`, expected `integer`",
                "unknown value `real`, expected `integer`",
            ),
            (
                "invalid type: string \"x\", expected a sequence",
                "invalid type: string \"x\", expected an array",
            ),
            (
                "invalid type: map, expected a string",
                "invalid type: object, expected a string",
            ),
            (
                "invalid type: sequence, expected struct Terms",
                "invalid type: array, expected an object",
            ),
            (
                "expected at least one character",
                "expected at least one character",
            ),
        ] {
            assert_eq!(in_words_of_json(said), told);
        }
    }

    #[test]
    fn a_fault_does_not_grow_with_what_was_sent() {
        let long = "語".repeat(100_000);
        let values = [
            json!(long),
            json!([long]),
            json!({(long.as_str()): 1}),
            json!(vec![0; 500]),
        ];
        for value in values {
            let place = ["body", long.as_str(), long.as_str()];
            let fault = Fault::new(place, "unit", format!("unknown {long}; send another")).with_value(value);
            let shown = serde_json::to_value(&fault).unwrap();
            assert!(shown.get("value").is_none(), "{shown}");
            assert!(shown.to_string().len() < 4000, "{shown}");
            assert!(shown["msg"].as_str().unwrap().ends_with("; send another"));
            assert_eq!(shown["loc"][1], format!("{}…", "語".repeat(200)));
        }
        let fault = Fault::new(["body"], "scale", "wrong").with_value(json!({"min": 1}));
        assert_eq!(serde_json::to_value(&fault).unwrap()["value"], json!({"min": 1}));
    }
}
