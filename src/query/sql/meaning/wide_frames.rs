//! Frames of windows that reach as far from a row, or from a whole number, as they say.
//!
//! Where an end of a `RANGE` does not fit the type of the numbers, the engine takes it for the end of all
//! rows, also of those that have no number. So rows are ordered by decimals, which every end fits. Ends of
//! `ROWS` and `GROUPS` are added to the number of a row, and start again at the first row if they are too
//! far: they are brought nearer, to where there is no row either. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable as _, LogicalPlan, Window, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::sql::walking::change_steps;

/// Decimals of which the sum of two whole numbers is one, too.
const WIDE_TYPE: DataType = DataType::Decimal128(38, 0);

/// The largest distance that is added to the number of every row without starting again. No partition has as
/// many rows.
const FARTHEST: u64 = u64::MAX / 2;

/// Replaces what rows are ordered by once the ends of frames have its type, and ends that are too far.
#[derive(Debug)]
pub(in crate::query::sql) struct WideFrames;

impl AnalyzerRule for WideFrames {
    fn name(&self) -> &'static str {
        "wide_frames"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_steps(plan, &mut |plan| {
            let LogicalPlan::Window(window) = plan else {
                return Ok(Transformed::no(plan));
            };
            let schema = Arc::clone(window.input.schema());
            let functions = || window.window_expr.iter().filter_map(function_of);
            // All functions of one step have one order.
            let is_wide = functions().any(|function| reaches_from_numbers(function, &schema));
            if !is_wide && !functions().any(reaches_too_far) {
                return Ok(Transformed::no(LogicalPlan::Window(window)));
            }
            let names = NamePreserver::new_for_projection();
            let wide = window.window_expr.into_iter().map(|expr| -> Result<Expr> {
                let name = names.save(&expr);
                let wide = expr.transform_up(|expr| match expr {
                    Expr::WindowFunction(mut function) => {
                        bring_nearer(&mut function);
                        if is_wide {
                            *function = widened(*function, &schema)?;
                        }
                        Ok(Transformed::yes(Expr::WindowFunction(function)))
                    }
                    expr => Ok(Transformed::no(expr)),
                })?;
                Ok(name.restore(wide.data))
            });
            let wide = Window::try_new(wide.collect::<Result<_>>()?, window.input)?;
            Ok(Transformed::yes(LogicalPlan::Window(wide)))
        })
    }
}

fn function_of(expr: &Expr) -> Option<&WindowFunction> {
    match expr {
        Expr::Alias(named) => function_of(&named.expr),
        Expr::WindowFunction(function) => Some(function),
        _ => None,
    }
}

/// Whether a frame ends at a distance from a whole number that differs within a partition.
fn reaches_from_numbers(function: &WindowFunction, schema: &DFSchema) -> bool {
    let params = &function.params;
    let frame = &params.window_frame;
    let [key] = params.order_by.as_slice() else {
        return false;
    };
    frame.units == WindowFrameUnits::Range
        && [&frame.start_bound, &frame.end_bound]
            .into_iter()
            .any(is_distance)
        && !params.partition_by.contains(&key.expr)
        && is_whole(&key.expr, schema)
}

fn is_distance(end: &WindowFrameBound) -> bool {
    match end {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    }
}

/// Whether a frame ends further from its row than [`FARTHEST`].
fn reaches_too_far(function: &WindowFunction) -> bool {
    let frame = &function.params.window_frame;
    [&frame.start_bound, &frame.end_bound]
        .into_iter()
        .any(|end| match end {
            WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
                is_too_far(distance, frame.units)
            }
            WindowFrameBound::CurrentRow => false,
        })
}

/// Whether this is a number of rows or of groups of them that is too large.
fn is_too_far(distance: &ScalarValue, units: WindowFrameUnits) -> bool {
    units != WindowFrameUnits::Range
        && matches!(distance, ScalarValue::UInt64(Some(rows)) if *rows > FARTHEST)
}

fn bring_nearer(function: &mut WindowFunction) {
    let frame = &mut function.params.window_frame;
    for end in [&mut frame.start_bound, &mut frame.end_bound] {
        if let WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) = end
            && is_too_far(distance, frame.units)
        {
            *distance = ScalarValue::UInt64(Some(FARTHEST));
        }
    }
}

fn is_whole(key: &Expr, schema: &DFSchema) -> bool {
    key.get_type(schema).is_ok_and(|data_type| data_type.is_integer())
}

fn widened(mut function: WindowFunction, schema: &DFSchema) -> Result<WindowFunction> {
    let params = &mut function.params;
    for key in &mut params.order_by {
        if is_whole(&key.expr, schema) {
            let number = std::mem::take(&mut key.expr);
            key.expr = Expr::Cast(Cast::new(Box::new(number), WIDE_TYPE));
        }
    }
    let frame = &mut params.window_frame;
    if frame.units == WindowFrameUnits::Range {
        for end in [&mut frame.start_bound, &mut frame.end_bound] {
            if let WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) = end {
                *distance = distance.cast_to(&WIDE_TYPE)?;
            }
        }
    }
    Ok(function)
}
