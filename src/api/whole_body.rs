//! Bodies that are read whole before they are looked at: documents, and the older forms of recording.
//!
//! One limit holds for every body, before and after decompression. The client decides how long a body takes
//! to arrive, so meanwhile little of it waits in memory and the rest in a file; memory for all of it is taken
//! when all of it is there, and then held only while the service works on it. From then on all its waits for
//! memory end together. Knows nothing of what bodies say.

use std::io::Error;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use futures::StreamExt as _;

use crate::api::body::{broke_off, content_encoding};
use crate::api::failures::spill_error;
use crate::api::problem::{ApiError, invalid};
use crate::api::run_blocking::run_blocking;
use crate::ingest::decompress::{ContentEncoding, DecompressError, Decompressor};
use crate::ingest::lines::unmarked;
use crate::ingest::memory::{Allowance, LEAST_MEMORY, SMALL_BODY_BYTES};
use crate::query::spill_files::{SpillFiles, Spilled};

/// Bytes that are read back from a file at once.
const PIECE: usize = 256 << 10;

/// The limits of a body.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most bytes before and after decompression.
    pub limit: usize,
    /// What it is parsed into takes this many times its size.
    pub factor: usize,
}

/// The whole body, decompressed, without a byte order mark before it. `memory` covers what it is parsed into,
/// as far as that is known beforehand.
pub async fn whole(
    bounds: Bounds,
    headers: &HeaderMap,
    body: Body,
    spill: &SpillFiles,
    memory: &mut Allowance,
) -> Result<Bytes, ApiError> {
    let encoding = content_encoding(headers)?;
    let mut arrived = Arrived::of(body, bounds.limit, spill, memory).await?;
    memory.limit_waits();
    let mut plain = Vec::new();
    if encoding == ContentEncoding::Identity {
        memory
            .resize(arrived.length.saturating_mul(bounds.factor))
            .await?;
        if arrived.rest.is_none() {
            return Ok(text(arrived.begin));
        }
        plain.reserve_exact(arrived.length);
    }
    let limit = bounds.limit;
    let mut decompressor = Decompressor::new(encoding, limit as u64).map_err(ApiError::internal)?;
    let refused = |error: DecompressError<std::convert::Infallible>| match error {
        DecompressError::TooLarge { .. } => ApiError::too_large(limit),
        error => invalid(["body"], error.to_string()),
    };
    let mut place = 0;
    while let Some(piece) = arrived.piece(place).await? {
        place += piece.len();
        for part in piece.chunks(decompressor.step()) {
            let take = |found: &[u8]| {
                plain.extend_from_slice(found);
                Ok(())
            };
            decompressor.feed(part, take).map_err(refused)?;
            let wanted = plain.len().saturating_mul(bounds.factor);
            if wanted > memory.bytes() {
                memory.resize(wanted.next_multiple_of(LEAST_MEMORY)).await?;
            }
        }
    }
    let take = |found: &[u8]| {
        plain.extend_from_slice(found);
        Ok(())
    };
    decompressor.finish(take).map_err(refused)?;
    memory.resize(plain.len().saturating_mul(bounds.factor)).await?;
    Ok(text(plain))
}

/// A body as the text that it is.
fn text(body: Vec<u8>) -> Bytes {
    let body = Bytes::from(body);
    body.slice_ref(unmarked(&body))
}

/// A body as received.
struct Arrived {
    begin: Vec<u8>,
    /// The part that does not fit into `begin`.
    rest: Option<Spilled>,
    length: usize,
}

impl Arrived {
    async fn of(
        body: Body,
        limit: usize,
        spill: &SpillFiles,
        memory: &mut Allowance,
    ) -> Result<Self, ApiError> {
        // A body that is announced as too large is refused unread.
        if body.size_hint().lower() > limit as u64 {
            return Err(ApiError::too_large(limit));
        }
        let (mut begin, mut rest, mut length) = (Vec::new(), None, 0);
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| broke_off(&error))?;
            if chunk.len() > limit - length {
                return Err(ApiError::too_large(limit));
            }
            length += chunk.len();
            if rest.is_none() && length <= SMALL_BODY_BYTES {
                memory.resize(length).await?;
                begin.extend_from_slice(&chunk);
            } else {
                let (file, spill) = (rest.take(), spill.clone());
                rest = Some(with_spilled(move || appended(file, &spill, &chunk)).await?);
            }
        }
        Ok(Self { begin, rest, length })
    }

    /// The piece at `place`; `None` at the end.
    async fn piece(&mut self, place: usize) -> Result<Option<Bytes>, ApiError> {
        if let Some(begin) = self.begin.get(place..).filter(|begin| !begin.is_empty()) {
            return Ok(Some(Bytes::copy_from_slice(begin)));
        }
        let length = PIECE.min(self.length - place);
        let Some(rest) = self.rest.take().filter(|_| length > 0) else {
            return Ok(None);
        };
        let place = (place - self.begin.len()) as u64;
        let read = with_spilled(move || {
            let mut piece = vec![0; length];
            rest.read(place, &mut piece)?;
            Ok((rest, piece))
        });
        let (rest, piece) = read.await?;
        self.rest = Some(rest);
        Ok(Some(piece.into()))
    }
}

