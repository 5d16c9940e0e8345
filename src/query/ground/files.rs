//! How the query engine opens objects: through the store's readers, which verify every byte against its
//! checksum and keep footers in memory.
//!
//! What a reader must know of an object travels in the plan's own description of a file, so a plan is
//! complete wherever it runs.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use object_store::path::Path;

use crate::store::decoded::RowDecoder;
use crate::store::files::PieceFiles;
use crate::store::outline::ObjectPlace;

/// Describes an object for a plan.
#[must_use]
pub(in crate::query) fn partitioned(place: &ObjectPlace) -> PartitionedFile {
    let mut file = PartitionedFile::new(place.path.to_string(), place.bytes)
        .with_metadata_size_hint(place.footer_bytes as usize);
    // The path is already encoded; taken as plain text, a `~` in it would be encoded again.
    if let Ok(location) = Path::parse(&place.path) {
        file.object_meta.location = location;
    }
    file.object_meta.e_tag = Some(place.footer_checksum.to_string());
    file
}

/// How objects are read: as Parquet streams, and as stretches that stay decoded.
#[derive(Debug)]
pub(in crate::query) struct Objects {
    pub reader: Arc<dyn ParquetFileReaderFactory>,
    pub url: ObjectStoreUrl,
    pub decoded: RowDecoder,
    pub files: PieceFiles,
}

impl Objects {
    /// `decoded`: how many bytes of decoded columns to keep.
    pub(in crate::query) fn new(files: PieceFiles, decoded: u64) -> Self {
        Self {
            decoded: RowDecoder::new(files.clone(), decoded),
            reader: Arc::new(PieceReaders(files.clone())),
            files,
            url: ObjectStoreUrl::local_filesystem(),
        }
    }
}

/// Opens what [`partitioned`] describes.
#[derive(Clone)]
struct PieceReaders(PieceFiles);

impl fmt::Debug for PieceReaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PieceReaders")
    }
}

impl ParquetFileReaderFactory for PieceReaders {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        footer_bytes: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let checksum = file
            .object_meta
            .e_tag
            .as_deref()
            .and_then(|text| text.parse().ok());
        let (Some(footer_checksum), Some(footer_bytes)) =
            (checksum, file.metadata_size_hint.or(footer_bytes))
        else {
            return Err(internal_datafusion_err!(
                "an object is described without its footer"
            ));
        };
        let place = ObjectPlace {
            path: Arc::from(file.object_meta.location.as_ref()),
            bytes: file.object_meta.size,
            footer_bytes: footer_bytes as u32,
            footer_checksum,
        };
        Ok(Box::new(self.0.reader(&place)))
    }
}
