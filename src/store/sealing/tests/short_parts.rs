//! What is sealed reaches a store that takes no short parts, as S3 does.

use std::fmt;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::*;

/// The least number of bytes of every part but the last.
const LEAST: usize = 5 << 20;

/// A store in memory that refuses objects with short parts.
#[derive(Debug, Default)]
struct WithoutShortParts(InMemory);

impl fmt::Display for WithoutShortParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "without short parts: {}", self.0)
    }
}

#[async_trait]
impl ObjectStore for WithoutShortParts {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(MeasuredUpload {
            inner: self.0.put_multipart_opts(location, options).await?,
            parts: Vec::new(),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// An upload whose parts are measured when it is complete.
#[derive(Debug)]
struct MeasuredUpload {
    inner: Box<dyn MultipartUpload>,
    /// The sizes of its parts.
    parts: Vec<usize>,
}

#[async_trait]
impl MultipartUpload for MeasuredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.push(data.content_length());
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let but_last = self.parts.split_last().map_or(&[][..], |(_, others)| others);
        if self.parts.contains(&0) || but_last.iter().any(|bytes| *bytes < LEAST) {
            return Err(Error::Generic {
                store: "without short parts",
                source: format!("EntityTooSmall: {:?}", self.parts).into(),
            });
        }
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[tokio::test]
async fn only_the_last_part_of_what_is_sealed_may_be_short() {
    let bench = Bench::new();
    let store = over(
        ObjectStorage::over(Arc::new(WithoutShortParts::default())),
        &bench.keys,
    );
    let mebibyte = 1 << 20;
    for length in [
        4_000_000,
        8 * mebibyte + 1,
        9_000_000,
        16 * mebibyte,
        24 * mebibyte + 65_536,
        32 * mebibyte + 8192,
    ] {
        let (path, whole) = (path(OWNER, &format!("{length}.parquet")), content(length));
        let mut upload = store.upload(&path).unwrap();
        for part in whole.chunks(1_000_003) {
            upload.write(Bytes::copy_from_slice(part)).await.unwrap();
        }
        upload.finish().await.unwrap();
        assert!(store.get(&path).await.unwrap() == whole, "{length}");
    }
}
