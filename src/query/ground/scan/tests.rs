//! What a scan gives is the same whether or not footers tell a part of it.

use datafusion::arrow::array::{
    ArrayRef, FixedSizeBinaryArray, Float64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Operator as Compares;
use datafusion::physical_expr::expressions::{binary, col, is_not_null, lit};
use datafusion::physical_plan::displayable;
use futures::TryStreamExt as _;
use proptest::prelude::*;
use uuid::Uuid;

use crate::catalog::records::{NewPlace, Stamp};
use crate::model::ids::{PersonId, RecordId, SystemIds};
use crate::model::registry::{TypeId, dictionary_text};
use crate::model::time::{Instant, TimeRange};
use crate::query::ground::files::Objects;
use crate::query::ground::key::key_schema;
use crate::query::ground::operator::is_sound;
use crate::store::arrange::sort_rows;
use crate::store::files::PieceFiles;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::outline::ObjectPlace;
use crate::store::piece::{Target, write_batch};
use crate::store::snapshot::{PieceContent, Snapshot, SnapshotPiece};

use super::*;

/// Which texts the rows of a piece have in a column.
#[derive(Clone, Copy, Debug)]
enum Texts {
    Same,
    OfPiece,
    Several,
    /// Longer than what a footer holds.
    Long,
    Sometimes,
    Never,
}

/// In which rows of a piece a structure is there.
#[derive(Clone, Copy, Debug)]
enum There {
    Always,
    Sometimes,
    Never,
}

#[derive(Clone, Debug)]
struct GivenPiece {
    rows: usize,
    /// Whether it begins after the piece before ends.
    follows: bool,
    /// Whether its first row does not count any more.
    first_is_dead: bool,
    word: Texts,
    text: Texts,
    members: [Texts; 3],
    about: There,
}

impl GivenPiece {
    /// A piece that one device wrote.
    const fn of_one(word: Texts) -> Self {
        Self {
            rows: 5,
            follows: true,
            first_is_dead: false,
            word,
            text: Texts::Several,
            members: [Texts::Same, Texts::Never, Texts::Same],
            about: There::Always,
        }
    }
}

fn inner() -> Fields {
    vec![Field::new("third", dictionary_text(), true)].into()
}

fn about() -> Fields {
    vec![
        Field::new("first", dictionary_text(), true),
        Field::new("second", DataType::Utf8, true),
        Field::new("inner", DataType::Struct(inner()), true),
    ]
    .into()
}

fn mixed() -> Fields {
    vec![
        Field::new("name", dictionary_text(), true),
        Field::new("amount", DataType::Float64, true),
    ]
    .into()
}

/// The columns of the key, and others of each kind.
fn storage() -> SchemaRef {
    let keys = key_schema();
    let marked = [("mark".to_owned(), "of the field".to_owned())].into();
    let others = [
        Field::new("value", DataType::Float64, true),
        Field::new("word", dictionary_text(), true).with_metadata(marked),
        Field::new("text", DataType::Utf8, true),
        Field::new("about", DataType::Struct(about()), true),
        Field::new("mixed", DataType::Struct(mixed()), true),
    ];
    let others = others.into_iter().map(Arc::new);
    Arc::new(Schema::new(
        keys.fields().iter().cloned().chain(others).collect::<Vec<_>>(),
    ))
}

fn texts(texts: Texts, piece: usize, rows: usize) -> ArrayRef {
    let text = |row: usize| match texts {
        Texts::Same => Some("same".to_owned()),
        Texts::OfPiece => Some(format!("piece {piece}")),
        Texts::Several => Some(format!("row {}", row % 3)),
        Texts::Long => Some("long".repeat(40)),
        Texts::Sometimes => row.is_multiple_of(2).then(|| "same".to_owned()),
        Texts::Never => None,
    };
    Arc::new((0..rows).map(text).collect::<StringArray>())
}

/// The rows of a piece of which the first begins at `from`.
fn batch(given: &GivenPiece, piece: usize, from: i64) -> RecordBatch {
    let rows = given.rows;
    let id = |row: usize| ((piece * 1_000 + row) as u128).to_be_bytes();
    let ids = FixedSizeBinaryArray::try_from_iter((0..rows).map(id)).unwrap();
    let times = |lasts: i64| {
        let times = (0..rows as i64).map(|row| from + row * 3 + lasts);
        Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")) as ArrayRef
    };
    let words = |of: Texts| cast(&texts(of, piece, rows), &dictionary_text()).unwrap();
    let values: ArrayRef = Arc::new(
        (0..rows)
            .map(|row| Some((row % 4) as f64))
            .collect::<Float64Array>(),
    );
    let [first, second, third] = given.members;
    let within = StructArray::new(inner(), vec![words(third)], None);
    let is_there = (0..rows).map(|row| match given.about {
        There::Always => true,
        There::Sometimes => row % 2 == 1,
        There::Never => false,
    });
    let whole = StructArray::new(
        about(),
        vec![words(first), texts(second, piece, rows), Arc::new(within)],
        Some(is_there.collect::<NullBuffer>()),
    );
    let numbered = StructArray::new(mixed(), vec![words(first), Arc::clone(&values)], None);
    let columns = vec![
        Arc::new(ids) as ArrayRef,
        times(0),
        times(1),
        values,
        words(given.word),
        texts(given.text, piece, rows),
        Arc::new(whole),
        Arc::new(numbered),
    ];
    sort_rows(&RecordBatch::try_new(storage(), columns).unwrap()).unwrap()
}

/// A partition in objects.
struct Bench {
    objects: Arc<Objects>,
    snapshot: Arc<Snapshot>,
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn of(pieces: &[GivenPiece]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = ObjectStoreSettings::Local(directory.path().to_owned());
        let objects = ObjectStorage::open(&settings).unwrap();
        let mut snapshot = Snapshot {
            person: PersonId(Uuid::now_v7()),
            data_type: TypeId::new("HeartRate"),
            stamp: Stamp::default(),
            records: 0,
            pieces: Vec::new(),
        };
        let mut from = 0;
        for (number, given) in pieces.iter().enumerate() {
            from += if given.follows { 1_000 } else { 7 };
            let rows = batch(given, number, from);
            let target = Target {
                person: snapshot.person,
                data_type: snapshot.data_type.clone(),
                layout_version: 1,
            };
            let written = write_batch(&objects, &SystemIds::default(), target, &rows)
                .await
                .unwrap();
            let [piece] = <[_; 1]>::try_from(written).unwrap();
            let NewPlace::Object { path, footer } = piece.place else {
                panic!("an object was written");
            };
            let dead = given
                .first_is_dead
                .then(|| RecordId(Uuid::from_u128(number as u128 * 1_000)));
            snapshot.pieces.push(SnapshotPiece {
                id: piece.id,
                rows: piece.rows,
                bytes: piece.bytes,
                bounds: piece.bounds,
                layout_version: piece.layout_version,
                checksum: piece.checksum,
                dead: dead.into_iter().collect(),
                content: PieceContent::Object(ObjectPlace::new(&path, piece.bytes, footer)),
            });
        }
        Self {
            objects: Arc::new(Objects::new(PieceFiles::new(objects, 1 << 20), 1 << 20)),
            snapshot: Arc::new(snapshot),
            _directory: directory,
        }
    }

    /// A scan of these columns, and those of the key.
    fn scan(&self, others: &[&str]) -> Scan {
        let storage = storage();
        let is_read = |name: &str| key_schema().index_of(name).is_ok() || others.contains(&name);
        let fields = storage.fields().iter().enumerate();
        let columns: Vec<usize> = fields
            .filter_map(|(place, field)| is_read(field.name()).then_some(place))
            .collect();
        Scan {
            objects: Arc::clone(&self.objects),
            snapshot: Arc::clone(&self.snapshot),
            schema: Arc::new(storage.project(&columns).unwrap()),
            columns,
            storage,
            selection: Selection {
                windows: [TimeRange::ALWAYS].into(),
                begins: None,
            },
            hint: None,
        }
    }
}

/// The plan by which rows are read that are not decoded.
async fn told(scan: &Scan) -> Plan {
    let chains = scan.chains();
    let mut plans = Vec::new();
    for chain in &chains {
        plans.push(scan.parquet(chain).await.unwrap());
    }
    scan.together(&chains, plans).unwrap()
}

async fn rows(plan: &Plan, schema: &SchemaRef) -> RecordBatch {
    assert!(is_sound(plan));
    let rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let batches: Vec<RecordBatch> = rows.try_collect().await.unwrap();
    for batch in &batches {
        assert_eq!(&batch.schema(), schema);
    }
    concat_batches(schema, &batches).unwrap()
}

/// The operators of a plan, without where files are.
fn operators(plan: &Plan) -> Vec<String> {
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let told = text.lines().map(|line| {
        let line = line.trim();
        match line.split_once(": ") {
            Some((name, _)) if !name.starts_with("Constants") => name.to_owned(),
            _ => line.to_owned(),
        }
    });
    told.collect()
}

fn any_texts() -> impl Strategy<Value = Texts> {
    prop_oneof![
        4 => Just(Texts::Same),
        1 => Just(Texts::OfPiece),
        1 => Just(Texts::Several),
        1 => Just(Texts::Long),
        1 => Just(Texts::Sometimes),
        2 => Just(Texts::Never),
    ]
}

fn any_given() -> impl Strategy<Value = GivenPiece> {
    let about = prop_oneof![4 => Just(There::Always), 1 => Just(There::Sometimes), 1 => Just(There::Never)];
    let texts = (any_texts(), any_texts(), [any_texts(), any_texts(), any_texts()]);
    let shape = (1_usize..30, prop::bool::weighted(0.8), prop::bool::weighted(0.1));
    (shape, texts, about).prop_map(|(shape, (word, text, members), about)| GivenPiece {
        rows: shape.0,
        follows: shape.1,
        first_is_dead: shape.2,
        word,
        text,
        members,
        about,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_are_the_same_whatever_footers_tell_of_them(
        pieces in prop::collection::vec(any_given(), 1..6),
        read in prop::sample::subsequence(vec!["value", "word", "text", "about", "mixed"], 0..=5),
        window in prop::option::of((0_i64..3_000, 1_i64..3_000)),
        hint in prop::option::of(0_usize..3),
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let bench = Bench::of(&pieces).await;
            let hints = [("text", Compares::Eq, lit("same")), ("value", Compares::Gt, lit(1.0)),
                ("text", Compares::NotEq, lit("row 1"))];
            let hint = hint.and_then(|number| hints.get(number));
            let mut read = read;
            read.extend(hint.map(|(column, ..)| column));
            let mut scan = bench.scan(&read);
            if let Some((from, length)) = window {
                let window =
                    TimeRange::between(Instant::from_micros(from), Instant::from_micros(from + length));
                scan.selection.windows = [window].into();
            }
            scan.hint = hint.map(|(column, compares, with)| {
                let storage = &scan.storage;
                binary(col(column, storage).unwrap(), *compares, Arc::clone(with), storage).unwrap()
            });
            let decoded = rows(&scan.undecoded().unwrap(), &scan.schema).await;
            prop_assert_eq!(rows(&told(&scan).await, &scan.schema).await, decoded);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn objects_of_which_footers_tell_the_same_are_read_together() {
    let bench = Bench::of(&vec![GivenPiece::of_one(Texts::Same); 40]).await;
    let scan = bench.scan(&["value", "word", "text", "about", "mixed"]);
    let plan = told(&scan).await;
    assert_eq!(
        operators(&plan),
        [
            "ConstantsExec: columns=[word, about]",
            "KnownOrderExec",
            "DataSourceExec"
        ]
    );
    assert_eq!(rows(&plan, &scan.schema).await.num_rows(), 200);
}

#[tokio::test]
async fn objects_of_which_footers_tell_something_else_are_read_in_turn() {
    let (same, other) = (
        GivenPiece::of_one(Texts::Same),
        GivenPiece::of_one(Texts::OfPiece),
    );
    let bench = Bench::of(&[same.clone(), other, same.clone(), same]).await;
    let scan = bench.scan(&["word"]);
    let plan = told(&scan).await;
    let alone = ["ConstantsExec: columns=[word]", "DataSourceExec"];
    let together = [
        "ConstantsExec: columns=[word]",
        "KnownOrderExec",
        "DataSourceExec",
    ];
    let expected = [["InTurnExec"].as_slice(), &alone, &alone, &together].concat();
    assert_eq!(operators(&plan), expected);
    let decoded = rows(&scan.undecoded().unwrap(), &scan.schema).await;
    assert_eq!(rows(&plan, &scan.schema).await, decoded);
}

#[tokio::test]
async fn what_a_condition_speaks_of_is_decoded() {
    let bench = Bench::of(&[GivenPiece::of_one(Texts::Same)]).await;
    let mut scan = bench.scan(&["word", "about"]);
    scan.hint = Some(is_not_null(col("word", &scan.storage).unwrap()).unwrap());
    let plan = told(&scan).await;
    assert_eq!(
        operators(&plan),
        ["ConstantsExec: columns=[about]", "DataSourceExec"]
    );
}

#[tokio::test]
async fn what_an_object_does_not_have_is_handed_out() {
    let bench = Bench::of(&[GivenPiece::of_one(Texts::Never)]).await;
    let mut scan = bench.scan(&["word", "about"]);
    assert_eq!(
        operators(&told(&scan).await),
        ["ConstantsExec: columns=[word, about]", "DataSourceExec"]
    );
    // Where a condition speaks of it, its reader knows what to put there.
    scan.hint = Some(is_not_null(col("word", &scan.storage).unwrap()).unwrap());
    assert_eq!(
        operators(&told(&scan).await),
        ["ConstantsExec: columns=[about]", "DataSourceExec"]
    );
}

#[tokio::test]
async fn nothing_stands_above_a_scan_of_which_footers_tell_nothing() {
    let bench = Bench::of(&[GivenPiece::of_one(Texts::Several)]).await;
    for read in [["word"].as_slice(), &["value"], &[], &["mixed"]] {
        let scan = bench.scan(read);
        assert_eq!(operators(&told(&scan).await), ["DataSourceExec"], "{read:?}");
    }
}
