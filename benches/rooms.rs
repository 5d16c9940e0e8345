//! How fast each room does its part, without HTTP: decode and validate, commit, write, scan, compute
//! series, encode.
//!
//! `cargo bench`; one room with `cargo bench -- scan`. For ratios against others see `benches/peers`.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]
#![expect(
    clippy::disallowed_methods,
    reason = "people and records of a benchmark may have any ids"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use almanac::catalog::Catalog;
use almanac::ingest::changes::Change;
use almanac::ingest::compile::CompiledType;
use almanac::ingest::context::{DecodeContext, Leave};
use almanac::ingest::decode::{DecodedRows, RecordDecoder};
use almanac::ingest::pressure::TailPressure;
use almanac::ingest::queue::{CommitQueue, Committer, QueueSettings};
use almanac::ingest::stores::{IntakeStores, Stores};
use almanac::ingest::upload::{PartitionChanges, Upload, Work};
use almanac::model::clock::SystemClock;
use almanac::model::grid::Grid;
use almanac::model::ids::{IdSource, PersonId, SystemIds, UploadId};
use almanac::model::permit::{OwnerAndReader, ReadPermit, Windows};
use almanac::model::registry::{DataType, Registry};
use almanac::model::time::{Instant, TimeRange};
use almanac::model::zone::Zone;
use almanac::output::{Chunks, OutputMethod, Progress, encoder};
use almanac::query::engine::{Engine, EngineSettings};
use almanac::query::records::RecordsSpec;
use almanac::query::series::{AskedSeries, Gaps, Measure, SeriesSpec};
use almanac::query::shape::IdForm;
use almanac::query::spill_files::SpillFiles;
use almanac::query::{Order, QueryCacheSizes, Questions, TypedPartition};
use almanac::store::files::PieceFiles;
use almanac::store::find::Finder;
use almanac::store::objects::{ObjectStorage, ObjectStoreSettings};
use almanac::store::piece::{Target, write_batch};
use almanac::store::snapshot::Snapshots;
use almanac::store::tail::{self, Packer};
use arrow::record_batch::RecordBatch;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

const MANY: usize = 100_000;
const CACHE: u64 = 64 << 20;

/// 2024-01-01 in microseconds.
const NEW_YEAR: i64 = 1_704_067_200_000_000;

const WATCH: &str = concat!(
    r#""source_properties":{"name":"Watch","version":"10.5","productType":"Watch6,2","#,
    r#""operatingSystemVersion":"10.5.0","sourceBundleIdentifier":"com.example.health"},"#,
    r#""device_properties":{"name":"Watch","model":"Watch","manufacturer":"Example","#,
    r#""hardwareVersion":"Watch6,2","softwareVersion":"10.5"}"#,
);

/// Heart rates of one person, eight seconds apart, as a phone would send them.
fn lines(count: usize) -> Vec<String> {
    lines_from(0, count)
}

