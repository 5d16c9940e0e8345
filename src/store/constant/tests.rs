//! What footers that are made by hand tell of their columns.

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{Fields, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData};
use parquet::file::statistics::ValueStatistics;

use super::*;

/// Rows of each row group.
const ROWS: u64 = 10;

type Said = Option<Statistics>;

/// A footer that says something of each leaf in each row group.
fn footer(column: &Field, groups: &[Vec<Said>]) -> ParquetMetaData {
    let schema = Schema::new(vec![column.clone()]);
    let leaves = Arc::new(ArrowSchemaConverter::new().convert(&schema).unwrap());
    let group = |said: &Vec<Said>| {
        assert_eq!(said.len(), leaves.num_columns());
        let chunks = leaves.columns().iter().zip(said).map(|(leaf, said)| {
            let chunk = ColumnChunkMetaData::builder(Arc::clone(leaf));
            let chunk = match said {
                Some(said) => chunk.set_statistics(said.clone()),
                None => chunk,
            };
            chunk.build().unwrap()
        });
        let group = RowGroupMetaData::builder(Arc::clone(&leaves)).set_num_rows(ROWS.cast_signed());
        group.set_column_metadata(chunks.collect()).build().unwrap()
    };
    let rows = groups.len() as i64 * ROWS.cast_signed();
    let file = FileMetaData::new(2, rows, None, None, Arc::clone(&leaves), None);
    ParquetMetaData::new(file, groups.iter().map(group).collect())
}

fn constant_of(column: &Field, groups: &[Vec<Said>]) -> Option<Constant> {
    Constant::from_footer(&footer(column, groups), &mut Vec::new(), column)
}

fn bounds(least: &str, greatest: &str, nulls: Option<u64>) -> ValueStatistics<ByteArray> {
    let (least, greatest) = (ByteArray::from(least), ByteArray::from(greatest));
    ValueStatistics::new(Some(least), Some(greatest), None, nulls, false)
}

/// Every row has this text.
#[expect(clippy::unnecessary_wraps, reason = "of some leaves nothing is said")]
fn only(text: &str) -> Said {
    Some(bounds(text, text, Some(0)).into())
}

/// So many rows have nothing, and the others nothing that is known.
#[expect(clippy::unnecessary_wraps, reason = "of some leaves nothing is said")]
fn nulls(nulls: u64) -> Said {
    Some(ValueStatistics::<ByteArray>::new(None, None, None, Some(nulls), false).into())
}

fn words(name: &str) -> Field {
    let data_type = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Field::new(name, data_type, true)
}

fn structure(name: &str, members: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(members.into()), true)
}

fn watch() -> Constant {
    Constant::Text("watch".to_owned())
}

#[test]
fn a_text_is_told_that_is_the_same_in_every_row_group() {
    for column in [words("source"), Field::new("source", DataType::Utf8, true)] {
        assert_eq!(constant_of(&column, &[vec![only("watch")]]), Some(watch()));
        let three = [(); 3].map(|()| vec![only("watch")]);
        assert_eq!(constant_of(&column, &three), Some(watch()));
        assert_eq!(
            constant_of(&column, &[vec![only("watch")], vec![only("phone")]]),
            None
        );
        assert_eq!(
            constant_of(&column, &[vec![Some(bounds("phone", "watch", Some(0)).into())]]),
            None
        );
        assert_eq!(constant_of(&column, &[]), None);
        let empty = Some(Constant::Text(String::new()));
        assert_eq!(constant_of(&column, &[vec![only("")]]), empty);
    }
}

#[test]
fn what_is_not_said_exactly_is_not_told() {
    let column = words("source");
    let same = || bounds("watch", "watch", Some(0));
    // The bounds that older writers wrote are in no certain order.
    let watch = || Some(ByteArray::from("watch"));
    let unordered = ValueStatistics::new(watch(), watch(), None, Some(0), true);
    for said in [
        None,
        Some(same().with_min_is_exact(false).into()),
        Some(same().with_max_is_exact(false).into()),
        Some(bounds("watch", "watch", None).into()),
        Some(ValueStatistics::<ByteArray>::new(None, None, None, Some(0), false).into()),
        Some(unordered.into()),
        Some(bounds("watch", "watch", Some(1)).into()),
        nulls(ROWS - 1),
        nulls(ROWS + 1),
        Some(Statistics::int64(Some(1), Some(1), None, Some(0), false)),
    ] {
        assert_eq!(constant_of(&column, &[vec![said.clone()]]), None, "{said:?}");
        assert_eq!(
            constant_of(&column, &[vec![only("watch")], vec![said.clone()]]),
            None,
            "{said:?}"
        );
    }
}

