//! Ordinary mistakes that the engine reports as if it had made them itself, or once for each form of a
//! function.
//!
//! Knows how the engine words them; knows nothing of the text of a query.

use std::collections::BTreeSet;

/// What is wrong, and by what its place in the text is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub message: String,
    pub place: KnownBy,
}

/// What a place is known by.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KnownBy {
    /// The first of these names that is there.
    Names(Vec<String>),
    /// A word of the grammar, if it is there once.
    Word(&'static str),
}

/// Names of functions by which messages do not call them.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("avg", "mean"),
    ("date_part", "extract"),
    ("date_part", "datepart"),
    ("substr", "substring"),
];

/// The mistake that an error of the engine is about.
pub(super) fn mistake_in(error: &str) -> Option<Mistake> {
    of_arguments(error)
        .or_else(|| of_signature(error))
        .or_else(|| of_structures(error))
        .or_else(|| of_grouping(error))
        .or_else(|| of_ungrouped(error))
        .or_else(|| of_substring(error))
        .or_else(|| of_between(error))
        .or_else(|| of_range(error))
        .or_else(|| of_dot(error))
        .or_else(|| of_lateral(error))
        .or_else(|| of_subquery(error))
        .or_else(|| of_orders(error))
}

fn of_function(name: &str, message: String) -> Mistake {
    let others = OTHER_NAMES.iter().filter(|(engine, _)| *engine == name);
    let names = std::iter::once(name).chain(others.map(|(_, other)| *other));
    Mistake {
        message,
        place: KnownBy::Names(names.map(str::to_owned).collect()),
    }
}

/// A function that has several forms, and none for its arguments. The engine gives a reason for each.
fn of_arguments(error: &str) -> Option<Mistake> {
    let (before, reasons) = error.split_once("' failed to match any signature, errors: ")?;
    let (_, name) = before.rsplit_once("Function '")?;
    let reasons = reasons.split("\nThis issue ").next().unwrap_or_default();
    let reasons: Vec<&str> = reasons.split("Error during planning: ").collect();
    let message = wrong_type(name, &reasons)
        .or_else(|| wrong_count(name, &reasons))
        .unwrap_or_else(|| format!("{name} does not take these arguments"));
    Some(of_function(name, message))
}

/// Forms of other lengths say nothing once there is one of the right length.
fn wrong_type(name: &str, reasons: &[&str]) -> Option<String> {
    let mut types = reasons.iter().filter_map(|reason| {
        let (_, reason) = reason.split_once("' requires ")?;
        let (taken, reason) = reason.split_once(", but received ")?;
        let (given, _) = reason.split_once(" (DataType: ")?;
        Some((taken, given))
    });
    let (first, wrong) = types.next()?;
    let mut all = vec![first.to_owned()];
    for (taken, given) in types {
        if given == wrong && !all.iter().any(|known| known == taken) {
            all.push(taken.to_owned());
        }
    }
    let taken = any_of(&all);
    Some(format!(
        "an argument of {name} is {wrong}, where it takes {taken}"
    ))
}

fn wrong_count(name: &str, reasons: &[&str]) -> Option<String> {
    let counts = reasons.iter().filter_map(|reason| {
        let (_, reason) = reason.split_once("' expects ")?;
        let (taken, given) = reason.split_once(" arguments but received ")?;
        let given = given.trim_end_matches([',', '.']).parse::<usize>().ok()?;
        Some((taken.parse::<usize>().ok()?, given))
    });
    let counts: Vec<(usize, usize)> = counts.collect();
    let (_, given) = counts.first()?;
    let taken: BTreeSet<usize> = counts.iter().map(|(taken, _)| *taken).collect();
    let noun = if taken.len() == 1 && taken.contains(&1) {
        "argument"
    } else {
        "arguments"
    };
    let taken: Vec<String> = taken.iter().map(usize::to_string).collect();
    Some(format!("{name} takes {} {noun}, not {given}", any_of(&taken)))
}

/// A function of a single form, which the engine shows as it holds it.
fn of_signature(error: &str) -> Option<Mistake> {
    let (_, call) = error.split_once("Failed to coerce arguments to satisfy a call to '")?;
    let (name, types) = call.split_once("' function: coercion from ")?;
    let (given, _) = types.split_once(" to the signature ")?;
    let given = given.replace("Dictionary(Int32, Utf8)", "Utf8");
    Some(of_function(
        name,
        format!("{name} does not take arguments of the types {given}"),
    ))
}

/// Structures that are to become values of one type.
fn of_structures(error: &str) -> Option<Mistake> {
    let (before, _) = error.split_once("Expect same keys for struct type")?;
    let function = before
        .split_once("Function '")
        .and_then(|(_, name)| name.split_once('\''));
    Some(Mistake {
        message: "structures have a type in common only if their members have the same names".to_owned(),
        place: KnownBy::Names(function.map(|(name, _)| name.to_owned()).into_iter().collect()),
    })
}

