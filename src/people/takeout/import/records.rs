//! Brings in the records of an archive: checks them before anything is written, and then passes them chunk by
//! chunk to the queue that commits all writes.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use arrow::error::ArrowError;

use super::examine::Plan;
use super::importer::{ImportError, Importer};
use super::judge_rows::{UnfitRow, judge};
use super::member_rows::{BATCH_ROWS, MemberRows};
use crate::ingest::intake::{CHUNK_ROWS, Intake, Rows};
use crate::ingest::stored::adapt;
use crate::ingest::upload::Upload;
use crate::model::columns::ID;
use crate::model::ids::UploadId;
use crate::model::registry::DataType;
use crate::people::takeout::archive::Region;
use crate::people::takeout::records::stored_ids;

/// How many bytes of rows are written together, if they reach this before `CHUNK_ROWS`.
const CHUNK_BYTES: usize = 32 << 20;

impl Importer {
    /// Checks that the columns of a member are those of a type here.
    pub(super) fn examine_columns(
        data_type: &DataType,
        name: &str,
        region: Region,
    ) -> Result<(), ImportError> {
        let rows = MemberRows::open(region).map_err(|error| wrong(name, error.to_string()))?;
        let storage = &data_type.layout.storage;
        let unknown = rows
            .schema()
            .fields()
            .iter()
            .find(|field| storage.field_with_name(field.name()).is_err())
            .map(|field| field.name().clone());
        unknown.map_or(Ok(()), |column| {
            Err(ImportError::Refused(format!(
                "{name} has a column {column:?} that this release does not know; use the one that wrote the \
                 archive"
            )))
        })
    }

    /// Checks that all records of a member could have been sent.
    pub(super) async fn examine_rows(
        data_type: &Arc<DataType>,
        member: &str,
        region: Region,
    ) -> Result<(), ImportError> {
        let data_type = Arc::clone(data_type);
        let examined = tokio::task::spawn_blocking(move || unfit(&data_type, region));
        let examined = examined.await.map_err(|error| error.to_string()).flatten();
        let found = examined.map_err(|reason| wrong(member, reason))?;
        found.map_or(Ok(()), |(before, found)| {
            Err(ImportError::Unfit {
                member: member.to_owned(),
                place: format!("record {}, {}", before + found.row + 1, found.column),
                reason: found.reason,
            })
        })
    }

    /// Stores the records of a member.
    pub(super) async fn bring_records(
        &self,
        plan: &Plan,
        name: &str,
        region: Region,
    ) -> Result<(), ImportError> {
        let person = plan.known.id;
        let data_type = self.types.find(person, &plan.data_type(name)).await?.data_type;
        let opened = MemberRows::open(region).map_err(|error| wrong(name, error.to_string()))?;
        let mut reader = Some(opened);
        while let Some(open) = reader.take() {
            let (of, renaming) = (Arc::clone(&data_type), plan.renaming.clone());
            let read = tokio::task::spawn_blocking(move || {
                let (open, batches) = chunk(open)?;
                let batches = batches.iter().map(|batch| renaming.rows(&stored(batch, &of)?));
                let batches = batches.collect::<Result<Vec<_>, _>>()?;
                Ok::<_, ArrowError>((open, concat_batches(&of.layout.storage, &batches)?))
            });
            let read = read.await.map_err(|error| wrong(name, error.to_string()))?;
            let (open, rows) = read.map_err(|error| wrong(name, error.to_string()))?;
            if rows.num_rows() == 0 {
                break;
            }
            let mut intake = Intake::new(self.intake.clone(), person, Arc::clone(&data_type));
            intake
                .push(Rows {
                    given: vec![true; rows.num_rows()],
                    batch: rows,
                    undated: Vec::new(),
                })
                .await?;
            let upload = Upload {
                person,
                upload: UploadId(self.intake.ids.next()),
                key: None,
                work: intake.finish().await?,
                // The sources are known already, with the times at which they were added.
                sources: Vec::new(),
                memory: None,
                held: None,
            };
            Box::pin(self.commits.commit(upload)).await?;
            reader = Some(open);
        }
        Ok(())
    }
}

/// The first record of a member that could not have been sent: its place in its batch, and the number of
/// records before that batch.
fn unfit(data_type: &DataType, region: Region) -> Result<Option<(usize, UnfitRow)>, String> {
    let mut before = 0;
    for batch in MemberRows::open(region).map_err(|error| error.to_string())? {
        let rows = batch.and_then(|batch| stored(&batch, data_type));
        let rows = rows.map_err(|error| error.to_string())?;
        if let Err(found) = judge(&rows) {
            return Ok(Some((before, found)));
        }
        before += rows.num_rows();
    }
    Ok(None)
}

/// The next rows that are written together.
fn chunk(mut reader: MemberRows) -> Result<(MemberRows, Vec<RecordBatch>), ArrowError> {
    let mut batches = Vec::new();
    let (mut rows, mut bytes) = (0, 0);
    while rows + BATCH_ROWS <= CHUNK_ROWS && bytes < CHUNK_BYTES {
        let Some(batch) = reader.next() else { break };
        let batch = batch?;
        rows += batch.num_rows();
        bytes += batch.get_array_memory_size();
        batches.push(batch);
    }
    Ok((reader, batches))
}

/// Rows of an archive in the form in which a type stores them.
fn stored(batch: &RecordBatch, data_type: &DataType) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if field.name() == ID {
            fields.push(Arc::new(Field::new(ID, ArrowType::FixedSizeBinary(16), false)));
            columns.push(stored_ids(column)?);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    adapt(&data_type.layout.storage, &rows)
}

fn wrong(name: &str, reason: String) -> ImportError {
    ImportError::Records(name.to_owned(), reason)
}
