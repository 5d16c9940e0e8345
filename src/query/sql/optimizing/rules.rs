//! The optimizer's rules, how some of them are wrapped, and what most of ours are: one that replaces
//! operators. Knows no rule by name, and no plan.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use crate::query::operator::Plan;

/// A rule of DataFusion or of this program about a plan of operators.
pub(super) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// A rule that replaces operators, those below first. `with` gives what takes the place of one, or `None` if
/// that stays.
pub(super) fn replacing(
    name: &'static str,
    with: impl Fn(&Plan) -> Result<Option<Plan>> + Send + Sync + 'static,
) -> Rule {
    Arc::new(Replacing { name, with })
}

struct Replacing<F> {
    name: &'static str,
    with: F,
}

impl<F> fmt::Debug for Replacing<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl<F: Fn(&Plan) -> Result<Option<Plan>> + Send + Sync + 'static> PhysicalOptimizerRule for Replacing<F> {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        replaced(plan, &self.with)
    }
}

/// The plan in which `with` has replaced operators as in `replacing`.
pub(super) fn replaced(plan: Plan, with: impl Fn(&Plan) -> Result<Option<Plan>>) -> Result<Plan> {
    let replace = |plan: Plan| -> Result<Transformed<Plan>> {
        Ok(with(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
    };
    plan.transform_up(replace).data()
}

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
