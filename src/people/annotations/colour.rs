//! Parses colours in the spellings of style sheets and stores them as `#rrggbb`.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The basic colours of style sheets, by name.
const NAMED_COLOURS: [(&str, u32); 17] = [
    ("aqua", 0x00_ff_ff),
    ("black", 0x00_00_00),
    ("blue", 0x00_00_ff),
    ("fuchsia", 0xff_00_ff),
    ("gray", 0x80_80_80),
    ("green", 0x00_80_00),
    ("lime", 0x00_ff_00),
    ("maroon", 0x80_00_00),
    ("navy", 0x00_00_80),
    ("olive", 0x80_80_00),
    ("orange", 0xff_a5_00),
    ("purple", 0x80_00_80),
    ("red", 0xff_00_00),
    ("silver", 0xc0_c0_c0),
    ("teal", 0x00_80_80),
    ("white", 0xff_ff_ff),
    ("yellow", 0xff_ff_00),
];

/// A colour: its shares of red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Colour(u32);

/// A text that is not a colour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a colour; use #rrggbb, #rgb, rgb(255, 0, 0) or one of aqua, black, blue, fuchsia, gray, \
         green, lime, maroon, navy, olive, orange, purple, red, silver, teal, white, yellow"
)]
pub struct UnknownColour(String);

impl Colour {
    /// The colour that `text` spells; case does not matter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix('#') {
            return hexadecimal(digits).map(Self);
        }
        let lower = text.to_ascii_lowercase();
        if let Some((_, colour)) = NAMED_COLOURS.iter().find(|(name, _)| *name == lower) {
            return Some(Self(*colour));
        }
        shares(lower.strip_prefix("rgb(")?.strip_suffix(')')?).map(Self)
    }
}

fn hexadecimal(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u32::from_str_radix(digits, 16).ok()?;
    match digits.len() {
        6 => Some(number),
        // Each digit represents two.
        3 => Some([8, 4, 0].into_iter().fold(0, |colour, shift| {
            (colour << 8) | (((number >> shift) & 0xf) * 0x11)
        })),
        _ => None,
    }
}

/// `255, 0, 0` or `255 0 0`.
fn shares(text: &str) -> Option<u32> {
    let parts: Vec<&str> = if text.contains(',') {
        text.split(',').map(|part| part.trim_matches(' ')).collect()
    } else {
        text.split(' ').filter(|part| !part.is_empty()).collect()
    };
    let [red, green, blue] = parts.as_slice() else {
        return None;
    };
    let share = |text: &str| {
        let is_number = (1..=3).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
        text.parse::<u8>().ok().filter(|_| is_number).map(u32::from)
    };
    Some((share(red)? << 16) | (share(green)? << 8) | share(blue)?)
}

impl TryFrom<String> for Colour {
    type Error = UnknownColour;

    fn try_from(text: String) -> Result<Self, UnknownColour> {
        Self::parse(&text).ok_or_else(|| UnknownColour(text.chars().take(64).collect()))
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> Self {
        colour.to_string()
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{:06x}", self.0)
    }
}

impl PartialSchema for Colour {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "A colour: #rrggbb, #rgb, rgb(255, 0, 0) or the name of a basic colour; kept as #rrggbb.",
            ))
            .pattern(Some(pattern()))
            .into()
    }
}

impl ToSchema for Colour {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Colour")
    }
}

/// A regular expression for what [`Colour::parse`] accepts, for engines without case-insensitive mode.
fn pattern() -> String {
    let any_case = |name: &str| -> String {
        let letter = |letter: char| format!("[{letter}{}]", letter.to_ascii_uppercase());
        name.chars().map(letter).collect()
    };
    let names: Vec<String> = NAMED_COLOURS.iter().map(|(name, _)| any_case(name)).collect();
    let share = "([01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])";
    format!(
        "^(#[0-9a-fA-F]{{6}}|#[0-9a-fA-F]{{3}}|{}|{}\\( *{share}( *, *{share} *, *{share}| +{share} \
         +{share}) *\\))$",
        names.join("|"),
        any_case("rgb"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_becomes_six_digits() {
        let kept = |text: &str| Colour::parse(text).map(|colour| colour.to_string());
        for (text, expected) in [
            ("#ff0000", "#ff0000"),
            ("#FA0", "#ffaa00"),
            ("Red", "#ff0000"),
            ("teal", "#008080"),
            ("rgb(255, 0, 10)", "#ff000a"),
            ("RGB(1 2 3)", "#010203"),
            ("rgb( 001 , 2,3 )", "#010203"),
        ] {
            assert_eq!(kept(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_pattern_and_the_reader_take_the_same() {
        let pattern = regex::Regex::new(&pattern()).unwrap();
        let texts = [
            "#ff0000",
            "#FA0",
            "#ff00",
            "#ff00000",
            "#gg0000",
            "red",
            "RED",
            "rebeccapurple",
            "",
            "#",
            "rgb()",
            "rgb(1,2,3)",
            "rgb(1, 2)",
            "rgb(1 2 3)",
            "rgb(1 2, 3)",
            "rgb(256,0,0)",
            "rgb(255,255,255)",
            "rgb(0255,0,0)",
            "rgb(001,0,0)",
            "rgb(-1,0,0)",
            "rgb(+1,0,0)",
            "rgb(1,2,3",
            "rgb(1.5,0,0)",
            " red",
            "rgb(1,,2)",
            "rgba(1,2,3,4)",
            "rgb(10%,0%,0%)",
            "#ÿÿÿ",
            "rgb( 1 , 2 , 3 )",
            "rgb( 1 2 3 )",
            "rgb(1\t2 3)",
        ];
        for text in texts {
            assert_eq!(pattern.is_match(text), Colour::parse(text).is_some(), "{text:?}");
        }
    }
}
