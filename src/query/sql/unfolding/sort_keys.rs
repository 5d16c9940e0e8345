//! Limits by how many keys a query orders rows and divides them into partitions, each list of keys counted as
//! often as it is copied.
//!
//! The planner asks of each key whether the order of those before it is there already, which takes longer
//! with each of them: time with the square of the keys of an order, and with the cube of those of partitions.
//! An aggregate over the whole of each partition adds an order by its result to those that are looked through
//! for the next one, so there they count with each aggregate. Knows plans only.

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Window, WindowFunctionDefinition};

/// The most keys of `PARTITION BY` of one window: a few more than the widest type has columns.
const MOST_OF_WINDOW: usize = 32;
/// The most keys of `PARTITION BY` of all windows.
const MOST_OF_PARTITIONS: usize = 100;
/// The most keys of `ORDER BY` and `DISTINCT ON`.
const MOST_OF_ORDERS: usize = 256;

/// The keys of the steps that were counted.
#[derive(Default)]
pub(super) struct KeyCounter {
    partitions: usize,
    orders: usize,
}

impl KeyCounter {
    /// Counts the keys of a step, without the steps below it.
    pub(super) fn take(&mut self, step: &LogicalPlan) -> Result<()> {
        match step {
            LogicalPlan::Window(window) => self.take_windows(window)?,
            LogicalPlan::Sort(sort) => self.orders += sort.expr.len(),
            LogicalPlan::Distinct(Distinct::On(distinct)) => {
                let sorted = distinct.sort_expr.as_ref().map_or(0, Vec::len);
                self.orders += distinct.on_expr.len() + sorted;
            }
            LogicalPlan::Aggregate(aggregate) => {
                for computed in &aggregate.aggr_expr {
                    self.take_ordered(computed)?;
                }
            }
            _ => {}
        }
        if self.orders > MOST_OF_ORDERS {
            return plan_err!(
                "ORDER BY and DISTINCT ON have more than {MOST_OF_ORDERS} keys together once each name \
                 stands for the query behind it; order by fewer"
            );
        }
        if self.partitions > MOST_OF_PARTITIONS {
            return plan_err!(
                "PARTITION BY has more than {MOST_OF_PARTITIONS} keys in all windows together, once each \
                 name stands for the query behind it, those of aggregates over whole partitions counted with \
                 each aggregate; use GROUP BY, and join what it returns"
            );
        }
        Ok(())
    }

    /// The keys of windows that are computed together: they have the same.
    fn take_windows(&mut self, together: &Window) -> Result<()> {
        let (mut partitions, mut orders) = (0, 0);
        for computed in &together.window_expr {
            computed.apply(|part| {
                if let Expr::WindowFunction(window) = part {
                    let keys = window.params.partition_by.len();
                    if keys > MOST_OF_WINDOW {
                        return plan_err!(
                            "a window has more than {MOST_OF_WINDOW} keys of PARTITION BY; name fewer"
                        );
                    }
                    partitions = keys.max(partitions);
                    orders = window.params.order_by.len().max(orders);
                    if is_over_whole_partitions(window) {
                        self.partitions += keys;
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        self.partitions += partitions;
        self.orders += orders;
        Ok(())
    }

    fn take_ordered(&mut self, computed: &Expr) -> Result<()> {
        computed.apply(|part| {
            if let Expr::AggregateFunction(aggregate) = part {
                self.orders += aggregate.params.order_by.len();
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }
}

fn is_over_whole_partitions(window: &WindowFunction) -> bool {
    let frame = &window.params.window_frame;
    matches!(window.fun, WindowFunctionDefinition::AggregateUDF(_))
        && frame.start_bound.is_unbounded()
        && frame.end_bound.is_unbounded()
}
