//! What operators rely on is checked by the library, and holds of what scans give.

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use futures::{StreamExt as _, TryStreamExt as _};

use super::*;

/// Passes on rows that it takes to be sorted.
#[derive(Clone, Debug)]
struct Relies;

impl Step for Relies {
    const NAME: &'static str = "ReliesExec";
    const KEEPS_ORDER: bool = true;

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        Ok(only(inputs)?.open()?.boxed())
    }
}

fn rows(starts: &[i64]) -> Plan {
    let starts: ArrayRef = Arc::new(Int64Array::from(starts.to_vec()));
    let batch = RecordBatch::try_from_iter([("start_time", starts)]).unwrap();
    MemorySourceConfig::try_new_exec(&[vec![batch.clone()]], batch.schema(), None).unwrap()
}

fn relying(input: Plan) -> Plan {
    Arc::new(Operator::over(Relies, vec![input]))
}

fn order(plan: &Plan) -> LexOrdering {
    ascending(&plan.schema(), &["start_time"]).unwrap()
}

#[test]
fn a_sort_that_is_missing_is_caught() {
    let unsorted = rows(&[2, 1]);
    assert!(!is_sound(&relying(Arc::clone(&unsorted))));
    let sorted: Plan = Arc::new(SortExec::new(order(&unsorted), Arc::clone(&unsorted)));
    assert!(is_sound(&relying(sorted)));
    let told = known_order(Arc::clone(&unsorted), order(&unsorted)).unwrap();
    assert!(is_sound(&relying(told)));
}

#[test]
fn partitions_that_are_not_one_are_caught() {
    let sorted = |starts: &[i64]| -> Plan {
        let unsorted = rows(starts);
        known_order(Arc::clone(&unsorted), order(&unsorted)).unwrap()
    };
    let two = UnionExec::try_new(vec![sorted(&[1, 2]), sorted(&[1, 2])]).unwrap();
    assert!(!is_sound(&relying(two)));
}

#[test]
fn nothing_stands_above_a_plan_that_tells_its_order() {
    let unsorted = rows(&[1, 2]);
    let sorted: Plan = Arc::new(SortExec::new(order(&unsorted), unsorted));
    let told = known_order(Arc::clone(&sorted), order(&sorted)).unwrap();
    assert!(Arc::ptr_eq(&told, &sorted));
}

fn with_inputs(plan: &Plan, inputs: Vec<Plan>) -> Result<Plan> {
    let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(inputs, anew)
}

#[tokio::test]
async fn an_operator_counts_its_rows_and_can_be_given_other_inputs() {
    let plan = relying(rows(&[1, 2, 3]));
    let other = with_inputs(&plan, vec![rows(&[4, 5])]).unwrap();
    let context = Arc::new(TaskContext::default());
    let batches: Vec<RecordBatch> = other
        .execute(0, Arc::clone(&context))
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(other.metrics().unwrap().output_rows(), Some(2));
    assert_eq!(plan.metrics().unwrap().output_rows(), None);
    assert!(plan.execute(1, context).is_err());
    assert!(with_inputs(&plan, Vec::new()).is_err());
}
