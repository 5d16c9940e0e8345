//! Makes the names of an answer's columns unique, because readers find each column by its name.
//!
//! Knows plans only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// The plan with new names for columns whose names earlier columns already have. `own_names`: the names of
/// columns that were planned under others.
pub(in crate::query::sql) fn with_names_of_their_own(
    plan: Arc<dyn ExecutionPlan>,
    own_names: &HashMap<String, String>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let held: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let own: Vec<&str> = held
        .iter()
        .map(|name| own_names.get(*name).map_or(*name, String::as_str))
        .collect();
    let names = unique_names(&own);
    if names == held {
        return Ok(plan);
    }
    let columns: Vec<ProjectionExpr> = held
        .iter()
        .zip(names)
        .enumerate()
        .map(|(place, (held, alias))| ProjectionExpr {
            expr: Arc::new(Column::new(held, place)),
            alias,
        })
        .collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}

/// The first of several equal names stays; the others get a number.
pub(super) fn unique_names(held: &[&str]) -> Vec<String> {
    let all: HashSet<&str> = held.iter().copied().collect();
    let mut taken: HashSet<String> = HashSet::new();
    // The last number of each name. Smaller ones are taken, and stay so.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(held.len());
    for name in held {
        let mut own = (*name).to_owned();
        if taken.contains(&own) {
            let number = numbers.entry(name).or_insert(1);
            while taken.contains(&own) || all.contains(own.as_str()) {
                *number += 1;
                own = format!("{name}_{number}");
            }
        }
        taken.insert(own.clone());
        names.push(own);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keeps_its_name_and_none_takes_that_of_another() {
        assert_eq!(unique_names(&["a", "b"]), ["a", "b"]);
        assert_eq!(unique_names(&["a", "a", "a"]), ["a", "a_2", "a_3"]);
        assert_eq!(
            unique_names(&["a", "a", "a_2", "a_2"]),
            ["a", "a_3", "a_2", "a_2_2"]
        );
        assert_eq!(
            unique_names(&["a", "a", "b", "a", "a_4", "b", "a"]),
            ["a", "a_2", "b", "a_3", "a_4", "b_2", "a_5"]
        );
    }
}