/// The same from the `first` on.
fn lines_from(first: usize, count: usize) -> Vec<String> {
    let line = |number: usize| {
        let start = Instant::from_micros(NEW_YEAR + number as i64 * 8_000_000).to_rfc3339();
        let (id, value) = (Uuid::now_v7(), 60 + number % 40);
        let times = format!(r#""start_date":"{start}","end_date":"{start}""#);
        format!(r#"{{"uuid":"{id}",{times},"value":{value},"unit":"bpm",{WATCH}}}"#)
    };
    (first..first + count).map(line).collect()
}

struct HeartRate {
    compiled: Arc<CompiledType>,
    data_type: Arc<DataType>,
}

impl HeartRate {
    fn new() -> Self {
        let registry = Arc::new(Registry::builtin().unwrap());
        let data_type = Arc::clone(registry.get("HeartRate").unwrap());
        let compiled = Arc::new(CompiledType::new(Arc::clone(&data_type), registry).unwrap());
        Self { compiled, data_type }
    }

    fn decode(&self, lines: &[String]) -> DecodedRows {
        let context = DecodeContext {
            now: Instant::from_micros(NEW_YEAR + 86_400_000_000 * 366),
            ids: Arc::new(SystemIds::default()),
            source_prefix: Arc::from("com.almanac"),
            text_limit: 1 << 20,
            definition: None,
            value_limits: Arc::default(),
            leave: Leave::default(),
        };
        let mut decoder = RecordDecoder::new(Arc::clone(&self.compiled), context).unwrap();
        for (number, line) in lines.iter().enumerate() {
            decoder.push(number, line.as_bytes()).unwrap();
        }
        decoder.take().unwrap()
    }

    fn target(&self, person: PersonId) -> Target {
        Target {
            person,
            data_type: self.data_type.id.clone(),
            layout_version: self.data_type.layout.version,
        }
    }
}

fn decode(criterion: &mut Criterion) {
    let heart = HeartRate::new();
    let lines = lines(MANY);
    let mut group = criterion.benchmark_group("decode and validate");
    group
        .throughput(Throughput::Elements(MANY as u64))
        .sample_size(10);
    group.bench_function("heart rate", |bencher| {
        bencher.iter(|| heart.decode(black_box(&lines)));
    });
    group.finish();
}

/// A whole embedded installation below HTTP.
struct Installation {
    _directory: TempDir,
    objects: ObjectStorage,
    questions: Questions<()>,
    engine: Arc<Engine>,
    queue: CommitQueue,
}

impl Installation {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let address = format!("sqlite://{}", directory.path().join("catalogue.db").display());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let objects =
            ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
        let files = PieceFiles::new(objects.clone(), CACHE);
        let snapshots = Snapshots::new(catalog.clone(), CACHE);
        let stores = Stores {
            snapshots: snapshots.clone(),
            finder: Finder::new(files, CACHE),
            packer: Packer::default(),
        };
        let settings = EngineSettings {
            memory: 128 << 20,
            spill: directory.path().to_owned(),
            spill_limit: 1 << 30,
            deadline: Duration::from_mins(5),
            total_deadline: Duration::from_mins(5),
        };
        let engine = Arc::new(Engine::new(&settings, tokio::runtime::Handle::current()).unwrap());
        let questions = Questions::new(
            Arc::clone(&engine),
            catalog.clone(),
            snapshots,
            stores.finder.clone(),
            QueryCacheSizes {
                rollups: 32 << 20,
                decoded: 16 << 20,
                sources: 1 << 20,
            },
        );
        let committer = Committer {
            catalog: catalog.clone(),
            shared: IntakeStores {
                stores,
                objects: objects.clone(),
                ids: Arc::new(SystemIds::default()),
            },
            tail: TailPressure::new(catalog.clone(), 1 << 30),
            report: Box::new(|_| ()),
        };
        let (queue, _task) = CommitQueue::start(
            QueueSettings {
                waiting: 1024,
                waiting_bytes: 64 << 20,
                group: 1024,
                window: Duration::ZERO,
                size: 8 << 20,
                at_once: 8,
            },
            committer,
        );
        Self {
            _directory: directory,
            objects,
            questions,
            engine,
            queue,
        }
    }

    async fn put(&self, person: PersonId, data_type: &DataType, rows: DecodedRows) {
        let changes = PartitionChanges {
            data_type: data_type.id.clone(),
            layout: Arc::clone(&data_type.layout),
            changes: vec![Change::put(rows.rows, rows.given.into(), rows.undated.into())],
        };
        let upload = Upload {
            person,
            upload: UploadId(SystemIds::default().next()),
            key: None,
            work: Work::Small(vec![changes]),
            sources: Vec::new(),
            memory: None,
            held: None,
        };
        self.queue.commit(upload).await.unwrap();
    }

    async fn read(
        &self,
        permit: &ReadPermit<()>,
        data_type: &Arc<DataType>,
        ids: IdForm,
    ) -> Vec<RecordBatch> {
        let partition = TypedPartition::of(Arc::clone(data_type));
        let spec = RecordsSpec {
            conditions: Vec::new(),
            order: Order::Ascending,
            ids,
            limit: None,
            after: None,
            columns: None,
        };
        let prepared = self.questions.records(permit, &[partition], &spec).await.unwrap();
        let rows = self.engine.start(prepared.plan);
        rows.map(Result::unwrap).collect().await
    }
}

impl Installation {
    /// How many minutes `range` has, after all of them were computed.
    async fn series(&self, permit: &ReadPermit<()>, data_type: &Arc<DataType>, range: TimeRange) -> usize {
        let partition = TypedPartition::of(Arc::clone(data_type));
        let traits = data_type.metric.as_ref().unwrap();
        let spec = SeriesSpec {
            column: traits.value_column.clone(),
            grid: Grid::uniform(range, 60_000_000),
            zone: Zone::UTC,
            measure: Measure::of(traits),
            calculations: Vec::new(),
            gaps: Gaps::default(),
            chosen_sources: Vec::new(),
        };
        let asked = AskedSeries {
            permit,
            partition: &partition,
            conditions: &[],
            spec,
            stages: None,
        };
        let prepared = self.questions.series(asked).await.unwrap();
        let rows = self.engine.start(prepared.plan);
        rows.map(|batch| batch.unwrap().num_rows())
            .fold(0, |all, rows| async move { all + rows })
            .await
    }
}

fn commit(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let heart = HeartRate::new();
    let installation = runtime.block_on(Installation::open());
    let person = PersonId(Uuid::now_v7());
    let mut group = criterion.benchmark_group("commit, durable");
    group.sample_size(20);
    for waiting in [1, 64] {
        group.throughput(Throughput::Elements(waiting));
        group.bench_function(format!("{waiting} at once, a record each"), |bencher| {
            bencher.iter_batched(
                || -> Vec<DecodedRows> { (0..waiting).map(|_| heart.decode(&lines(1))).collect() },
                |requests| {
                    let puts = requests
                        .into_iter()
                        .map(|rows| installation.put(person, &heart.data_type, rows));
                    runtime.block_on(futures::future::join_all(puts))
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let heart = HeartRate::new();
    let rows = heart.decode(&lines(MANY)).rows;
    let small = rows.slice(0, 1000);
    let installation = runtime.block_on(Installation::open());
    let mut group = criterion.benchmark_group("write");
    group
        .throughput(Throughput::Elements(MANY as u64))
        .sample_size(10);
    group.bench_function("an object, synced", |bencher| {
        let target = || heart.target(PersonId(Uuid::now_v7()));
        bencher.iter(|| {
            runtime
                .block_on(write_batch(
                    &installation.objects,
                    &SystemIds::default(),
                    target(),
                    &rows,
                ))
                .unwrap()
        });
    });
    group.throughput(Throughput::Elements(1000));
    group.bench_function("a tail blob", |bencher| {
        bencher.iter(|| tail::encode(black_box(&small)).unwrap());
    });
    let (blob, checksum) = tail::encode(&small).unwrap();
    group.bench_function("a tail blob read back", |bencher| {
        bencher.iter(|| tail::decode(black_box(&blob), checksum).unwrap());
    });
    group.finish();
}

/// The permits of the owner and of somebody with whom all of `range` is shared, each with what to call it.
fn permits(owner: PersonId, data_type: &DataType, range: TimeRange) -> [(&'static str, ReadPermit<()>); 2] {
    let windows = Windows::new([range]);
    let own = ReadPermit::given(&(), owner, data_type.id.clone(), windows.clone());
    let reader = PersonId(Uuid::now_v7());
    let shared = ReadPermit::shared(
        &(),
        OwnerAndReader { owner, reader },
        data_type.id.clone(),
        windows,
    );
    [("", own), (", shared", shared)]
}

fn scan(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let heart = HeartRate::new();
    let installation = runtime.block_on(Installation::open());
    let person = PersonId(Uuid::now_v7());
    for part in lines(MANY).chunks(20_000) {
        runtime.block_on(installation.put(person, &heart.data_type, heart.decode(part)));
    }
    let range = |seconds: i64| {
        TimeRange::new(
            Instant::from_micros(NEW_YEAR),
            Instant::from_micros(NEW_YEAR + seconds * 1_000_000),
        )
        .unwrap()
    };
    let mut group = criterion.benchmark_group("scan");
    group.sample_size(20);
    for (name, seconds, rows) in [("an hour", 3_600, 450), ("everything", 8 * MANY as i64, MANY)] {
        group.throughput(Throughput::Elements(rows as u64));
        for (whose, permit) in permits(person, &heart.data_type, range(seconds)) {
            group.bench_function(format!("{name}{whose}"), |bencher| {
                bencher.iter(|| {
                    let read = installation.read(&permit, &heart.data_type, IdForm::Bytes);
                    let batches = runtime.block_on(read);
                    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
                });
            });
        }
    }
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let heart = HeartRate::new();
    let installation = runtime.block_on(Installation::open());
    let person = PersonId(Uuid::now_v7());
    runtime.block_on(installation.put(person, &heart.data_type, heart.decode(&lines(20_000))));
    let range = TimeRange::new(Instant::from_micros(NEW_YEAR), Instant::from_micros(i64::MAX)).unwrap();
    let mut group = criterion.benchmark_group("encode");
    group.sample_size(10);
    for method in OutputMethod::ALL {
        let frame = matches!(
            method,
            OutputMethod::Arrow | OutputMethod::Arrowraw | OutputMethod::Parquet
        );
        let ids = if frame { IdForm::Text } else { IdForm::Bytes };
        let [(_, own), _] = permits(person, &heart.data_type, range);
        let batches = runtime.block_on(installation.read(&own, &heart.data_type, ids));
        group.throughput(Throughput::Elements(20_000));
        group.bench_function(method.to_string(), |bencher| {
            bencher.iter(|| bytes_of(method, black_box(&batches)));
        });
    }
    group.finish();
}

/// Heart rates of nearly a year, 3.9 million, in windows of a minute; and a day of them.
fn series(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let heart = HeartRate::new();
    let installation = runtime.block_on(Installation::open());
    let person = PersonId(Uuid::now_v7());
    for part in 0..39 {
        let rows = heart.decode(&lines_from(part * MANY, MANY));
        runtime.block_on(installation.put(person, &heart.data_type, rows));
    }
    let mut group = criterion.benchmark_group("series");
    group.sample_size(10);
    for (name, days) in [("a day", 1), ("a year", 360)] {
        let end = Instant::from_micros(NEW_YEAR + days * 86_400_000_000);
        let range = TimeRange::new(Instant::from_micros(NEW_YEAR), end).unwrap();
        group.throughput(Throughput::Elements(days as u64 * 10_800));
        for (whose, permit) in permits(person, &heart.data_type, range) {
            group.bench_function(format!("{name}{whose}"), |bencher| {
                bencher.iter(|| {
                    let bins = runtime.block_on(installation.series(&permit, &heart.data_type, range));
                    assert_eq!(bins, days as usize * 1440);
                });
            });
        }
    }
    group.finish();
}

/// The length of the answer with `batches`.
fn bytes_of(method: OutputMethod, batches: &[RecordBatch]) -> usize {
    let mut form = encoder(method, &batches[0].schema(), &SpillFiles::default()).unwrap();
    let (mut out, mut length) = (Chunks::default(), 0);
    let mut send = |out: &mut Chunks, all| {
        while let Some(chunk) = out.take(all) {
            length += chunk.len();
        }
    };
    form.start(&mut out).unwrap();
    for batch in batches {
        form.batch(batch).unwrap();
        while form.write(&mut out).unwrap() == Progress::More {
            send(&mut out, false);
        }
    }
    while form.finish(&mut out).unwrap() == Progress::More {
        send(&mut out, false);
    }
    send(&mut out, true);
    length
}

criterion_group!(rooms, decode, commit, write, scan, series, encode);
criterion_main!(rooms);
