//! How SQLite would find the rows of a statement, for tests. Knows nothing of what the rows are.

use std::path::Path;
use std::sync::Arc;

use super::Catalog;
use super::rows::text;
use super::test_databases::address_in;
use crate::model::clock::ManualClock;
use crate::model::time::Instant;

/// A new catalogue on SQLite in this directory.
pub(super) async fn catalogue_in(directory: &Path) -> Catalog {
    let clock = Arc::new(ManualClock::at(Instant::from_micros(0)));
    Catalog::open(&address_in(directory), clock).await.unwrap()
}

/// The steps in which the database would run a statement.
pub(super) async fn steps_of(catalog: &Catalog, sql: &str) -> Vec<String> {
    let values = (1..)
        .take_while(|number| sql.contains(&format!("${number}")))
        .map(|_| text(""));
    let plan = format!("EXPLAIN QUERY PLAN {sql}");
    let steps = catalog.database.fetch(plan, values.collect()).await.unwrap();
    steps.iter().map(|step| step.text(3).unwrap()).collect()
}
