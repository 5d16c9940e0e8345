//! Names of the columns of an answer: what reads them finds each by its name, so no two are the same.
//!
//! Knows plans only.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// The plan with other names for the columns whose names others before them have.
pub(super) fn with_names_of_their_own(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let held: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let names = told_apart(&held);
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

/// The first of several with one name keeps it; the others are counted.
fn told_apart(held: &[&str]) -> Vec<String> {
    let all: HashSet<&str> = held.iter().copied().collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::with_capacity(held.len());
    for name in held {
        let mut own = (*name).to_owned();
        let mut count = 1;
        while taken.contains(&own) || (count > 1 && all.contains(own.as_str())) {
            count += 1;
            own = format!("{name}_{count}");
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
        assert_eq!(told_apart(&["a", "b"]), ["a", "b"]);
        assert_eq!(told_apart(&["a", "a", "a"]), ["a", "a_2", "a_3"]);
        assert_eq!(
            told_apart(&["a", "a", "a_2", "a_2"]),
            ["a", "a_3", "a_2", "a_2_2"]
        );
    }
}
