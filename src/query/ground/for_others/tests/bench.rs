//! A store with rows of two people, and questions to it.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt as _;
use uuid::Uuid;

use crate::catalog::Catalog;
use crate::catalog::records::{Commit, PartitionChange, SeenSource};
use crate::model::clock::SystemClock;
use crate::model::ids::{PersonId, PieceId, SystemIds};
use crate::model::permit::{ListPermit, OwnerAndReader, ReadPermit, Visible, Windows};
use crate::model::registry::{DataType, Registry, TypeId};
use crate::model::time::{Instant, TimeRange};
use crate::people::annotations::Annotations;
use crate::people::documents::Documents;
use crate::query::ground::operator::Plan;
use crate::query::places::Granted;
use crate::query::test_engine::TestEngine;
use crate::query::{Prepared, Questions, TypedPartition};
use crate::store::arrange::{sort_rows, with_columns};
use crate::store::files::PieceFiles;
use crate::store::piece::{Target, write_batch};
use crate::store::tail;

use super::given::GivenRow;

/// Decides about everything, in these tests.
pub(super) struct Anybody;

/// Who reads whose rows.
#[derive(Clone, Debug)]
pub(super) enum View {
    /// Somebody else reads, and was granted these windows.
    Shared(PersonId, Windows),
    /// The person's own.
    Own(PersonId),
}

impl View {
    pub(super) const fn person(&self) -> PersonId {
        match self {
            Self::Shared(person, _) | Self::Own(person) => *person,
        }
    }

    /// What may be read of a type in `range`.
    pub(super) fn permit(&self, data_type: &str, range: TimeRange) -> ReadPermit<Anybody> {
        let data_type = TypeId::new(data_type);
        match self {
            Self::Shared(owner, granted) => ReadPermit::shared(
                &Anybody,
                OwnerAndReader {
                    owner: *owner,
                    reader: PersonId(Uuid::from_u128(7)),
                },
                data_type,
                granted.within(range),
            ),
            Self::Own(owner) => ReadPermit::given(&Anybody, *owner, data_type, Windows::new([range])),
        }
    }

    pub(super) fn listing(&self, range: TimeRange) -> ListPermit<Anybody> {
        match self {
            Self::Shared(owner, granted) => {
                ListPermit::shared(&Anybody, *owner, Visible::EveryType(granted.within(range)))
            }
            Self::Own(owner) => {
                ListPermit::given(&Anybody, *owner, Visible::EveryType(Windows::new([range])))
            }
        }
    }
}

pub(super) struct Bench {
    pub(super) questions: Questions<Anybody>,
    pub(super) registry: Registry,
    catalog: Catalog,
    files: PieceFiles,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let TestEngine {
            questions,
            catalog,
            files,
            directory,
            ..
        } = TestEngine::start().await;
        Self {
            questions,
            registry: Registry::builtin().unwrap(),
            catalog,
            files,
            _directory: directory,
        }
    }

    pub(super) fn data_type(&self, name: &str) -> Arc<DataType> {
        Arc::clone(self.registry.get(name).unwrap())
    }

    pub(super) fn partition(&self, name: &str) -> TypedPartition {
        TypedPartition {
            data_type: self.data_type(name),
            id: TypeId::new(name),
            definitions: None,
        }
    }

    /// Annotations of which there are none yet: records name their definitions all the same.
    pub(super) fn annotations(&self) -> Annotations {
        let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
        let documents = Documents::new(self.catalog.clone(), clock, ids);
        Annotations::new(documents, 10, "com.almanac".into(), 1 << 20)
    }

    pub(super) fn granted(&self, view: &View, name: &str, range: TimeRange) -> Granted<Anybody> {
        Granted {
            permit: view.permit(name, range),
            partition: self.partition(name),
        }
    }

    /// A new person with these rows, in pieces: every other one an object.
    pub(super) async fn person(&self, rows: &[(&str, Vec<Vec<GivenRow>>)]) -> PersonId {
        let person = PersonId(Uuid::now_v7());
        for (name, pieces) in rows {
            let batches: Vec<RecordBatch> = pieces
                .iter()
                .map(|piece| super::given::batch(name, piece))
                .collect();
            self.store(person, name, &batches).await;
        }
        person
    }

    pub(super) async fn store(&self, person: PersonId, name: &str, pieces: &[RecordBatch]) {
        let data_type = self.data_type(name);
        let mut add = Vec::new();
        for (number, batch) in pieces
            .iter()
            .enumerate()
            .filter(|(_, piece)| piece.num_rows() > 0)
        {
            let batch = sort_rows(&with_columns(batch, &data_type.layout.storage).unwrap()).unwrap();
            if number % 2 == 0 {
                let target = Target {
                    person,
                    data_type: data_type.id.clone(),
                    layout_version: 1,
                };
                let objects = self.files.objects();
                add.extend(
                    write_batch(objects, &SystemIds::default(), target, &batch)
                        .await
                        .unwrap(),
                );
            } else {
                add.push(tail::piece(PieceId(Uuid::now_v7()), &batch, 1).unwrap());
            }
        }
        if add.is_empty() {
            return;
        }
        let change = PartitionChange {
            person,
            data_type: data_type.id.clone(),
            expected: None,
            records_delta: add.iter().map(|piece| piece.rows).sum(),
            add,
            dead: Vec::new(),
            updates: 1,
        };
        let sources = (0..4).map(|number| SeenSource {
            person,
            key: format!("source {number}"),
            name: None,
        });
        let commit = Commit {
            changes: vec![change],
            sources: sources.collect(),
            ..Commit::default()
        };
        self.catalog.commit(commit).await.unwrap();
    }

    /// The sources of a person in the order of their names, so that everybody's stand alike.
    pub(super) async fn sources(&self, person: PersonId) -> Vec<Uuid> {
        let mut known = self.catalog.sources_of(person).await.unwrap();
        known.sort_by(|one, other| one.key.cmp(&other.key));
        known.into_iter().map(|source| source.id).collect()
    }

    pub(super) async fn run(&self, plan: Plan) -> RecordBatch {
        let schema = plan.schema();
        let rows = self.questions.engine.start(plan);
        let batches: Vec<RecordBatch> = rows.try_collect().await.unwrap();
        concat_batches(&schema, &batches).unwrap()
    }

    /// The rows of an answer as texts, without ids.
    pub(super) async fn told(&self, prepared: Prepared) -> Vec<Vec<(String, String)>> {
        texts(&self.run(prepared.plan).await)
    }
}

