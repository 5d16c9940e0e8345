//! The engine's functions that tell where regular expressions are found, or replace what is found, for as
//! many rows at a time as they may take steps. Knows functions and arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, StringArray};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF};
use regex::Regex;

use crate::model::weighed_pattern::{CostlyText, FEW_STEPS, MOST_STEPS, MadeStates, WeighedPattern};
use crate::query::ended::{beside_others, refuse_ended};
use crate::query::sql::stand_in::{Change, StandIn};

use super::cheap::{is_cheap, literal, with_flags};
use super::growth::refuse_large;

/// Telling the places of so many groups takes as long again as telling that of the match.
const GROUPS_FOR_ONE: u64 = 4;
/// The most bytes that a text takes in a list beside its own.
const AROUND_TEXT: usize = 16;

/// What a function does with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Search {
    /// It seeks the first place.
    First,
    /// It seeks the first place, and makes a list of what each group has found, of which at most so many lie
    /// in each other.
    FirstWithGroups { nested: usize },
    /// It seeks all places behind so many characters.
    AllBehind(usize),
    /// It seeks all places behind as many characters as a column says.
    AllInPart,
}

/// A pattern that is weighed against each text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Weighing {
    pattern: WeighedPattern,
    search: Search,
}

impl Weighing {
    /// The function that is called with its steps weighed. None if it seeks no pattern, or a cheap one, or
    /// one that the engine does not take, which then says why.
    pub(super) fn around(call: &ScalarFunction) -> Option<Arc<ScalarUDF>> {
        if StandIn::<Self>::is(&call.func) {
            return None;
        }
        let argument = |index: usize| call.args.get(index);
        let (flags, begins) = match call.func.name() {
            "regexp_match" => (argument(2), None),
            "regexp_replace" => (argument(3), None),
            "regexp_count" => (argument(3), argument(2)),
            "regexp_instr" => (argument(4), argument(2)),
            _ => return None,
        };
        let flags = flags.and_then(literal).unwrap_or_default();
        let pattern = with_flags(literal(argument(1)?)?, &flags.replace('g', ""));
        if is_cheap(&pattern) {
            return None;
        }
        let pattern = WeighedPattern::new(Regex::new(&pattern).ok()?);
        let search = match call.func.name() {
            "regexp_match" => Search::FirstWithGroups {
                nested: pattern.nested_groups(),
            },
            "regexp_replace" if !flags.contains('g') => Search::First,
            "regexp_replace" => Search::AllBehind(0),
            _ => begins
                .map_or(Some(0), before)
                .map_or(Search::AllInPart, Search::AllBehind),
        };
        let weighing = Self { pattern, search };
        Some(Arc::new(ScalarUDF::new_from_impl(StandIn::new(
            &call.func, weighing,
        ))))
    }

    fn steps(&self, texts: &StringArray) -> Result<Vec<u64>> {
        let factor = 1 + self.pattern.groups() as u64 / GROUPS_FOR_ONE;
        let mut made = MadeStates::default();
        let steps = |text: Option<&str>| {
            let Some(text) = text else {
                return Ok(0);
            };
            refuse_ended()?;
            let steps = match self.search {
                Search::First | Search::FirstWithGroups { .. } => self.pattern.steps(text.len()),
                Search::AllBehind(before) => {
                    let part = text.char_indices().nth(before).and_then(|(at, _)| text.get(at..));
                    self.pattern.steps_for_all(&mut made, part.unwrap_or_default())
                }
                Search::AllInPart => self.pattern.steps_for_any(text.len()),
            };
            bearable(steps.saturating_mul(factor), text.len())
        };
        texts.iter().map(steps).collect()
    }

    /// Fails if the lists of what groups find in `texts` may be too large.
    fn refuse_many_groups(&self, function: &str, texts: &StringArray) -> Result<()> {
        let Search::FirstWithGroups { nested } = self.search else {
            return Ok(());
        };
        let groups = self.pattern.groups().saturating_sub(1);
        // One finds a part of what is given.
        if groups < 2 {
            return Ok(());
        }
        // Groups beside each other share the text. Of those in each other, each may find all of it.
        let in_texts = texts.offsets().lengths().fold(0, usize::saturating_add);
        let around = groups.saturating_mul(texts.len().saturating_mul(AROUND_TEXT));
        refuse_large(function, nested.saturating_mul(in_texts).saturating_add(around))
    }
}

/// How many characters are before the place where a search begins, if it is a constant. Before places that
/// are none, which the engine refuses, there is nothing.
fn before(begins: &Expr) -> Option<usize> {
    match begins {
        Expr::Literal(ScalarValue::Int64(Some(place)), _) => {
            Some(usize::try_from(place.saturating_sub(1)).unwrap_or_default())
        }
        _ => None,
    }
}

impl Change for Weighing {
    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        refuse_ended()?;
        let Some(texts) = arguments.args.first() else {
            return engine.invoke_with_args(arguments);
        };
        let texts = as_texts(texts, rows(&arguments))?;
        self.refuse_many_groups(engine.name(), &texts)?;
        let all = || {
            let steps = self.steps(&texts)?;
            in_parts(&arguments, &steps, |part| engine.invoke_with_args(part))
        };
        if self.pattern.steps_for_any(texts.value_data().len()) <= FEW_STEPS {
            all()
        } else {
            beside_others(all)
        }
    }
}

/// The number of rows that a function is computed for: one if its arguments are constants.
pub(super) fn rows(arguments: &ScalarFunctionArgs) -> usize {
    if are_constants(arguments) {
        1
    } else {
        arguments.number_rows
    }
}

