//! A copy of the whole catalogue, from one moment, in a fresh SQLite file. Works from either database.

use std::path::Path;

use super::database::{Database, Session, Value};
use super::errors::CatalogError;
use super::tables::{ALL, Existing, OF_THIS_STORE, Record, Table};
use super::{Catalog, migrations};

impl Catalog {
    /// Copies the catalogue into a new SQLite file at `path`; every row is verified on the way. Refuses a
    /// path that exists.
    pub async fn export_to(&self, path: &Path) -> Result<(), CatalogError> {
        if path.exists() {
            return Err(CatalogError::Exists {
                what: path.display().to_string(),
            });
        }
        let target = Database::open(&format!("sqlite://{}", path.display())).await?;
        migrations::run(&target, self.clock.now()).await?;
        let mut from = self.database.read().await?;
        let mut to = target.write().await?;
        // The copy has counted its own people already: none.
        to.execute("DELETE FROM meta".to_owned(), Vec::new()).await?;
        let is_copied = |table: &&&Table| !OF_THIS_STORE.iter().any(|other| other.name == table.name);
        for table in ALL.iter().filter(is_copied) {
            copy_table(&mut from, &mut to, table).await?;
        }
        copy_blobs(&mut from, &mut to).await?;
        to.commit().await?;
        from.commit().await?;
        target.close().await;
        Ok(())
    }
}

async fn copy_table(from: &mut Session, to: &mut Session, table: &Table) -> Result<(), CatalogError> {
    let mut after = Vec::new();
    loop {
        let page = from.page(table, &after).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.key(table);
        to.insert(
            table,
            page.into_iter().map(Record::into_values).collect(),
            Existing::Refuse,
        )
        .await?;
    }
}

async fn copy_blobs(from: &mut Session, to: &mut Session) -> Result<(), CatalogError> {
    let mut last = Vec::new();
    loop {
        let sql = "SELECT blobs.piece, blobs.blob, pieces.content_checksum FROM pieces JOIN blobs ON \
                   blobs.piece = pieces.piece WHERE pieces.path IS NULL AND blobs.piece > $1 ORDER BY \
                   blobs.piece LIMIT $2";
        let rows = from
            .fetch(sql.to_owned(), vec![Value::Bytes(last.clone()), Value::Int(64)])
            .await?;
        let mut blobs = Vec::with_capacity(rows.len());
        for row in &rows {
            let (piece, blob) = (row.bytes(0)?, row.bytes(1)?);
            if i64::from(crc32fast::hash(&blob)) != row.int(2)? {
                return Err(CatalogError::corrupt(
                    "a tail piece differs from what was written",
                ));
            }
            blobs.push((piece, blob));
        }
        let Some((piece, _)) = blobs.last() else {
            return Ok(());
        };
        last.clone_from(piece);
        to.insert_blobs(blobs).await?;
    }
}