/// Columns that name a record: a part has the id of its whole, and the copy cannot hold that twice.
const IDS: [&str; 5] = [
    "id",
    "uuid",
    "platform_workout_id",
    "calendar_event_id",
    "source_id",
];

pub(super) fn texts(rows: &RecordBatch) -> Vec<Vec<(String, String)>> {
    let options = FormatOptions::default().with_null("null");
    let schema = rows.schema();
    let shown: Vec<usize> = (0..rows.num_columns())
        .filter(|index| !IDS.contains(&schema.field(*index).name().as_str()))
        .collect();
    let formatters: Vec<ArrayFormatter<'_>> = shown
        .iter()
        .map(|index| ArrayFormatter::try_new(rows.column(*index).as_ref(), &options).unwrap())
        .collect();
    (0..rows.num_rows())
        .map(|row| {
            let cells = shown.iter().zip(&formatters);
            cells
                .map(|(index, column)| (schema.field(*index).name().clone(), column.value(row).to_string()))
                .collect()
        })
        .collect()
}

/// The words of a text: numbers, and what stands between them. A cell may be a list of structs.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split_inclusive([' ', ',', '[', ']', '{', '}'])
}

/// Numbers may differ in their last digits: a part of a cut part is rounded twice.
fn words_same(one: &str, other: &str) -> bool {
    let number = |word: &str| -> Option<(f64, usize)> {
        let bare = word.trim_end_matches([' ', ',', '[', ']', '{', '}']);
        Some((bare.parse().ok()?, word.len() - bare.len()))
    };
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0);
    one == other
        || matches!(
            (number(one), number(other)),
            (Some((one, one_mark)), Some((other, other_mark))) if one_mark == other_mark && close(one, other)
        )
}

pub(super) fn assert_same(question: &str, shared: &[Vec<(String, String)>], copy: &[Vec<(String, String)>]) {
    let same = |one: &(String, String), other: &(String, String)| {
        one.0 == other.0
            && (one.1 == other.1
                || words(&one.1).count() == words(&other.1).count()
                    && words(&one.1)
                        .zip(words(&other.1))
                        .all(|(one, other)| words_same(one, other)))
    };
    let rows_same = |one: &Vec<(String, String)>, other: &Vec<(String, String)>| {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
    };
    let differs = shared
        .iter()
        .zip(copy)
        .position(|(one, other)| !rows_same(one, other));
    let row = differs.unwrap_or_else(|| shared.len().min(copy.len()));
    assert!(
        differs.is_none() && shared.len() == copy.len(),
        "{question}: {} rows shared, {} of the copy; row {row} is\n{:?}\nand of the copy\n{:?}",
        shared.len(),
        copy.len(),
        shared.get(row),
        copy.get(row)
    );
}

pub(super) fn range(start: i64, end: i64) -> TimeRange {
    TimeRange::between(Instant::from_micros(start), Instant::from_micros(end))
}
