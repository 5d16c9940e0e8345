//! The source a record comes from, and how far it is preferred to others.
//!
//! The rules are `schemas/sources.json`, read once, so that a new kind of device needs no code.
//! Classification borrows its facts and allocates nothing, because every row of every upload is classified.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const RULES: &str = include_str!("../../schemas/sources.json");

/// The kind of source that made a record. The number is stored; lower is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(i8)]
pub enum SourceClass {
    Hand = 2,
    Worn = 3,
    Phone = 4,
    Other = 5,
    Import = 6,
}

impl SourceClass {
    /// The number stored with each row.
    #[must_use]
    pub const fn code(self) -> i8 {
        self as i8
    }
}

/// What a record says about its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceFacts<'a> {
    /// A member of `extras` says that a person typed it in: see [`SourceRules::mark`].
    pub by_hand: bool,
    /// A member of `extras` says that it was imported.
    pub imported: bool,
    /// `device_properties.model`
    pub device_model: Option<&'a str>,
    /// `device_properties.hardwareVersion`
    pub hardware_version: Option<&'a str>,
    /// `source_properties.productType`
    pub product_type: Option<&'a str>,
    /// `source_properties.sourceBundleIdentifier`
    pub bundle_identifier: Option<&'a str>,
    /// `source_properties.name`
    pub source_name: Option<&'a str>,
    /// The first of `sources`.
    pub first_source: Option<&'a str>,
}

/// Why the rules cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the rules for sources cannot be read: {0}")]
pub struct SourceRulesError(#[from] serde_json::Error);

/// The rules that find the class of a record's source.
#[derive(Debug, Deserialize)]
pub struct SourceRules {
    classes: Vec<ClassRule>,
    otherwise: SourceClass,
}

#[derive(Debug, Deserialize)]
struct ClassRule {
    class: SourceClass,
    when: Vec<Sign>,
}

/// One sign of a class.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sign {
    /// A member of `extras` is set, to one of these values if any are listed.
    Extras {
        extras: Vec<String>,
        #[serde(default)]
        equals: Vec<Value>,
    },
    /// One of the fields begins with, or contains, one of these words, in any case.
    Words {
        fields: Vec<FactField>,
        #[serde(default)]
        begins_with: Vec<String>,
        #[serde(default)]
        contains: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum FactField {
    #[serde(rename = "device_properties.model")]
    DeviceModel,
    #[serde(rename = "device_properties.hardwareVersion")]
    HardwareVersion,
    #[serde(rename = "source_properties.productType")]
    ProductType,
}

impl SourceFacts<'_> {
    /// What members of `extras` say, as a number: the same for records whose extras say the same of their
    /// source.
    #[must_use]
    pub fn marks(&self) -> u32 {
        u32::from(self.by_hand) | u32::from(self.imported) << 1
    }
}

impl SourceRules {
    /// The rules that come with the product.
    pub fn builtin() -> Result<Self, SourceRulesError> {
        Ok(serde_json::from_str(RULES)?)
    }

    /// Whether some value of this member of `extras` says something of the source.
    #[must_use]
    pub fn is_mark(&self, member: &str) -> bool {
        let mut signs = self.classes.iter().flat_map(|rule| &rule.when);
        signs.any(|sign| match sign {
            Sign::Extras { extras, .. } => extras.iter().any(|name| name == member),
            Sign::Words { .. } => false,
        })
    }

    /// Sets in `facts` what one member of `extras` says.
    pub fn mark(&self, facts: &mut SourceFacts<'_>, member: &str, value: &Value) {
        for rule in &self.classes {
            let says_so = rule.when.iter().any(|sign| match sign {
                Sign::Extras { extras, equals } => {
                    let is_set = if equals.is_empty() {
                        !value.is_null()
                    } else {
                        equals.iter().any(|known| is_same(known, value))
                    };
                    is_set && extras.iter().any(|name| name == member)
                }
                Sign::Words { .. } => false,
            });
            match rule.class {
                SourceClass::Hand if says_so => facts.by_hand = true,
                SourceClass::Import if says_so => facts.imported = true,
                _ => {}
            }
        }
    }

    /// The class of a record's source. The first rule that fits decides.
    #[must_use]
    pub fn classify(&self, facts: &SourceFacts<'_>) -> SourceClass {
        self.classes
            .iter()
            .find(|rule| rule.fits(facts))
            .map_or(self.otherwise, |rule| rule.class)
    }
}

impl ClassRule {
    fn fits(&self, facts: &SourceFacts<'_>) -> bool {
        self.when.iter().any(|sign| match sign {
            Sign::Extras { .. } => match self.class {
                SourceClass::Hand => facts.by_hand,
                SourceClass::Import => facts.imported,
                _ => false,
            },
            Sign::Words {
                fields,
                begins_with,
                contains,
            } => fields
                .iter()
                .filter_map(|field| field.value_in(facts))
                .any(|text| {
                    begins_with
                        .iter()
                        .any(|word| begins_with_any_case(text.as_bytes(), word))
                        || contains.iter().any(|word| {
                            (0..text.len()).any(|at| {
                                begins_with_any_case(text.as_bytes().get(at..).unwrap_or_default(), word)
                            })
                        })
                }),
        })
    }
}

impl FactField {
    const fn value_in<'a>(self, facts: &SourceFacts<'a>) -> Option<&'a str> {
        match self {
            Self::DeviceModel => facts.device_model,
            Self::HardwareVersion => facts.hardware_version,
            Self::ProductType => facts.product_type,
        }
    }
}

