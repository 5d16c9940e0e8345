//! Checks one object from end to end: whether it exists, every byte is what was written, and it holds what
//! the catalogue says.

use arrow::array::RecordBatch;
use futures::StreamExt as _;

use super::sorted_rows::{Key, SortedRows, owned};
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::{Bounds, Footer, Piece};
use crate::model::ids::{PersonId, RecordId};
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::encoding::{DATA_TYPE_KEY, PERSON_KEY, PIECE_KEY};
use crate::store::outline::ObjectPlace;
use crate::store::tail;
use crate::store::verify::verify_object;

/// How many live rows the object at `path` has. `Err(Corrupt)` says what is wrong with it; any other error
/// means that it could not be checked.
pub async fn examine(
    stores: &UpkeepStores,
    key: &PartitionKey,
    piece: &Piece,
    path: &str,
    footer: Footer,
) -> Result<i64, StoreError> {
    verify_object(stores.objects(), path, piece.bytes, piece.checksum).await?;
    let place = ObjectPlace::new(path, piece.bytes, footer);
    refuse_another(stores, key, piece, &place).await?;
    let mut rows = SortedRows::of_object(&stores.files, &place, Vec::new().into()).await?;
    let mut seen = SeenRows::default();
    while let Some(batch) = rows.batches.next().await {
        seen.take(&batch?, &piece.dead)?;
    }
    seen.living(piece)
        .map_err(|what| StoreError::corrupt(format!("object {path} {what}")))
}

/// How many live rows a tail piece has. `Err(Corrupt)` says what is wrong with it.
pub async fn examine_tail(
    stores: &UpkeepStores,
    person: PersonId,
    piece: &Piece,
    blob: &[u8],
) -> Result<i64, StoreError> {
    let mut seen = SeenRows::default();
    let key = stores.snapshots.opener(person, std::iter::once(blob)).await?;
    let rows = tail::open(piece, blob, key.as_ref())?;
    seen.take(&rows, &piece.dead)?;
    seen.living(piece)
        .map_err(|what| StoreError::corrupt(format!("tail piece {} {what}", piece.id)))
}

/// Refuses an object whose metadata does not agree with the catalogue.
async fn refuse_another(
    stores: &UpkeepStores,
    key: &PartitionKey,
    piece: &Piece,
    place: &ObjectPlace,
) -> Result<(), StoreError> {
    let file = stores.files.open(place).await?;
    let says = |key: &str, expected: &str| file.fact(key) == Some(expected);
    let is_ours = says(PERSON_KEY, &key.person.to_string())
        && says(DATA_TYPE_KEY, key.data_type.as_str())
        && says(PIECE_KEY, &piece.id.to_string());
    if is_ours {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!(
            "object {} says that it is another",
            place.path
        )))
    }
}

/// What was seen of a piece's rows so far.
#[derive(Default)]
struct SeenRows {
    rows: i64,
    dead: i64,
    bounds: Option<Bounds>,
    last: Option<Key>,
    out_of_order: bool,
}

impl SeenRows {
    fn take(&mut self, batch: &RecordBatch, dead: &[RecordId]) -> Result<(), StoreError> {
        let keys = KeyColumns::of(batch)?;
        let Some(last_row) = keys.len().checked_sub(1) else {
            return Ok(());
        };
        let follows = self.last.is_none_or(|last| last <= owned(keys.key(0)));
        self.out_of_order |= !follows || !keys.is_sorted();
        self.last = Some(owned(keys.key(last_row)));
        self.rows += keys.len() as i64;
        if !dead.is_empty() {
            self.dead += (0..keys.len())
                .filter(|row| dead.binary_search(&keys.id(*row)).is_ok())
                .count() as i64;
        }
        if let Some(bounds) = keys.bounds() {
            self.bounds = Some(self.bounds.map_or(bounds, |seen| seen.union(bounds)));
        }
        Ok(())
    }

    /// How many rows are live, if the rows match the catalogue; otherwise what is wrong.
    fn living(&self, piece: &Piece) -> Result<i64, String> {
        if self.out_of_order {
            Err("holds rows out of order".to_owned())
        } else if self.rows != piece.rows {
            Err(format!("holds {} rows, not {}", self.rows, piece.rows))
        } else if self.bounds.is_some_and(|bounds| bounds != piece.bounds) {
            Err("holds rows of other times than the catalogue says".to_owned())
        } else {
            Ok(self.rows - self.dead)
        }
    }
}
