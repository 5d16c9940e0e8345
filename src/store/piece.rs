//! Writes pieces as Parquet objects: takes sorted rows, and returns pieces to be registered, one per calendar
//! year (UTC) of their start.
//!
//! Objects are durable when `finish` returns, and nothing refers to them until a commit names them; without
//! one they are orphans, which upkeep collects.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Datelike as _};

use super::arrange::{KeyColumns, present_columns, sort_rows, with_columns};
use super::blocking::run_blocking;
use super::encoding::{Ahead, Encoder};
pub use super::encoding::{ROW_GROUP_ROWS, Target};
use super::errors::StoreError;
use super::folder_names::DATA_FOLDER;
use super::objects::{ObjectStorage, ObjectWriter};
use super::rollups::keeping::Keeping;
use crate::catalog::records::{Bounds, NewPiece, NewPlace};
use crate::model::ids::{IdSource, PersonId, PieceId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;

/// Writes sorted rows batch by batch, and holds one row group in memory.
pub struct PieceWriter<'a> {
    objects: &'a ObjectStorage,
    ids: &'a dyn IdSource,
    target: Target,
    schema: SchemaRef,
    /// Whether all rows come in one batch.
    is_one_batch: bool,
    open: Option<OpenPiece>,
    done: Vec<NewPiece>,
    keeps_rollups: bool,
    last: Option<(i64, i64, [u8; 16])>,
}

struct OpenPiece {
    id: PieceId,
    path: String,
    /// The first moment of the next year.
    until: i64,
    /// Boxed, because it moves to a thread that may block and back, and has some kilobytes.
    encoder: Box<Encoder>,
    writer: ObjectWriter,
    rows: i64,
    bounds: Bounds,
}

impl<'a> PieceWriter<'a> {
    /// `schema`: the columns to write, best only those that have a value in some row. Batches may have more
    /// or fewer.
    pub fn new(objects: &'a ObjectStorage, ids: &'a dyn IdSource, target: Target, schema: SchemaRef) -> Self {
        Self {
            objects,
            ids,
            target,
            schema,
            is_one_batch: false,
            open: None,
            done: Vec::new(),
            keeps_rollups: false,
            last: None,
        }
    }

    /// This writer, which keeps rollups in each object: for objects that stay for long.
    #[must_use]
    pub fn keeping_rollups(self) -> Self {
        Self {
            keeps_rollups: true,
            ..self
        }
    }

    /// Takes the next rows, none of which may come before those already taken.
    pub async fn push(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = with_columns(batch, &self.schema)?;
        let keys = KeyColumns::of(&batch)?;
        let follows = self
            .last
            .as_ref()
            .is_none_or(|(start, end, id)| (*start, *end, id.as_slice()) <= keys.key(0));
        if !follows || !keys.is_sorted() {
            return Err(StoreError::rows("they are not sorted by start, end and id"));
        }
        let last = keys.len() - 1;
        self.last = Some((
            keys.starts.value(last),
            keys.ends.value(last),
            *keys.id(last).as_bytes(),
        ));

        let mut from = 0;
        while from < keys.len() {
            let starts = keys.starts.values().get(from..).unwrap_or_default();
            let rows_before = |until: i64| starts.partition_point(|start| *start < until);
            let length = match &self.open {
                Some(open) => rows_before(open.until),
                None => {
                    rows_before(self.open(keys.starts.value(from), &batch.slice(from, starts.len()))?).max(1)
                }
            };
            if length == 0 {
                self.close().await?;
                continue;
            }
            self.write(batch.slice(from, length)).await?;
            from += length;
        }
        Ok(())
    }

    /// Makes the last object durable; returns the pieces in the order of their rows.
    pub async fn finish(mut self) -> Result<Vec<NewPiece>, StoreError> {
        self.close().await?;
        Ok(self.done)
    }

