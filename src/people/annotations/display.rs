//! How an annotation is shown and filled in: its note, and the labels, colours and pictures of a scale's
//! steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::text::{Line, Name, Prose};
use super::colour::Colour;
use super::measurement::Nothing;

/// Texts of the steps of a scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextMapping {
    /// The text of each step.
    pub mapping: BTreeMap<Name, Line>,
}

/// Colours of the steps of a scale.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ColourMapping {
    /// The colour of each step, stored as `#rrggbb`.
    pub mapping: BTreeMap<Name, Colour>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabelMappingType {
    #[default]
    String,
}

/// What the steps of a scale are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabelMapping {
    #[serde(default)]
    pub mapping_type: LabelMappingType,
    pub string: TextMapping,
}

/// The steps of a scale as colours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ColorScaleMapping {
    pub color: ColourMapping,
}

/// The steps of a scale as pictures on colours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EmojiScaleMapping {
    pub color: ColourMapping,
    pub string: TextMapping,
}

/// How the steps of a scale look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "mapping_type", rename_all = "lowercase")]
pub enum ScaleMapping {
    Color(ColorScaleMapping),
    Emoji(EmojiScaleMapping),
}

/// How a scale is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScaleDisplay {
    #[serde(default)]
    pub label_mapping: Option<LabelMapping>,
    #[serde(default)]
    pub scale_mapping: Option<ScaleMapping>,
}

/// How an annotation is shown and filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnnotationSpec {
    /// The note that a new record begins with.
    #[serde(default)]
    pub default_note: Option<Prose>,
    /// Only a scale has this member.
    #[serde(default)]
    pub scale: Nothing,
}

/// How a scale annotation is shown and filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScaleAnnotationSpec {
    /// The note that a new record begins with.
    #[serde(default)]
    pub default_note: Option<Prose>,
    #[serde(default)]
    pub scale: Option<ScaleDisplay>,
}
