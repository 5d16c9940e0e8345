//! What several conditions amount to on the rows of one type. Does not know how one of them compares.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::{Expr, lit};

use crate::model::registry::DataType;

use super::condition::{Comparison, Condition, LabelComparison};
use super::errors::FilterError;
use super::expression::bind_one;
use super::field::{field_of, unknown_field};

/// What conditions amount to on the rows of one type.
#[derive(Clone, Debug)]
pub enum Bound {
    Always,
    /// An expression over the stored columns of the type.
    When(Expr),
    /// No row can meet them.
    Never,
}

impl Bound {
    /// The condition; `None` if every row meets it.
    #[must_use]
    pub fn condition(self) -> Option<Expr> {
        match self {
            Self::Always => None,
            Self::When(condition) => Some(condition),
            Self::Never => Some(lit(false)),
        }
    }
}

/// Binds the conditions to each of several types that are read together. Each condition has to fit at least
/// one of them; on a type that lacks its field, or whose field cannot hold its value, it selects what
/// differs from that value.
pub fn bind_each(conditions: &[Condition], types: &[&DataType]) -> Result<Vec<Bound>, FilterError> {
    let mut of_types: Vec<Vec<Requirement<'_>>> = types.iter().map(|_| Vec::new()).collect();
    for condition in conditions {
        for (of_type, requirement) in of_types.iter_mut().zip(checked(condition, types)?) {
            of_type.push(requirement);
        }
    }
    Ok(of_types.into_iter().map(together).collect())
}

/// Binds the conditions to the rows of `data_type` alone, whether or not they fit it.
#[must_use]
pub fn bind(conditions: &[Condition], data_type: &DataType) -> Bound {
    let required = |condition| Requirement::of(condition, data_type).0;
    together(conditions.iter().map(required))
}

/// What a condition requires of the rows of one type.
struct Requirement<'a> {
    /// The field of an equality, which is an alternative to others on the same field.
    alternative: Option<&'a str>,
    /// `None`: no row meets it.
    expression: Option<Expr>,
}

impl<'a> Requirement<'a> {
    /// Also returns why the condition does not fit the type, if it does not.
    fn of(condition: &'a Condition, data_type: &DataType) -> (Self, Option<FilterError>) {
        let (expression, misfit) = match bind_one(condition, data_type) {
            Ok(expression) => (Some(expression), None),
            Err(misfit) => (differs(condition, data_type), Some(misfit)),
        };
        let alternative = (condition.operator == Comparison::Equal).then_some(condition.field.as_str());
        let requirement = Self {
            alternative,
            expression,
        };
        (requirement, misfit)
    }
}

/// What a condition that fits at least one of the types requires of the rows of each.
fn checked<'a>(condition: &'a Condition, types: &[&DataType]) -> Result<Vec<Requirement<'a>>, FilterError> {
    let (requirements, misfits): (Vec<_>, Vec<_>) = types
        .iter()
        .map(|data_type| Requirement::of(condition, data_type))
        .unzip();
    let fits_none: Option<Vec<FilterError>> = misfits.into_iter().collect();
    let Some(misfits) = fits_none.filter(|misfits| !misfits.is_empty()) else {
        return Ok(requirements);
    };
    // A type that has the field gives the better error.
    let is_of_value = |misfit: &FilterError| !matches!(misfit, FilterError::UnknownField { .. });
    let of_value = misfits.into_iter().find(is_of_value);
    Err(of_value.unwrap_or_else(|| unknown_field(&condition.field, types)))
}

/// Equalities on the same field are alternatives; everything else must hold together.
fn together<'a>(requirements: impl IntoIterator<Item = Requirement<'a>>) -> Bound {
    let mut bound: Vec<Requirement<'a>> = Vec::new();
    for requirement in requirements {
        match bound
            .iter_mut()
            .find(|earlier| earlier.alternative.is_some() && earlier.alternative == requirement.alternative)
        {
            Some(Requirement { expression, .. }) => {
                let either = expression.take().into_iter().chain(requirement.expression);
                *expression = either.reduce(Expr::or);
            }
            None => bound.push(requirement),
        }
    }
    let all: Option<Vec<Expr>> = bound
        .into_iter()
        .map(|requirement| requirement.expression)
        .collect();
    match all.map(|all| all.into_iter().reduce(Expr::and)) {
        None => Bound::Never,
        Some(None) => Bound::Always,
        Some(Some(condition)) => Bound::When(condition),
    }
}

/// A condition on a field that cannot hold its value: whatever the field holds differs from it.
fn differs(condition: &Condition, data_type: &DataType) -> Option<Expr> {
    let field = field_of(&condition.field, data_type)?;
    match condition.operator {
        Comparison::NotEqual if matches!(field.holds, ArrowType::List(_)) => Some(lit(true)),
        Comparison::NotEqual => Some(field.expression.is_not_null()),
        Comparison::Label(LabelComparison::NotEqual | LabelComparison::MatchesNot) => Some(lit(true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::registry::Registry;
    use crate::query::filter::parse_all;

    #[test]
    fn rule_5_4_a_condition_fits_one_of_the_types_or_the_type_with_its_field_says_why_not() {
        let registry = Registry::builtin().unwrap();
        let with_value: &DataType = registry.get("HeartRate").unwrap();
        let without: &DataType = registry.get("Note").unwrap();
        let conditions = |text: &str| parse_all(&[text.to_owned()]).unwrap();
        let bound = bind_each(&conditions("value>60"), &[without, with_value]).unwrap();
        assert!(matches!(bound.as_slice(), [Bound::Never, Bound::When(_)]));
        for types in [[with_value, without], [without, with_value]] {
            let refused = bind_each(&conditions("value>many"), &types);
            assert!(matches!(refused, Err(FilterError::WrongType { .. })));
        }
        let refused = bind_each(&conditions("nothing:1"), &[without, with_value]).unwrap_err();
        let message = refused.to_string();
        assert!(message.contains("not a field of Note, HeartRate;"), "{message}");
        assert!(message.contains("value"), "{message}");
    }
}