/// `grouping` of something that is no key.
fn of_grouping(error: &str) -> Option<Mistake> {
    error
        .contains(" to grouping function is not in grouping columns")
        .then(|| {
            of_function(
                "grouping",
                "an argument of grouping is not in GROUP BY".to_owned(),
            )
        })
}

/// A column that is no key, beside aggregates. The engine takes it for one that a `*` stands for.
fn of_ungrouped(error: &str) -> Option<Mistake> {
    let (clause, column) = error
        .split_once(" must be in GROUP BY or an aggregate function: While expanding wildcard, column \"")?;
    let (_, clause) = clause.rsplit_once("Column in ")?;
    let (column, _) = column.split_once("\" must appear in the GROUP BY clause")?;
    let name = column.rsplit('.').next().unwrap_or(column);
    Some(Mistake {
        message: format!("{clause} has {column}, which is neither in GROUP BY nor in an aggregate"),
        place: KnownBy::Names(vec![name.to_owned()]),
    })
}

/// `substr` with one argument, which has a grammar of its own.
fn of_substring(error: &str) -> Option<Mistake> {
    error
        .contains("Substring without for/from is not valid")
        .then(|| of_function("substr", "substr takes 2 or 3 arguments, not 1".to_owned()))
}

fn of_between(error: &str) -> Option<Mistake> {
    let (_, types) = error.split_once("Failed to coerce types ")?;
    let (types, _) = types.split_once(" in BETWEEN expression")?;
    let (value, end) = types.split_once(" and ")?;
    let (value, end) = (of_values(value), of_values(end));
    Some(Mistake {
        message: format!("BETWEEN finds no type in which to compare {value} with {end}"),
        place: KnownBy::Word("BETWEEN"),
    })
}

fn of_range(error: &str) -> Option<Mistake> {
    let (_, data_type) = error.split_once("Cannot run range queries on datatype: ")?;
    let data_type = data_type.lines().next()?.trim_end_matches('.');
    Some(Mistake {
        message: format!(
            "a window that is ordered by {data_type} needs a frame of ROWS or GROUPS; the one of RANGE, \
             which it has if none is written, is for numbers, texts and times"
        ),
        place: KnownBy::Word("OVER"),
    })
}

/// A member of what is no column, after a dot.
fn of_dot(error: &str) -> Option<Mistake> {
    let (_, member) = error.split_once("Dot access not supported for non-string expr: ")?;
    let member = member.strip_prefix("Identifier(Ident { value: \"")?;
    let (name, _) = member.split_once('"')?;
    Some(Mistake {
        message: format!("a dot reads members of columns only; write ['{name}'] instead of .{name}"),
        place: KnownBy::Names(vec![name.to_owned()]),
    })
}

/// A list of the row beside it, which the engine looks for among the functions that make tables.
fn of_lateral(error: &str) -> Option<Mistake> {
    error
        .contains("table function 'unnest' not found")
        .then(|| Mistake {
            message: "unnest does not stand behind LATERAL; write it in SELECT, beside the other columns"
                .to_owned(),
            place: KnownBy::Names(vec!["unnest".to_owned()]),
        })
}

/// A subquery that the engine computes for no clause such as `ORDER BY`.
fn of_subquery(error: &str) -> Option<Mistake> {
    error
        .contains("Correlated scalar subquery can only be used in")
        .then(|| Mistake {
            message: "as a value, a subquery about the row around it stands in SELECT and WHERE; elsewhere, \
                      write the name that it has in SELECT, or in a query within"
                .to_owned(),
            // It may stand in any of several clauses.
            place: KnownBy::Names(Vec::new()),
        })
}

/// Aggregates that are computed together and want their rows in orders of their own.
fn of_orders(error: &str) -> Option<Mistake> {
    let names = ["string_agg", "nth_value", "array_agg"];
    error
        .contains("Conflicting ordering requirements in aggregate functions")
        .then(|| Mistake {
            message: "string_agg and nth_value, also written array_agg(…)[n], take rows in one order in a \
                      SELECT; for another one, write array_to_string(array_agg(… ORDER BY …), ','), or \
                      array_element(array_agg(… ORDER BY …), n)"
                .to_owned(),
            place: KnownBy::Names(Vec::from(names.map(str::to_owned))),
        })
}

/// The type of the values where the engine keeps each of them once.
fn of_values(data_type: &str) -> &str {
    data_type
        .strip_prefix("Dictionary(")
        .and_then(|parts| parts.strip_suffix(')'))
        .and_then(|parts| parts.split_once(", "))
        .map_or(data_type, |(_, values)| values)
}

