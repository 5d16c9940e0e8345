//! What clients and jobs do at a node, each as one task that ends in an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Float64Type;
use futures::TryStreamExt as _;
use prometheus_client::metrics::counter::Counter;

use super::answer::{Answer, Seen};
use super::gates::{Gates, Opened, What};
use super::history::{Did, Effect, Key, Line, Token};
use super::node::{Node, Shared};
use super::records::{TYPES, person, record, start_of, type_ids};
use crate::ingest::accept::{Acceptance, Accepted};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader, RecordPosition};
use crate::ingest::context::{DecodeContext, Leave};
use crate::ingest::decompress::ContentEncoding;
use crate::ingest::memory::BodyMemory;
use crate::ingest::named_sources::MostSources;
use crate::ingest::queue::CommitError;
use crate::ingest::several::Several;
use crate::ingest::submit::submit;
use crate::ingest::tombstone::Target;
use crate::ingest::upload::{IdempotencyKey, Upload, Work};
use crate::model::clock::Clock as _;
use crate::model::ids::UploadId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::snapshot::{PieceContent, Snapshots};
use crate::upkeep::check::{self, check};
use crate::upkeep::scrub::Scrub;
use crate::upkeep::settled_partitions::SettledPartitions;
use crate::upkeep::sorted_rows::SortedRows;

/// Bytes of memory for one large body, so that a few dozen rows are a large one and are written
/// while more come.
const BODY_MEMORY: usize = 32 << 10;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Flush,
    Compact,
    Collect,
    Orphans,
    Manifests,
    Purge,
    Scrub,
    Check,
}

fn json(key: Key, token: Token) -> String {
    let start = Instant::from_micros(start_of(token));
    let id = match key {
        Key::Given(_, id) => format!("\"id\":\"{}\",", record(id).0),
        Key::New(..) => String::new(),
    };
    format!("{{{id}\"start_date\":\"{start}\",\"end_date\":\"{start}\",\"value\":{token},\"unit\":\"bpm\"}}")
}

const fn type_of(key: Key) -> usize {
    match key {
        Key::Given(data_type, _) | Key::New(data_type, _) => data_type,
    }
}

fn context(node: &Node) -> DecodeContext {
    DecodeContext {
        now: node.clock.now().max(Instant::from_micros(start_of(240))),
        ids: Arc::clone(&node.intake.ids),
        source_prefix: "com.almanac".into(),
        text_limit: 1 << 20,
        definition: None,
        value_limits: Arc::default(),
        leave: Leave::default(),
    }
}

/// A body of few lines, of any types.
pub(super) async fn write_small(shared: Shared, node: Arc<Node>, owner: usize, effect: Effect) -> Answer {
    let mut several = Several::new(person(owner));
    for (place, line) in effect.lines.iter().enumerate() {
        match line {
            Line::Put(key, token) => {
                let data_type = shared.registry.get(TYPES[type_of(*key)]).unwrap();
                let compiled = shared.compiled.get(data_type).unwrap();
                let text = json(*key, *token);
                several
                    .put(
                        &compiled,
                        &context(&node),
                        RecordPosition::Line(place),
                        text.as_bytes(),
                    )
                    .unwrap();
            }
            Line::Delete(key) => {
                let data_type = shared.registry.get(TYPES[type_of(*key)]).unwrap();
                let from = several.list_for(vec![Target {
                    data_type: data_type.id.clone(),
                    layout: Arc::clone(&data_type.layout),
                    definition: None,
                }]);
                let Key::Given(_, id) = key else {
                    panic!("what came without an id is not deleted")
                };
                several
                    .delete(from, RecordPosition::Line(place), record(*id))
                    .unwrap();
            }
        }
    }
    let (changes, seen) = several.finish().unwrap();
    let upload = Upload {
        person: person(owner),
        upload: UploadId(node.intake.ids.next()),
        key: effect.key.map(key_of),
        work: Work::Small(changes),
        sources: seen.sources.into_values().collect(),
        memory: None,
        held: None,
    };
    commit(&node, upload).await
}

/// A body of many lines of one type that comes in parts.
pub(super) async fn write_large(
    shared: Shared,
    node: Arc<Node>,
    owner: usize,
    effect: Effect,
    breaks_off: bool,
) -> Answer {
    let data_type = shared
        .registry
        .get(TYPES[type_of(key_of_line(effect.lines[0]))])
        .unwrap();
    let compiled = shared.compiled.get(data_type).unwrap();
    let memory = BodyMemory::new(BODY_MEMORY, Duration::from_hours(1));
    let limits = BodyLimits {
        body: 1 << 30,
        line: 1 << 20,
    };
    let mut reader = BodyReader::new(BodyForm::Lines, ContentEncoding::Identity, limits).unwrap();
    let allowance = memory.allowance(person(owner));
    let mut acceptance = Acceptance::new(
        node.intake.clone(),
        person(owner),
        compiled,
        context(&node),
        allowance,
        MostSources::ANY,
    )
    .unwrap();
    let parts = effect.lines.chunks(effect.lines.len().div_ceil(4));
    for (number, part) in parts.enumerate() {
        if wait(&shared.gates, &node).await != Opened::Goes || (breaks_off && number == 3) {
            acceptance.abandon().await;
            return Answer::Refused("the client broke off".to_owned());
        }
        let mut text = String::new();
        for line in part {
            if let Line::Put(key, token) = line {
                text.push_str(&json(*key, *token));
                text.push('\n');
            }
        }
        if let Err(error) = acceptance.feed(&mut reader, text.as_bytes()).await {
            acceptance.abandon().await;
            return Answer::Refused(error.to_string());
        }
    }
    let recorded = match acceptance.finish(reader).await {
        Ok((Accepted::Rows(recorded), _)) => recorded,
        Ok((Accepted::Deletions(..), _)) => panic!("a body of records is no body of deletions"),
        Err(error) => return Answer::Refused(error.to_string()),
    };
    let upload = Upload {
        person: person(owner),
        upload: UploadId(node.intake.ids.next()),
        key: effect.key.map(key_of),
        work: recorded.work,
        sources: recorded.sources,
        memory: Some(recorded.memory),
        held: None,
    };
    commit(&node, upload).await
}

