//! The optimizer's rules, and how some of them are wrapped. Knows no rule by name, and no plan.

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;

/// A rule of DataFusion or of this program about a plan of operators.
pub(super) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// `rules`, with those inside a `wrapper` that are meant. They may be about logical plans or about operators.
pub(super) fn wrap_meant<Wrapped: ?Sized>(
    rules: &[Arc<Wrapped>],
    is_meant: impl Fn(&Wrapped) -> bool,
    wrapper: impl Fn(Arc<Wrapped>) -> Arc<Wrapped>,
) -> Vec<Arc<Wrapped>> {
    let wrapped = |rule: &Arc<Wrapped>| {
        let rule = Arc::clone(rule);
        if is_meant(&rule) { wrapper(rule) } else { rule }
    };
    rules.iter().map(wrapped).collect()
}