/// Whether two values are equal. Numbers are compared however they are written.
fn is_same(known: &Value, value: &Value) -> bool {
    match (known.as_f64(), value.as_f64()) {
        (Some(known), Some(value)) => known.total_cmp(&value).is_eq(),
        _ => known == value,
    }
}

fn begins_with_any_case(text: &[u8], word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
}

/// The key of a source within a person: its bundle with the product where given, else the first of `sources`,
/// else its name, else nothing.
#[must_use]
pub fn source_key<'a>(facts: &SourceFacts<'a>) -> Cow<'a, str> {
    let given = |text: Option<&'a str>| text.filter(|text| !text.is_empty());
    match (given(facts.bundle_identifier), given(facts.product_type)) {
        (Some(bundle), Some(product)) => Cow::Owned(format!("{bundle}/{product}")),
        (Some(bundle), None) => Cow::Borrowed(bundle),
        (None, _) => Cow::Borrowed(
            given(facts.first_source)
                .or(given(facts.source_name))
                .unwrap_or_default(),
        ),
    }
}

/// The product in a source key, if there is one.
#[must_use]
pub fn product_of(key: &str) -> Option<&str> {
    let (bundle, product) = key.split_once('/')?;
    (!bundle.is_empty() && !product.is_empty()).then_some(product)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(facts: SourceFacts<'_>) -> SourceClass {
        SourceRules::builtin().unwrap().classify(&facts)
    }

    #[test]
    fn rule_1_4e_the_first_sign_that_fits_decides() {
        let watch = SourceFacts {
            product_type: Some("Watch6,2"),
            ..SourceFacts::default()
        };
        assert_eq!(class(watch), SourceClass::Worn);
        assert_eq!(
            class(SourceFacts {
                by_hand: true,
                imported: true,
                ..watch
            }),
            SourceClass::Hand
        );
        assert_eq!(
            class(SourceFacts {
                imported: true,
                ..watch
            }),
            SourceClass::Import
        );
        assert_eq!(
            class(SourceFacts {
                device_model: Some("RING Gen3"),
                ..SourceFacts::default()
            }),
            SourceClass::Worn
        );
        assert_eq!(
            class(SourceFacts {
                hardware_version: Some("strap-4"),
                ..SourceFacts::default()
            }),
            SourceClass::Worn
        );
        assert_eq!(
            class(SourceFacts {
                product_type: Some("iPhone15,2"),
                ..SourceFacts::default()
            }),
            SourceClass::Phone
        );
        assert_eq!(
            class(SourceFacts {
                device_model: Some("Some SmartPhone"),
                ..SourceFacts::default()
            }),
            SourceClass::Phone
        );
        assert_eq!(
            class(SourceFacts {
                device_model: Some("iPad"),
                ..SourceFacts::default()
            }),
            SourceClass::Phone
        );
        assert_eq!(
            class(SourceFacts {
                device_model: Some("Smartwatch"),
                ..SourceFacts::default()
            }),
            SourceClass::Other
        );
        assert_eq!(
            class(SourceFacts {
                source_name: Some("watch"),
                ..SourceFacts::default()
            }),
            SourceClass::Other
        );
        assert_eq!(class(SourceFacts::default()), SourceClass::Other);
    }

    #[test]
    fn rule_1_4e_extras_mark_what_was_typed_or_imported() {
        let rules = SourceRules::builtin().unwrap();
        let marked = |member: &str, value: Value| {
            let mut facts = SourceFacts::default();
            rules.mark(&mut facts, member, &value);
            (facts.by_hand, facts.imported)
        };
        assert_eq!(marked("was_user_entered", json!(true)), (true, false));
        assert_eq!(marked("HKWasUserEntered", json!(1)), (true, false));
        assert_eq!(marked("was_user_entered", json!(1.0)), (true, false));
        assert_eq!(marked("was_user_entered", json!(1.5)), (false, false));
        assert_eq!(marked("was_user_entered", json!("1")), (false, false));
        assert_eq!(marked("HKWasUserEntered", json!(0)), (false, false));
        assert_eq!(marked("HKWasUserEntered", json!(0.0)), (false, false));
        assert_eq!(marked("was_user_entered", json!(false)), (false, false));
        assert_eq!(marked("imported_from", json!("export.csv")), (false, true));
        assert_eq!(marked("imported_from", json!(null)), (false, false));
        assert_eq!(marked("mood", json!(true)), (false, false));
    }

    #[test]
    fn rule_1_4e_classes_are_stored_in_the_order_of_preference() {
        let classes = [
            SourceClass::Hand,
            SourceClass::Worn,
            SourceClass::Phone,
            SourceClass::Other,
            SourceClass::Import,
        ];
        assert_eq!(classes.map(SourceClass::code), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn rule_1_4e_a_source_is_its_bundle_then_the_first_of_sources_then_its_name() {
        let all = SourceFacts {
            bundle_identifier: Some("com.example.health"),
            product_type: Some("Watch6,2"),
            first_source: Some("com.example.app"),
            source_name: Some("Watch"),
            ..SourceFacts::default()
        };
        assert_eq!(source_key(&all), "com.example.health/Watch6,2");
        assert_eq!(
            source_key(&SourceFacts {
                product_type: None,
                ..all
            }),
            "com.example.health"
        );
        assert_eq!(
            source_key(&SourceFacts {
                bundle_identifier: None,
                ..all
            }),
            "com.example.app"
        );
        assert_eq!(
            source_key(&SourceFacts {
                bundle_identifier: None,
                first_source: None,
                ..all
            }),
            "Watch"
        );
        assert_eq!(source_key(&SourceFacts::default()), "");
    }
}
