//! Compares labels of a selector with the fields of a record.
//!
//! A missing label equals an empty one. Patterns match whole texts; what would take too long is refused.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::functions_nested::expr_fn::cardinality;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction_opt, split_conjunction};
use datafusion::prelude::not;
use regex::RegexBuilder;

use super::comparing::{compared, is_text, list_has, plain_text, wrong_operator};
use super::condition::{Condition, LabelComparison};
use super::errors::FilterError;
use super::field::StoredField;
use crate::model::registry::schema::PATTERN_BYTES;
use crate::model::weighed_pattern::{MadeStates, WeighedPattern};
use crate::query::ground::ended::{beside_others, refuse_ended};
use crate::query::ground::uuid_text::UuidText;

/// The condition that a field of a row must meet. It is true or false, never null.
pub(super) fn bind(
    condition: &Condition,
    comparison: LabelComparison,
    field: StoredField,
    text: &str,
) -> Result<Expr, FilterError> {
    match comparison {
        LabelComparison::Equal => equals(condition, field, text),
        LabelComparison::NotEqual => Ok(not(equals(condition, field, text)?)),
        LabelComparison::Matches => matches(condition, field, text),
        LabelComparison::MatchesNot => Ok(not(matches(condition, field, text)?)),
    }
}

/// What of a condition may be tested while rows are read from files, to skip others of their pages. Who reads
/// them reports an error as a text, from which nobody can tell a text that is too costly for its pattern from
/// a failure; so patterns wait until the rows are there.
pub fn tested_while_reading(condition: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(condition).into_iter();
    conjunction_opt(parts.filter(|part| !has_pattern(part)).cloned())
}

fn has_pattern(part: &Arc<dyn PhysicalExpr>) -> bool {
    let function = part.downcast_ref::<ScalarFunctionExpr>();
    function.is_some_and(|function| function.fun().inner().is::<TextMatches>())
        || part.children().into_iter().any(has_pattern)
}

fn equals(condition: &Condition, field: StoredField, text: &str) -> Result<Expr, FilterError> {
    let absent = field.expression.clone().is_null();
    let equal = match &field.holds {
        ArrowType::Struct(_) => return Err(wrong_operator(condition, "a structure")),
        ArrowType::List(item) if text.is_empty() => {
            let list = field.expression;
            let is_empty = cardinality(list.clone()).eq(lit(0_u64));
            if is_text(item.data_type()) {
                is_empty.or(list_has(condition, list, item.data_type(), text)?)
            } else {
                is_empty
            }
        }
        ArrowType::List(item) if item.data_type().is_nested() => {
            return Err(wrong_operator(condition, "a list of structures"));
        }
        ArrowType::List(item) => list_has(condition, field.expression, item.data_type(), text)?,
        holds if text.is_empty() && !is_text(holds) => return Ok(absent),
        _ => compared(condition, field, Operator::Eq, text)?,
    };
    Ok(if text.is_empty() {
        absent.or(equal)
    } else {
        not(absent).and(equal)
    })
}

fn matches(condition: &Condition, field: StoredField, pattern: &str) -> Result<Expr, FilterError> {
    let matching = ScalarUDF::new_from_impl(TextMatches::new(pattern)?);
    let text = match &field.holds {
        ArrowType::List(item) if *item.data_type() == ArrowType::Utf8 => field.expression,
        ArrowType::FixedSizeBinary(16) => {
            ScalarUDF::new_from_impl(UuidText::new()).call(vec![field.expression])
        }
        holds if is_text(holds) => plain_text(field.expression, holds),
        _ => return Err(wrong_operator(condition, "no text")),
    };
    Ok(matching.call(vec![text]))
}

/// `text_matches(text)`: whether the whole text matches, or one of a list of texts. An absent text is an
/// empty one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextMatches {
    pattern: WeighedPattern,
    signature: Signature,
}