#[test]
fn a_text_that_is_missing_from_every_row_is_told() {
    let column = words("source");
    assert_eq!(constant_of(&column, &[vec![nulls(ROWS)]]), Some(Constant::Null));
    assert_eq!(
        constant_of(&column, &[vec![nulls(ROWS)], vec![nulls(ROWS)]]),
        Some(Constant::Null)
    );
    assert_eq!(
        constant_of(&column, &[vec![nulls(ROWS)], vec![only("watch")]]),
        None
    );
    assert_eq!(
        constant_of(&column, &[vec![only("watch")], vec![nulls(ROWS)]]),
        None
    );
    let must = column.with_nullable(false);
    assert_eq!(constant_of(&must, &[vec![nulls(ROWS)]]), None);
}

#[test]
fn a_structure_is_told_where_each_of_its_members_is_and_one_shows_that_it_is_there() {
    let column = structure("device", vec![words("name"), words("model")]);
    let of = |name: Said, model: Said| constant_of(&column, &[vec![name, model]]);
    let members = |name, model| Some(Constant::Members(vec![name, model]));
    assert_eq!(of(only("watch"), only("watch")), members(watch(), watch()));
    assert_eq!(of(only("watch"), nulls(ROWS)), members(watch(), Constant::Null));
    assert_eq!(of(nulls(ROWS), only("watch")), members(Constant::Null, watch()));
    // The structures are missing, or only their members are.
    assert_eq!(of(nulls(ROWS), nulls(ROWS)), None);
    // The structure is missing from three rows.
    assert_eq!(of(nulls(3), nulls(3)), None);
    assert_eq!(of(only("watch"), nulls(3)), None);
    assert_eq!(of(only("watch"), None), None);
}

#[test]
fn a_structure_within_another_shows_that_both_are_there() {
    let inner = structure("inner", vec![words("name")]);
    let column = structure("outer", vec![inner, words("name")]);
    let of = |inner: Said, name: Said| constant_of(&column, &[vec![inner, name]]);
    let within = Constant::Members(vec![watch()]);
    let phone = Constant::Text("phone".to_owned());
    assert_eq!(
        of(only("watch"), only("phone")),
        Some(Constant::Members(vec![within.clone(), phone]))
    );
    assert_eq!(
        of(only("watch"), nulls(ROWS)),
        Some(Constant::Members(vec![within, Constant::Null]))
    );
    assert_eq!(of(nulls(ROWS), only("phone")), None);
}

#[test]
fn only_texts_and_structures_of_texts_are_possible() {
    let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
    let of =
        |member: DataType| DataType::Struct(vec![words("name"), Field::new("other", member, true)].into());
    for possible in [
        DataType::Utf8,
        words("name").data_type().clone(),
        of(DataType::Utf8),
    ] {
        assert!(Constant::is_possible(&possible), "{possible}");
        assert!(!Constant::is_possible(&list(possible.clone())), "{possible}");
        assert!(!Constant::is_possible(&of(list(possible))));
    }
    let bytes = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let nothing = DataType::Struct(Fields::empty());
    for other in [
        DataType::Float64,
        DataType::Int64,
        DataType::Boolean,
        bytes,
        nothing,
    ] {
        assert!(!Constant::is_possible(&other), "{other}");
        assert!(!Constant::is_possible(&of(other)));
    }
}

#[test]
fn rows_have_the_type_that_is_asked_for() {
    let column = structure(
        "device",
        vec![words("name"), Field::new("model", DataType::Utf8, true)],
    );
    let constant = Constant::Members(vec![watch(), Constant::Null]);
    let rows = constant.rows(column.data_type(), 3).unwrap();
    assert_eq!((rows.data_type(), rows.len()), (column.data_type(), 3));
    assert_eq!(rows.null_count(), 0);
    let [name, model] = rows.as_struct().columns() else {
        panic!("two members");
    };
    let names = name
        .as_dictionary::<Int32Type>()
        .downcast_dict::<StringArray>()
        .unwrap();
    assert!(names.into_iter().eq([Some("watch"); 3]));
    assert_eq!(model.null_count(), 3);
    assert!(watch().rows(column.data_type(), 3).is_err());
    assert!(constant.rows(&DataType::Utf8, 3).is_err());
}