fn appended(file: Option<Spilled>, spill: &SpillFiles, chunk: &[u8]) -> Result<Spilled, Error> {
    let mut file = match file {
        Some(file) => file,
        None => spill.create()?,
    };
    file.append(chunk)?;
    Ok(file)
}

/// Works on a file that was spilled.
async fn with_spilled<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, ApiError> {
    run_blocking(work).await?.map_err(|error| spill_error(&error))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use axum::http::header::CONTENT_ENCODING;
    use axum::http::{HeaderValue, StatusCode};
    use axum::response::IntoResponse as _;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::ingest::memory::BodyMemory;
    use crate::model::ids::PersonId;

    const MIB: usize = 1 << 20;
    const BOUNDS: Bounds = Bounds {
        limit: 8 * MIB,
        factor: 2,
    };

    fn memory(limit: usize) -> Allowance {
        let person = PersonId(uuid::Uuid::from_u128(1));
        BodyMemory::new(limit, Duration::from_millis(20)).allowance(person)
    }

    fn text(length: usize) -> Vec<u8> {
        (0..length)
            .map(|place| b'a' + u8::try_from(place * place % 23).unwrap())
            .collect()
    }

    fn zipped(text: &[u8]) -> Vec<u8> {
        let mut zipped = GzEncoder::new(Vec::new(), Compression::none());
        zipped.write_all(text).unwrap();
        zipped.finish().unwrap()
    }

    async fn read(
        body: Vec<u8>,
        encoding: &'static str,
        memory: &mut Allowance,
    ) -> Result<Bytes, StatusCode> {
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(encoding))]);
        let chunks: Vec<_> = body
            .chunks(10_000)
            .map(|chunk| Ok::<_, Error>(Bytes::copy_from_slice(chunk)))
            .collect();
        let body = Body::from_stream(futures::stream::iter(chunks));
        whole(BOUNDS, &headers, body, &SpillFiles::default(), memory)
            .await
            .map_err(|error| error.into_response().status())
    }

    #[tokio::test]
    async fn a_body_comes_back_as_it_was_whether_it_waited_in_memory_or_in_a_file() {
        for length in [0, 1, SMALL_BODY_BYTES, SMALL_BODY_BYTES + 1, 3 * MIB] {
            let (text, mut memory) = (text(length), memory(100 * MIB));
            let plain = read(text.clone(), "identity", &mut memory).await.unwrap();
            assert!(plain == text, "{length}");
            assert_eq!(memory.bytes(), 2 * length);
            let unzipped = read(zipped(&text), "gzip", &mut memory).await.unwrap();
            assert!(unzipped == text, "{length}");
            assert_eq!(memory.bytes(), 2 * length);
        }
    }

    #[tokio::test]
    async fn a_byte_order_mark_before_a_body_is_no_part_of_it() {
        for length in [0, 1, SMALL_BODY_BYTES, 3 * MIB] {
            let (text, mut memory) = (text(length), memory(100 * MIB));
            let marked = [b"\xef\xbb\xbf".as_slice(), &text].concat();
            let plain = read(marked.clone(), "identity", &mut memory).await.unwrap();
            assert!(plain == text, "{length}");
            let unzipped = read(zipped(&marked), "gzip", &mut memory).await.unwrap();
            assert!(unzipped == text, "{length}");
        }
        let twice = b"\xef\xbb\xbf\xef\xbb\xbf{}".to_vec();
        let left = read(twice, "identity", &mut memory(MIB)).await.unwrap();
        assert_eq!(&left[..], b"\xef\xbb\xbf{}");
    }

    #[tokio::test]
    async fn what_has_no_room_is_told_so_before_it_is_unpacked() {
        let bodies = BodyMemory::new(2 * MIB, Duration::from_millis(20));
        let [mut other, mut mine] =
            [1, 2].map(|person| bodies.allowance(PersonId(uuid::Uuid::from_u128(person))));
        other.resize(MIB).await.unwrap();
        for (body, encoding) in [(text(3 * MIB), "identity"), (zipped(&text(3 * MIB)), "gzip")] {
            let refused = read(body, encoding, &mut mine).await;
            assert_eq!(refused.unwrap_err(), StatusCode::TOO_MANY_REQUESTS, "{encoding}");
            assert!(mine.bytes() <= 2 * MIB, "{encoding}");
        }
        for (body, encoding) in [(text(9 * MIB), "identity"), (zipped(&text(9 * MIB)), "gzip")] {
            let refused = read(body, encoding, &mut mine).await;
            assert_eq!(refused.unwrap_err(), StatusCode::PAYLOAD_TOO_LARGE, "{encoding}");
        }
    }
}