pub(super) fn are_constants(arguments: &ScalarFunctionArgs) -> bool {
    let is_constant = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
    arguments.args.iter().all(is_constant)
}

pub(super) fn as_texts(value: &ColumnarValue, rows: usize) -> Result<StringArray> {
    let texts = cast(&value.to_array(rows)?, &DataType::Utf8)?;
    Ok(texts.as_string::<i32>().clone())
}

/// The steps for a text of so many bytes, if they are not too many.
pub(super) fn bearable(steps: u64, bytes: usize) -> Result<u64> {
    if steps > MOST_STEPS {
        return exec_err!("{}", CostlyText { bytes });
    }
    Ok(steps)
}

/// What `compute` makes of all rows, which take so many steps each, given in parts that take not too many.
pub(super) fn in_parts(
    arguments: &ScalarFunctionArgs,
    steps: &[u64],
    compute: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let total = steps.iter().copied().fold(0, u64::saturating_add);
    if total <= FEW_STEPS || are_constants(arguments) {
        return compute(arguments.clone());
    }
    let mut parts: Vec<ArrayRef> = Vec::new();
    let mut done = 0;
    while let Some(rest) = steps.get(done..).filter(|rest| !rest.is_empty()) {
        refuse_ended()?;
        let count = fitting(rest);
        parts.push(compute(part(arguments, done, count))?.into_array(count)?);
        done += count;
    }
    let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&parts)?))
}

/// How many of the next rows are computed together: one at least.
fn fitting(steps: &[u64]) -> usize {
    let mut together = 0_u64;
    let fits = |steps: &&u64| {
        together = together.saturating_add(**steps);
        together <= MOST_STEPS
    };
    steps.iter().take_while(fits).count().max(1)
}

/// The arguments for some of the rows.
fn part(arguments: &ScalarFunctionArgs, from: usize, count: usize) -> ScalarFunctionArgs {
    let cut = |value: &ColumnarValue| match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, count)),
        ColumnarValue::Scalar(_) => value.clone(),
    };
    ScalarFunctionArgs {
        args: arguments.args.iter().map(cut).collect(),
        number_rows: count,
        ..arguments.clone()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::config::ConfigOptions;
    use datafusion::functions::regex::regexp_match;
    use datafusion::logical_expr::lit;

    use super::*;

    /// What `regexp_match` makes of a text of so many bytes.
    fn matched(bytes: usize, pattern: &str) -> Result<ColumnarValue> {
        let call = ScalarFunction {
            func: regexp_match(),
            args: vec![lit("x".repeat(bytes)), lit(pattern)],
        };
        let texts: StringArray = [Some("x".repeat(bytes))].into_iter().collect();
        Weighing::around(&call)
            .unwrap()
            .invoke_with_args(ScalarFunctionArgs {
                args: vec![
                    ColumnarValue::Array(Arc::new(texts)),
                    ColumnarValue::Scalar(pattern.into()),
                ],
                arg_fields: Vec::new(),
                number_rows: 1,
                return_field: Arc::new(Field::new("", DataType::new_list(DataType::Utf8, true), true)),
                config_options: Arc::new(ConfigOptions::new()),
            })
    }

    fn number_found(bytes: usize, pattern: &str) -> usize {
        let found = matched(bytes, pattern).unwrap().into_array(1).unwrap();
        found.as_list::<i32>().value(0).len()
    }

    fn assert_refused(bytes: usize, pattern: &str) {
        let refused = matched(bytes, pattern).unwrap_err().to_string();
        assert!(refused.contains("regexp_match would make more than"), "{refused}");
    }

    #[test]
    fn each_of_groups_in_each_other_may_find_the_whole_text() {
        let nested = |groups: usize| format!("{}x*{}", "(".repeat(groups), ")".repeat(groups));
        assert_eq!(number_found(100_000, &nested(30)), 30);
        assert!(matched(5_000_000, &nested(0)).is_ok() && matched(5_000_000, &nested(1)).is_ok());
        assert_refused(100_000, &nested(60));
    }

    #[test]
    fn groups_beside_each_other_share_the_text() {
        assert_eq!(number_found(3_000_000, "(x)(x)(x)(x*)(y?)"), 5);
        assert_eq!(number_found(2_000_000, "((x)(x*))"), 3);
        assert_refused(2_000_000, "(((x)(x*)))");
    }

    #[test]
    fn parts_are_as_large_as_their_steps_allow_and_come_together_again() {
        let texts: StringArray = ["a", "b", "c", "d", "e"].into_iter().map(Some).collect();
        let arguments = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(Arc::new(texts.clone()))],
            arg_fields: vec![Arc::new(Field::new("text", DataType::Utf8, true))],
            number_rows: 5,
            return_field: Arc::new(Field::new("same", DataType::Utf8, true)),
            config_options: Arc::new(ConfigOptions::new()),
        };
        for (steps, expected) in [
            ([1, 1, 1, 1, 1], vec![5]),
            ([MOST_STEPS; 5], vec![1; 5]),
            ([MOST_STEPS, 1, MOST_STEPS / 2, 1, MOST_STEPS], vec![1, 3, 1]),
        ] {
            let counts = std::cell::RefCell::new(Vec::new());
            let same = in_parts(&arguments, &steps, |part| {
                counts.borrow_mut().push(part.number_rows);
                Ok(part.args[0].clone())
            });
            assert_eq!(as_texts(&same.unwrap(), 5).unwrap(), texts);
            assert_eq!(counts.into_inner(), expected);
        }
    }
}
