//! Rows of types with different columns, side by side.

use datafusion::arrow::array::{Array as _, AsArray as _, Float64Array, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlanProperties as _, collect};

use super::super::operator::ascending;
use super::*;
use crate::model::registry::dictionary_text;

/// A plan of rows that are sorted by `at`.
fn rows(columns: Vec<(Field, ArrayRef)>) -> Plan {
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let source = MemorySourceConfig::try_new(&[vec![batch]], Arc::clone(&schema), None).unwrap();
    let order = ascending(&schema, &["at"]).unwrap();
    let source = source.try_with_sort_information(vec![order]).unwrap();
    DataSourceExec::from_data_source(source)
}

fn at(moments: Vec<i64>) -> (Field, ArrayRef) {
    let field = Field::new("at", ArrowType::Int64, false);
    (field, Arc::new(Int64Array::from(moments)))
}

fn numbers(name: &str, numbers: Vec<Option<f64>>) -> (Field, ArrayRef) {
    let field = Field::new(name, ArrowType::Float64, true);
    (field, Arc::new(Float64Array::from(numbers)))
}

fn texts(name: &str, texts: Vec<Option<&str>>, held: &ArrowType) -> (Field, ArrayRef) {
    let texts = cast(&StringArray::from(texts), held).unwrap();
    (Field::new(name, held.clone(), true), texts)
}

async fn aligned(together: &Together, plan: Plan) -> RecordBatch {
    let plan = together.align(plan).unwrap();
    assert_eq!(plan.schema(), together.schema());
    let batches = collect(plan, Arc::new(TaskContext::default())).await.unwrap();
    let [batch] = batches.as_slice() else {
        panic!("{} batches", batches.len());
    };
    batch.clone()
}

fn shown(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let texts = cast(batch.column_by_name(name).unwrap(), &ArrowType::Utf8).unwrap();
    let texts = texts.as_string::<i32>().iter();
    texts.map(|text| text.map(str::to_owned)).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[tokio::test]
async fn rule_5_5_what_one_type_lacks_is_null_and_what_differs_is_json() {
    let walks = rows(vec![
        at(vec![1, 3]),
        numbers("length", vec![Some(2.0), Some(2.5)]),
        texts("mood", vec![Some("good"), None], &dictionary_text()),
    ]);
    let meals = rows(vec![
        texts("length", vec![Some("long")], &ArrowType::Utf8),
        at(vec![2]),
        texts("mood", vec![Some("fair")], &ArrowType::Utf8),
        numbers("energy", vec![Some(1.0)]),
        numbers("salt", vec![Some(3.0)]),
    ]);
    let together = Together::of([walks.schema(), meals.schema()], []);
    let schema = together.schema();
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(names, ["at", "length", "mood", "energy", "salt"]);
    assert!(is_json_text(schema.field(1)));
    let have_nulls: Vec<bool> = schema.fields().iter().map(|field| field.is_nullable()).collect();
    assert_eq!(have_nulls, [false, true, true, true, true]);

    let of_walks = aligned(&together, walks).await;
    assert_eq!(of_walks.column(0).as_primitive::<Int64Type>().values(), &[1, 3]);
    assert_eq!(shown(&of_walks, "length"), some(&["2", "2.5"]));
    assert_eq!(shown(&of_walks, "mood"), [Some("good".to_owned()), None]);
    assert_eq!(shown(&of_walks, "energy"), [None, None]);
    // One column of nulls serves for all of its kind.
    assert!(Arc::ptr_eq(of_walks.column(3), of_walks.column(4)));

    let of_meals = aligned(&together, meals).await;
    assert_eq!(of_meals.column(0).as_primitive::<Int64Type>().values(), &[2]);
    assert_eq!(shown(&of_meals, "length"), some(&["\"long\""]));
    assert_eq!(shown(&of_meals, "mood"), some(&["fair"]));
    assert_eq!(of_meals.column_by_name("energy").unwrap().null_count(), 0);
}

#[test]
fn rows_stay_in_order_wherever_their_columns_are() {
    let walks = rows(vec![at(vec![1, 3])]);
    let meals = rows(vec![numbers("energy", vec![None]), at(vec![2])]);
    let together = Together::of([walks.schema(), meals.schema()], []);
    for plan in [walks, meals] {
        let plan = together.align(plan).unwrap();
        let order = ascending(&plan.schema(), &["at"]).unwrap();
        assert!(plan.equivalence_properties().ordering_satisfy(order).unwrap());
        let other = ascending(&plan.schema(), &["energy"]).unwrap();
        assert!(!plan.equivalence_properties().ordering_satisfy(other).unwrap());
    }
}

#[test]
fn schemas_beside_the_rows_decide_what_a_column_can_hold() {
    let rows = Schema::new(vec![
        Field::new("at", ArrowType::Int64, false),
        Field::new("length", ArrowType::Float64, true),
    ]);
    let beside = Schema::new(vec![
        Field::new("length", ArrowType::Utf8, true),
        Field::new("energy", ArrowType::Float64, false),
    ]);
    let together = Together::of([Arc::new(rows)], [Arc::new(beside)]);
    let expected = Schema::new(vec![
        Field::new("at", ArrowType::Int64, false),
        json_text("length"),
        Field::new("energy", ArrowType::Float64, true),
    ]);
    assert_eq!(together.schema().as_ref(), &expected);
}

#[test]
fn a_column_that_may_be_null_beside_the_rows_may_be_null_in_them() {
    let unit = |nullable: bool| Arc::new(Schema::new(vec![Field::new("unit", ArrowType::Utf8, nullable)]));
    let is_nullable = |rows: Vec<SchemaRef>, beside: Vec<SchemaRef>| {
        Together::of(rows, beside).schema().field(0).is_nullable()
    };
    assert!(!is_nullable(vec![unit(false)], vec![unit(false)]));
    // Whichever of two types has rows, the schema is the same.
    for (rows, beside) in [(false, true), (true, false)] {
        assert!(is_nullable(vec![unit(rows)], vec![unit(beside)]));
    }
    assert!(is_nullable(Vec::new(), vec![unit(true), unit(false)]));
}
