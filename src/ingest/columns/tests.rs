//! Columns give back the cells that were set, and refuse others.

use arrow::array::{Array as _, AsArray, StructArray};
use arrow::datatypes::{Field, Fields, Float64Type};

use super::*;

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn text(text: &str) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text))
}

#[test]
fn repeated_words_are_kept_once() {
    let mut column = Column::new(&words()).unwrap();
    for (row, word) in ["bpm", "bpm", "ms", "bpm"].into_iter().enumerate() {
        column.set(row, &mut text(word)).unwrap();
    }
    let array = column.finish(5).unwrap();
    let dictionary = array.as_dictionary::<Int32Type>();
    assert_eq!(dictionary.values().len(), 2);
    assert_eq!(
        dictionary.keys().iter().collect::<Vec<_>>(),
        [Some(0), Some(0), Some(1), Some(0), None]
    );
    assert_eq!(
        column.finish(0).unwrap().len(),
        0,
        "a finished column starts anew"
    );
}

#[test]
fn rows_that_were_not_set_are_null() {
    let mut column = Column::new(&DataType::Float64).unwrap();
    column.set(2, &mut Cell::Float(1.5)).unwrap();
    column.set(4, &mut Cell::Null).unwrap();
    column.set(5, &mut Cell::Float(2.5)).unwrap();
    let array = column.finish(7).unwrap();
    let values: Vec<_> = array.as_primitive::<Float64Type>().iter().collect();
    assert_eq!(values, [None, None, Some(1.5), None, None, Some(2.5), None]);
}

#[test]
fn a_struct_given_before_is_called_by_its_number() {
    let fields: Fields = vec![
        Field::new("name", words(), true),
        Field::new("count", DataType::Int64, true),
    ]
    .into();
    let mut column = Column::new(&DataType::Struct(fields)).unwrap();
    column
        .set(0, &mut Cell::Struct(vec![text("watch"), Cell::Int(1)]))
        .unwrap();
    let watch = column.last_number().unwrap();
    column
        .set(2, &mut Cell::Struct(vec![text("phone"), Cell::Null]))
        .unwrap();
    column.set(3, &mut Cell::Known(watch)).unwrap();
    let array = column.finish(4).unwrap();
    let rows: &StructArray = array.as_struct();
    let names = arrow::compute::cast(rows.column(0), &DataType::Utf8).unwrap();
    assert_eq!(
        names.as_string::<i32>().iter().collect::<Vec<_>>(),
        [Some("watch"), None, Some("phone"), Some("watch")]
    );
    assert!(rows.is_null(1) && !rows.is_null(2));
}

/// One value in all rows gives the column that choosing row by row does.
#[test]
fn what_all_rows_hold_is_repeated() {
    let list = DataType::List(Arc::new(Field::new_list_field(words(), true)));
    let fields: Fields = vec![
        Field::new("name", words(), true),
        Field::new("model", words(), true),
        Field::new("count", DataType::Int64, true),
        Field::new("parts", list, true),
    ]
    .into();
    let parts = Cell::List(vec![text("strap"), Cell::Null]);
    let values = [
        Cell::Struct(vec![text("phone"), Cell::Null, Cell::Null, Cell::Null]),
        Cell::Struct(vec![text("watch"), Cell::Null, Cell::Int(1), parts]),
    ];
    let values: Vec<&Cell<'_>> = values.iter().collect();
    let distinct = array(&DataType::Struct(fields), &values).unwrap();
    for row in 0..2 {
        let chosen = take(&distinct, &UInt32Array::from_value(row, 3), None).unwrap();
        let repeated = repeated(&distinct, row, 3).unwrap();
        assert_eq!(&repeated, &chosen);
    }
}

#[test]
fn values_weigh_what_they_take_up() {
    let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let mut column = Column::new(&texts).unwrap();
    let mut list = Cell::List(vec![text("a device"), text("a phone")]);
    let weight = 2 * size_of::<Cell<'_>>() + 15;
    assert_eq!(column.set(0, &mut list).unwrap(), weight);
    let again = column.set(1, &mut Cell::Known(0)).unwrap();
    assert_eq!(again, weight, "the texts are there again in each row");

    let members = vec![
        Field::new("name", words(), true),
        Field::new("size", DataType::Float64, true),
    ];
    let structs = DataType::Struct(Fields::from(members));
    let mut column = Column::new(&structs).unwrap();
    let mut value = Cell::Struct(vec![text("a device"), Cell::Float(1.0)]);
    assert!(column.set(0, &mut value).unwrap() > 8);
    assert_eq!(column.set(1, &mut Cell::Known(0)).unwrap(), 0, "words are not");

    let mut column = Column::new(&words()).unwrap();
    assert!(column.set(0, &mut text("bpm")).unwrap() > 6);
    assert_eq!(column.set(1, &mut text("bpm")).unwrap(), 0);
    assert_eq!(width(&structs), 4 + 8);
    assert_eq!(width(&texts), 4);
    assert_eq!(width(&DataType::Boolean), 1);
    assert_eq!(width(&DataType::FixedSizeBinary(16)), 16);
}

#[test]
fn an_empty_list_is_no_null_and_a_list_that_nobody_set_is_one() {
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let mut column = Column::new(&DataType::List(item)).unwrap();
    column
        .set(0, &mut Cell::List(vec![text("a"), Cell::Null]))
        .unwrap();
    column.set(1, &mut Cell::List(Vec::new())).unwrap();
    let array = column.finish(3).unwrap();
    let lists = array.as_list::<i32>();
    assert_eq!(
        (lists.value(0).len(), lists.value(1).len(), lists.is_null(2)),
        (2, 0, true)
    );
}

#[test]
fn a_cell_of_another_type_is_refused() {
    let mut column = Column::new(&DataType::Float64).unwrap();
    assert!(column.set(0, &mut text("72")).is_err());
    assert_eq!(column.finish(0).unwrap().len(), 0);
    assert!(Column::new(&DataType::Date32).is_err());
}