    fn open(&mut self, start: i64, sample: &RecordBatch) -> Result<i64, StoreError> {
        let (year, until) = year_of(start);
        let id = PieceId(self.ids.next());
        let path = object_path(self.target.person, &self.target.data_type, year, id);
        let ahead = if self.is_one_batch {
            Ahead::All(sample)
        } else {
            Ahead::Some(sample)
        };
        let rollups = self.keeps_rollups.then(|| Keeping::of(&self.schema)).flatten();
        let encoder = Encoder::new(&self.target, &id.to_string(), &self.schema, ahead)?;
        let encoder = Box::new(encoder.keeping(rollups));
        let writer = self.objects.upload(&path)?;
        let bounds = Bounds {
            min_start: Instant::from_micros(start),
            max_start: Instant::from_micros(start),
            max_end: Instant::from_micros(start),
        };
        self.open = Some(OpenPiece {
            id,
            path,
            until,
            encoder,
            writer,
            rows: 0,
            bounds,
        });
        Ok(until)
    }

    async fn write(&mut self, rows: RecordBatch) -> Result<(), StoreError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        if let Some(bounds) = KeyColumns::of(&rows)?.bounds() {
            open.bounds = if open.rows == 0 {
                bounds
            } else {
                open.bounds.union(bounds)
            };
        }
        open.rows += rows.num_rows() as i64;
        let (encoder, full_groups) = run_blocking::<_, StoreError>(move || {
            let mut encoder = open.encoder;
            let ready = encoder.write(&rows)?;
            Ok((encoder, ready))
        })
        .await?;
        open.encoder = encoder;
        if !full_groups.is_empty() {
            open.writer.write(full_groups.into()).await?;
        }
        self.open = Some(open);
        Ok(())
    }

    async fn close(&mut self) -> Result<(), StoreError> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        let encoder = open.encoder;
        let (last, summary) = run_blocking(move || encoder.finish()).await?;
        open.writer.write(last.into()).await?;
        open.writer.finish().await?;
        self.done.push(NewPiece {
            id: open.id,
            rows: open.rows,
            bounds: open.bounds,
            layout_version: self.target.layout_version,
            checksum: summary.checksum,
            bytes: summary.bytes as i64,
            place: NewPlace::Object {
                path: open.path,
                footer: summary.footer,
            },
        });
        Ok(())
    }
}

/// Writes one batch, sorting it if need be, without the columns that are null in all its rows.
pub async fn write_batch(
    objects: &ObjectStorage,
    ids: &dyn IdSource,
    target: Target,
    batch: &RecordBatch,
) -> Result<Vec<NewPiece>, StoreError> {
    let batch = batch.clone();
    let batch = run_blocking(move || sort_rows(&batch)).await?;
    let mut writer = PieceWriter::new(objects, ids, target, present_columns([&batch]));
    writer.is_one_batch = batch.num_rows() <= ROW_GROUP_ROWS;
    let mut from = 0;
    while from < batch.num_rows() {
        let length = ROW_GROUP_ROWS.min(batch.num_rows() - from);
        writer.push(&batch.slice(from, length)).await?;
        from += length;
    }
    writer.finish().await
}

/// The path of a piece's object. The person's folder can be removed as a whole.
#[must_use]
pub fn object_path(person: PersonId, data_type: &TypeId, year: i32, piece: PieceId) -> String {
    format!(
        "{DATA_FOLDER}/{person}/{}/{year}/{piece}.parquet",
        data_type.0.replace('/', "~")
    )
}

/// The path of an object, in its components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub person: PersonId,
    pub data_type: TypeId,
    pub year: i32,
    pub piece: PieceId,
}

impl ObjectName {
    /// Parses what `object_path` wrote. `None` for anything else.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix(DATA_FOLDER)?.strip_prefix('/')?.split('/');
        let name = Self {
            person: parts.next()?.parse().ok()?,
            data_type: TypeId(parts.next()?.replace('~', "/").into()),
            year: parts.next()?.parse().ok()?,
            piece: parts.next()?.strip_suffix(".parquet")?.parse().ok()?,
        };
        (object_path(name.person, &name.data_type, name.year, name.piece) == path).then_some(name)
    }
}

/// The calendar year (UTC) of a moment, and the first moment of the next one.
fn year_of(micros: i64) -> (i32, i64) {
    let Some(moment) = DateTime::from_timestamp_micros(micros) else {
        return (if micros < 0 { i32::MIN } else { i32::MAX }, i64::MAX);
    };
    let year = moment.year();
    let next = chrono::NaiveDate::from_ymd_opt(year.saturating_add(1), 1, 1)
        .and_then(|day| day.and_hms_opt(0, 0, 0));
    (
        year,
        next.map_or(i64::MAX, |next| next.and_utc().timestamp_micros()),
    )
}
