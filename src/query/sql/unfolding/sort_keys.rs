//! Limits by how many keys a query orders rows and divides them into partitions, each list of keys counted as
//! often as it is copied.
//!
//! The planner asks of each key whether the order of those before it is there already, which takes longer
//! with each of them: time with the square of the keys of an order, and with the cube of those of partitions.
//! It asks for the keys of partitions with each function. A function adds an order by its result to those
//! that are looked through for the next one if it has one value for all of a partition, numbers rows, or
//! never falls or never rises as its frame grows, as `max` and `count` do; so there keys count with each
//! function. Knows plans only.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Distinct, Expr, LogicalPlan, SetMonotonicity, Window, WindowFunctionDefinition,
};

/// The most keys of `PARTITION BY` of one window: a few more than the widest type has columns.
const MOST_OF_WINDOW: usize = 32;
/// The most keys of `PARTITION BY` of all windows, and of all functions that add orders.
const MOST_OF_PARTITIONS: usize = 100;
/// The most keys of `PARTITION BY` of all functions.
const MOST_OF_FUNCTIONS: usize = 512;
/// The most keys of `ORDER BY` and `DISTINCT ON`.
const MOST_OF_ORDERS: usize = 256;

/// The keys of the steps that were counted.
#[derive(Default)]
pub(super) struct KeyCounter {
    partitions: usize,
    of_functions: usize,
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
                 name stands for the query behind it, those of aggregates over whole partitions, and of \
                 max, min, count, rank and row_number, counted with each function; use GROUP BY, and join \
                 what it returns"
            );
        }
        if self.of_functions > MOST_OF_FUNCTIONS {
            return plan_err!(
                "PARTITION BY has more than {MOST_OF_FUNCTIONS} keys, counted with each function and once \
                 each name stands for the query behind it; use GROUP BY, and join what it returns"
            );
        }
        Ok(())
    }

    /// The keys of windows that are computed together: they have the same.
    fn take_windows(&mut self, together: &Window) -> Result<()> {
        let (mut partitions, mut orders, mut of_added_orders) = (0, 0, 0);
        let given = together.input.schema().fields().len();
        let results = together.schema.fields().iter().skip(given);
        for (computed, result) in together.window_expr.iter().zip(results) {
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
                    self.of_functions += keys;
                    if adds_order(window, result.data_type()) {
                        of_added_orders += keys;
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        self.partitions += partitions.max(of_added_orders);
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

/// Whether the planner may tell an order of the results of this function, which are of this type.
fn adds_order(window: &WindowFunction, result: &DataType) -> bool {
    let frame = &window.params.window_frame;
    match &window.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            let is_over_whole_partitions = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
            is_over_whole_partitions
                || function.inner().set_monotonicity(result) != SetMonotonicity::NotMonotonic
        }
        WindowFunctionDefinition::WindowUDF(function) => function.sort_options().is_some(),
    }
}