impl TextMatches {
    fn new(pattern: &str) -> Result<Self, FilterError> {
        let refused = |reason: String| FilterError::Pattern {
            pattern: pattern.to_owned(),
            reason,
        };
        let compiled = |pattern: &str| {
            let built = RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES)
                .build();
            built.map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => refused("it grows too large; repeat less".to_owned()),
                other => refused(other.to_string().lines().last().unwrap_or_default().to_owned()),
            })
        };
        // Compiled on its own first: an unbalanced bracket would let it out of its anchors.
        compiled(pattern)?;
        let regex = compiled(&format!("^(?s:{pattern})$"))
            // Where blanks mean nothing the pattern may end in a comment, which would go on behind it.
            .or_else(|_| compiled(&format!("^(?s:{pattern}\n)$")))?;
        Ok(Self {
            pattern: WeighedPattern::new(regex),
            signature: Signature::any(1, Volatility::Immutable),
        })
    }

    fn is_match(&self, made: &mut MadeStates, text: &str) -> Result<bool> {
        refuse_ended()?;
        let found = self.pattern.is_match(made, text);
        found.map_err(|costly| DataFusionError::External(Box::new(costly)))
    }

    /// Whether one of the texts matches. There are some.
    fn any(&self, made: &mut MadeStates, texts: &ArrayRef) -> Result<bool> {
        let texts = texts.as_string_opt::<i32>();
        for text in texts.into_iter().flatten().flatten() {
            if self.is_match(made, text)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn found(&self, array: &ArrayRef) -> Result<BooleanArray> {
        let mut made = MadeStates::default();
        if let Some(texts) = array.as_string_opt::<i32>() {
            texts
                .iter()
                .map(|text| self.is_match(&mut made, text.unwrap_or_default()).map(Some))
                .collect()
        } else if let Some(lists) = array.as_list_opt::<i32>() {
            let empty = self.is_match(&mut made, "")?;
            let mut one = |list: Option<ArrayRef>| match list {
                Some(texts) if !texts.is_empty() => self.any(&mut made, &texts),
                _ => Ok(empty),
            };
            lists.iter().map(|list| one(list).map(Some)).collect()
        } else {
            internal_err!("text_matches takes text")
        }
    }
}

/// The number of bytes of all texts in an array of texts, or of lists of texts.
fn bytes(array: &ArrayRef) -> usize {
    let lists = array.as_list_opt::<i32>();
    let texts = lists.map_or(array, |lists| lists.values());
    let texts = texts.as_string_opt::<i32>();
    texts.map_or(0, |texts| texts.value_data().len())
}

impl ScalarUDFImpl for TextMatches {
    fn name(&self) -> &'static str {
        "text_matches"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("text_matches takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let found = if self.pattern.is_fast(bytes(&array)) {
            self.found(&array)?
        } else {
            beside_others(|| self.found(&array))?
        };
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::common::DFSchema;
    use datafusion::logical_expr::col;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn patterns_are_not_tested_while_rows_are_read() {
        let schema = Schema::new(vec![Field::new("note", ArrowType::Utf8, true)]);
        let schema = DFSchema::try_from(schema).unwrap();
        let session = SessionContext::new();
        let tested = |condition: Expr| {
            let condition = session.create_physical_expr(condition, &schema).unwrap();
            tested_while_reading(&condition).map(|tested| tested.to_string())
        };
        let matches = || ScalarUDF::new_from_impl(TextMatches::new("a+").unwrap()).call(vec![col("note")]);
        let is_tea = || col("note").eq(lit("tea"));
        let alone = tested(is_tea());
        assert!(alone.is_some());
        assert_eq!(tested(is_tea().and(not(matches()))), alone);
        assert_eq!(tested(is_tea().or(matches())), None);
        assert_eq!(tested(matches()), None);
    }

    #[test]
    fn rule_5_7_a_pattern_may_end_in_a_comment() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            "strong",
            "strong # tea",
            "a strong",
            "strong\n",
        ]));
        for pattern in [
            "strong",
            "(?x) str ong # tea",
            "(?x) strong # tea\n",
            "(?x: strong # tea\n)",
        ] {
            let found = TextMatches::new(pattern).unwrap().found(&texts).unwrap();
            let found: Vec<Option<bool>> = found.iter().collect();
            assert_eq!(
                found,
                [Some(true), Some(false), Some(false), Some(false)],
                "{pattern}"
            );
        }
        for wrong in ["strong)(?x", "(?x) (strong # )", "strong\\"] {
            let refused = TextMatches::new(wrong);
            assert!(matches!(refused, Err(FilterError::Pattern { .. })), "{wrong}");
        }
    }
}