fn any_of(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: &str) -> String {
        mistake_in(error).unwrap().message
    }

    #[test]
    fn one_sentence_says_what_no_form_of_a_function_takes() {
        let of_type = "Error during planning: Internal error: Function 'avg' failed to match any signature, \
                       errors: Error during planning: Function 'avg' requires Decimal, but received \
                       Timestamp(µs, \"UTC\") (DataType: Timestamp(µs, \"UTC\")).,Error during planning: \
                       Function 'avg' requires Float64, but received Timestamp(µs, \"UTC\") (DataType: \
                       Timestamp(µs, \"UTC\"))..\nThis issue was likely caused by a bug";
        assert_eq!(
            mistake_in(of_type).unwrap(),
            Mistake {
                message: "an argument of avg is Timestamp(µs, \"UTC\"), where it takes Decimal or Float64"
                    .into(),
                place: KnownBy::Names(vec!["avg".to_owned(), "mean".to_owned()]),
            }
        );
        let of_both = "Internal error: Function 'round' failed to match any signature, errors: Error during \
                       planning: Function 'round' expects 2 arguments but received 1,Error during planning: \
                       Function 'round' requires Decimal, but received String (DataType: Utf8).,Error during \
                       planning: Function 'round' requires Integer, but received String (DataType: Utf8).,\
                       Error during planning: Function 'round' requires Float32, but received String \
                       (DataType: Utf8)..\nThis issue was likely caused by a bug";
        assert_eq!(
            message(of_both),
            "an argument of round is String, where it takes Decimal, Integer or Float32"
        );
        let of_count = |counts: [u32; 3]| {
            let reason = |count| {
                format!("Error during planning: Function 'f' expects {count} arguments but received 4")
            };
            let reasons = counts.map(reason).join(",");
            format!(
                "Internal error: Function 'f' failed to match any signature, errors: {reasons}.\nThis issue"
            )
        };
        assert_eq!(message(&of_count([2, 3, 2])), "f takes 2 or 3 arguments, not 4");
        assert_eq!(message(&of_count([1, 1, 1])), "f takes 1 argument, not 4");
        let unknown = "Internal error: Function 'f' failed to match any signature, errors: Error during \
                       planning: it is another one.\nThis issue";
        assert_eq!(message(unknown), "f does not take these arguments");
    }

    #[test]
    fn other_mistakes_are_told_without_what_the_engine_holds() {
        for (error, expected) in [
            (
                "Internal error: Failed to coerce types Dictionary(Int32, Utf8) and List(Int64) in BETWEEN \
                 expression.\nThis issue was likely caused by a bug",
                "BETWEEN finds no type in which to compare Utf8 with List(Int64)",
            ),
            (
                "Error during planning: Failed to coerce arguments to satisfy a call to 'left' function: \
                 coercion from Utf8, Dictionary(Int32, Utf8) to the signature OneOf(Exact(Utf8, Int64)) \
                 failed. No function matches the given name and argument types 'left(Utf8, Utf8)'.",
                "left does not take arguments of the types Utf8, Utf8",
            ),
            (
                "Error during planning: Function 'coalesce' user-defined coercion failed with: Fail to find \
                 the coerced type, errors: Execution error: Expect same keys for struct type but got \
                 mismatched pair a and b.",
                "structures have a type in common only if their members have the same names",
            ),
            (
                "Error during planning: Argument Int64(1) to grouping function is not in grouping columns n",
                "an argument of grouping is not in GROUP BY",
            ),
            (
                "Error during planning: Column in ORDER BY must be in GROUP BY or an aggregate function: \
                 While expanding wildcard, column \"t.unit\" must appear in the GROUP BY clause or must be \
                 part of an aggregate function, currently only \"t.n\" appears in the SELECT clause \
                 satisfies this requirement",
                "ORDER BY has t.unit, which is neither in GROUP BY nor in an aggregate",
            ),
            (
                "Internal error: Cannot run range queries on datatype: Duration(µs).\nThis issue was likely",
                "a window that is ordered by Duration(µs) needs a frame of ROWS or GROUPS; the one of RANGE, \
                 which it has if none is written, is for numbers, texts and times",
            ),
            (
                "Error during planning: Substring without for/from is not valid Substring { expr: Value(1) }",
                "substr takes 2 or 3 arguments, not 1",
            ),
            (
                "This feature is not implemented: Dot access not supported for non-string expr: \
                 Identifier(Ident { value: \"x\", quote_style: None })",
                "a dot reads members of columns only; write ['x'] instead of .x",
            ),
            (
                "Error during planning: table function 'unnest' not found",
                "unnest does not stand behind LATERAL; write it in SELECT, beside the other columns",
            ),
            (
                "Error during planning: Correlated scalar subquery can only be used in Projection, Filter, \
                 Aggregate plan nodes",
                "as a value, a subquery about the row around it stands in SELECT and WHERE; elsewhere, write \
                 the name that it has in SELECT, or in a query within",
            ),
            (
                "This feature is not implemented: Conflicting ordering requirements in aggregate functions \
                 is not supported",
                "string_agg and nth_value, also written array_agg(…)[n], take rows in one order in a \
                 SELECT; for another one, write array_to_string(array_agg(… ORDER BY …), ','), or \
                 array_element(array_agg(… ORDER BY …), n)",
            ),
        ] {
            assert_eq!(message(error), expected);
        }
        assert_eq!(mistake_in("Internal error: it is another one"), None);
    }
}