async fn wait(gates: &Gates, node: &Node) -> Opened {
    gates.pass(node.life, What::Client, "").await
}

const fn key_of_line(line: Line) -> Key {
    match line {
        Line::Put(key, _) | Line::Delete(key) => key,
    }
}

fn key_of((key, body): (u32, u32)) -> IdempotencyKey {
    let mut fingerprint = [0; 32];
    fingerprint[..4].copy_from_slice(&body.to_le_bytes());
    IdempotencyKey {
        key: format!("key {key}"),
        fingerprint,
    }
}

async fn commit(node: &Node, upload: Upload) -> Answer {
    let submitted = submit(&node.commits, &node.stores.catalog, &node.intake.objects, upload).await;
    match submitted {
        Ok(receipt) if receipt.repeated => Answer::Wrote(Did::Repeated),
        Ok(receipt) => receipt.effect.map_or_else(
            || Answer::Wrong("what was done is not counted".to_owned()),
            |counted| Answer::Wrote(Did::Happened(counted)),
        ),
        Err(CommitError::KeyReused) => Answer::Wrote(Did::KeyReused),
        Err(CommitError::Unknown(why)) => Answer::Unknown(why),
        Err(error) => Answer::Refused(error.to_string()),
    }
}

/// Reads everything of a person, as of one moment.
pub(super) async fn read(node: Arc<Node>, owner: usize) -> Answer {
    match read_all(&node, &node.stores.snapshots, owner).await {
        Ok(Ok(seen)) => Answer::Read(seen),
        Ok(Err(wrong)) => Answer::Wrong(wrong),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

/// The inner error says what contradicts itself in what was read without an error.
pub(super) async fn read_all(
    node: &Node,
    snapshots: &Snapshots,
    owner: usize,
) -> Result<Result<Seen, String>, StoreError> {
    let mut seen = Seen::default();
    for (number, snapshot) in snapshots
        .get(person(owner), &type_ids())
        .await?
        .iter()
        .enumerate()
    {
        let mut count = 0;
        for piece in &snapshot.pieces {
            let batches: Vec<RecordBatch> = match &piece.content {
                PieceContent::Tail(rows) => vec![rows.batch().clone()],
                PieceContent::Object(place) => {
                    let sorted = SortedRows::of_object(&node.stores.files, place, Vec::new().into()).await?;
                    sorted.batches.try_collect().await?
                }
            };
            for batch in batches {
                let keys = KeyColumns::of(&batch)?;
                let Some(values) = batch.column_by_name("value") else {
                    return Ok(Err("a piece has no values".to_owned()));
                };
                let values = values.as_primitive::<Float64Type>();
                for row in (0..keys.len()).filter(|row| piece.dead.binary_search(&keys.id(*row)).is_err()) {
                    let token = values.value(row) as Token;
                    let bits = keys.id(row).0.as_u128();
                    let key = if (0x1000..0x1100).contains(&bits) {
                        Key::Given(number, (bits - 0x1000) as u8)
                    } else {
                        Key::New(number, token)
                    };
                    if keys.starts.value(row) != start_of(token) {
                        return Ok(Err(format!("{key:?} does not hold what was sent")));
                    }
                    if seen.rows.insert(key, token).is_some() {
                        return Ok(Err(format!("{key:?} is there twice")));
                    }
                    count += 1;
                }
            }
        }
        if snapshot.records != count {
            let counted = format!("{} records are counted and {count} are there", snapshot.records);
            return Ok(Err(counted));
        }
        seen.stamps.push(snapshot.stamp);
    }
    Ok(Ok(seen))
}

/// Which keys of a person were accepted, with which bodies.
pub(super) async fn accepted(node: &Node, owner: usize, keys: u32) -> BTreeMap<u32, u32> {
    let mut accepted = BTreeMap::new();
    for key in 0..keys {
        let name = format!("key {key}");
        let found = node.stores.catalog.upload_for_key(person(owner), &name);
        if let Some(kept) = found.await.unwrap() {
            let body = u32::from_le_bytes(kept.fingerprint[..4].try_into().unwrap());
            accepted.insert(key, body);
        }
    }
    accepted
}

/// One round of a background job.
pub(super) async fn work(node: Arc<Node>, job: Job) -> Answer {
    let upkeep = &node.upkeep;
    let done = match job {
        Job::Flush => upkeep.flush_due().await,
        Job::Compact => upkeep.compact_due(&mut SettledPartitions::default()).await,
        Job::Collect => upkeep.collect_due().await,
        Job::Orphans => upkeep.search_orphans().await,
        Job::Manifests => upkeep.write_manifests().await,
        Job::Purge => upkeep.purge_due().await,
        Job::Scrub => Scrub::default().step(&node.stores, &Counter::default()).await,
        Job::Check => return complaints(&node).await,
    };
    match done {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Failed(error.to_string()),
    }
}

async fn complaints(node: &Node) -> Answer {
    let told = std::sync::Mutex::new(Vec::new());
    let tell = |what| {
        if let check::CheckProgress::Wrong(what) = what {
            told.lock().unwrap().push(what);
        }
    };
    match check(&node.stores, &tell).await {
        Ok(_) => Answer::Complaints(told.into_inner().unwrap()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
