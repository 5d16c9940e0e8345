//! A session in which one rule of this module can be tried. Knows no rule by name.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::rules::Rule;

/// A session of one partition with a table `t` of so many ids. Its rules are what `with_rule` makes of the
/// engine's.
pub(super) fn context(
    ids: i64,
    config: SessionConfig,
    with_rule: impl Fn(&[Rule]) -> Vec<Rule>,
) -> SessionContext {
    let state = SessionStateBuilder::new()
        .with_config(config.with_target_partitions(1))
        .with_default_features()
        .build();
    let rules = with_rule(state.physical_optimizers());
    let state = SessionStateBuilder::new_from_existing(state)
        .with_physical_optimizer_rules(rules)
        .build();
    let context = SessionContext::new_with_state(state);
    let ids: ArrayRef = Arc::new((0..ids).collect::<Int64Array>());
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    context
}
