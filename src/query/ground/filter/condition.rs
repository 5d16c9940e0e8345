//! What was asked, as plain data. Knows no type.

use super::errors::{FilterError, MOST_FILTER_BYTES, MOST_FILTERS};

/// One condition as it was requested, not yet checked against a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub field: String,
    pub operator: Comparison,
    pub value: Comparand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    /// Substring, ignoring case.
    Contains,
    /// Compared as the labels of a selector are.
    Label(LabelComparison),
    /// Equal, as part of what the type is: no caller requests it, and it is not an alternative to requested
    /// conditions on the same field.
    Belongs,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelComparison {
    Equal,
    NotEqual,
    Matches,
    MatchesNot,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Comparand {
    Null,
    Text(String),
}

/// Reads the texts of the `filter` parameter.
pub fn parse_all(texts: &[String]) -> Result<Vec<Condition>, FilterError> {
    if texts.len() > MOST_FILTERS {
        return Err(FilterError::TooMany(texts.len()));
    }
    texts.iter().map(|text| parse(text)).collect()
}

/// The fields that the caller named.
pub fn asked_fields(conditions: &[Condition]) -> impl Iterator<Item = &String> {
    conditions
        .iter()
        .filter(|condition| condition.operator != Comparison::Belongs)
        .map(|condition| &condition.field)
}

impl Comparison {
    const ALL: [(&'static str, Self); 8] = [
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        (":", Self::Equal),
        ("=", Self::Equal),
        ("<", Self::Less),
        (">", Self::Greater),
        ("~", Self::Contains),
    ];

    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::LessOrEqual => "<=",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::Contains => "~",
            Self::Label(comparison) => comparison.symbol(),
            Self::Belongs => "=",
        }
    }

    /// Whether it requires equal values (true) or unequal ones (false), or neither.
    pub(super) const fn requires_equality(self) -> Option<bool> {
        match self {
            Self::Equal | Self::Belongs | Self::Label(LabelComparison::Equal) => Some(true),
            Self::NotEqual | Self::Label(LabelComparison::NotEqual) => Some(false),
            _ => None,
        }
    }
}

impl LabelComparison {
    const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Matches => "=~",
            Self::MatchesNot => "!~",
        }
    }
}

fn parse(text: &str) -> Result<Condition, FilterError> {
    if text.len() > MOST_FILTER_BYTES {
        return Err(FilterError::TooLong);
    }
    let no_operator = || FilterError::NoOperator(text.to_owned());
    let split = text
        .find([':', '=', '!', '<', '>', '~'])
        .ok_or_else(no_operator)?;
    let (field, rest) = text.split_at(split);
    let (operator, value) = Comparison::ALL
        .into_iter()
        .find_map(|(symbol, operator)| Some((operator, rest.strip_prefix(symbol)?)))
        .ok_or_else(no_operator)?;
    if field.is_empty() {
        return Err(FilterError::NoField(text.to_owned()));
    }
    let comparand = match (operator, value) {
        (Comparison::Equal | Comparison::NotEqual, "null") => Comparand::Null,
        _ => Comparand::Text(unquote(value)),
    };
    Ok(Condition {
        field: field.to_owned(),
        operator,
        value: comparand,
    })
}

/// A JSON string literal stands for what it quotes; everything else stands for itself.
fn unquote(value: &str) -> String {
    if value.starts_with('"') {
        serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Comparand {
        Comparand::Text(value.to_owned())
    }

    #[test]
    fn rule_5_4_splits_at_the_first_operator_only() {
        let condition = parse("note:tea: green").unwrap();
        assert_eq!(
            condition,
            Condition {
                field: "note".into(),
                operator: Comparison::Equal,
                value: text("tea: green")
            }
        );
        assert_eq!(parse("value>=4").unwrap().operator, Comparison::GreaterOrEqual);
        assert_eq!(
            parse("a!=b=c").unwrap(),
            Condition {
                field: "a".into(),
                operator: Comparison::NotEqual,
                value: text("b=c")
            }
        );
    }

    #[test]
    fn rule_5_4_a_field_is_all_that_stands_before_the_operator() {
        assert_eq!(parse("My \"Field.x\":v").unwrap().field, "My \"Field.x\"");
    }

    #[test]
    fn rule_5_4_null_is_null_unless_quoted() {
        assert_eq!(parse("note:null").unwrap().value, Comparand::Null);
        assert_eq!(parse("note:\"null\"").unwrap().value, text("null"));
        assert_eq!(parse("note~null").unwrap().value, text("null"));
    }

    #[test]
    fn rule_5_4_refuses_what_is_no_condition() {
        assert!(matches!(parse("value"), Err(FilterError::NoOperator(_))));
        assert!(matches!(parse(":x"), Err(FilterError::NoField(_))));
        assert!(matches!(parse("a!b"), Err(FilterError::NoOperator(_))));
        assert_eq!(
            parse(&format!("a:{}", "x".repeat(MOST_FILTER_BYTES))),
            Err(FilterError::TooLong)
        );
        assert_eq!(
            parse_all(&vec!["a:b".to_owned(); 21]),
            Err(FilterError::TooMany(21))
        );
    }
}
