//! The stream of chunks: what it holds back, what it joins, and how it ends.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, ListBuilder, StringArray, StringBuilder};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::stream::{self, StreamExt};
use futures::{FutureExt, Stream};

use super::super::chunks::CHUNK;
use super::super::encoder::LARGEST_ROW;
use super::super::{EncodeError, OutputMethod, encode};
use super::{SpillFiles, encoded};

#[derive(Debug, PartialEq)]
enum Failure {
    Source,
    Encoder(String),
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        Self::Encoder(error.to_string())
    }
}

fn batch(rows: i64) -> RecordBatch {
    let numbers: Int64Array = (0..rows).collect();
    let texts: StringArray = (0..rows)
        .map(|row| Some(format!("some text of row {row}")))
        .collect();
    RecordBatch::try_from_iter([
        ("number", Arc::new(numbers) as ArrayRef),
        ("text", Arc::new(texts) as ArrayRef),
    ])
    .unwrap()
}

fn chunks(
    method: OutputMethod,
    source: impl Stream<Item = Result<RecordBatch, Failure>> + Send,
) -> Vec<Result<Bytes, Failure>> {
    block_on(encode(method, batch(0).schema(), SpillFiles::default(), source).collect())
}

#[test]
fn a_row_that_is_too_long_is_refused_before_it_is_made() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    let text = "x".repeat(1 << 20);
    for _ in 0..3 * LARGEST_ROW / text.len() {
        lists.values().append_value(&text);
    }
    lists.append(true);
    let lists = RecordBatch::try_from_iter([("lists", Arc::new(lists.finish()) as ArrayRef)]).unwrap();
    for method in OutputMethod::ALL.into_iter().filter(|method| method.is_text()) {
        let error = encoded(method, &lists.schema(), std::slice::from_ref(&lists));
        assert!(matches!(error, Err(EncodeError::LongRow)), "{method}");
    }
}

#[test]
fn the_chunks_together_are_the_answer() {
    for method in OutputMethod::ALL {
        let batches = vec![batch(10_000), batch(0), batch(3), batch(10_000)];
        let whole = encoded(method, &batch(0).schema(), &batches).unwrap();
        let chunks = chunks(method, stream::iter(batches.into_iter().map(Ok)));
        let joined: Vec<u8> = chunks
            .iter()
            .flat_map(|chunk| chunk.as_ref().unwrap().iter().copied())
            .collect();
        assert!(joined == whole, "{method}");
        if method.is_text() {
            assert!(
                chunks
                    .iter()
                    .all(|chunk| chunk.as_ref().unwrap().len() <= 8 * CHUNK),
                "{method}"
            );
        }
    }
}

#[test]
fn an_error_ends_the_stream_without_the_closing_bytes() {
    for method in OutputMethod::ALL {
        let source = stream::iter([Ok(batch(20_000)), Err(Failure::Source), Ok(batch(1))]);
        let mut chunks = chunks(method, source);
        assert_eq!(chunks.pop(), Some(Err(Failure::Source)), "{method}");
        assert!(chunks.iter().all(Result::is_ok), "{method}");
    }
}

#[test]
fn an_error_before_the_first_batch_comes_before_any_byte() {
    for method in OutputMethod::ALL {
        assert_eq!(
            chunks(method, stream::iter([Err(Failure::Source)])),
            [Err(Failure::Source)],
            "{method}"
        );
    }
}

#[test]
fn rows_are_not_held_back_while_the_source_is_slow() {
    let (sender, receiver) = mpsc::unbounded();
    let mut answer = Box::pin(encode::<_, Failure>(
        OutputMethod::Csv,
        batch(0).schema(),
        SpillFiles::default(),
        receiver,
    ));
    assert!(
        answer.next().now_or_never().is_none(),
        "the header waits for the first batch"
    );
    sender.unbounded_send(Ok(batch(1))).unwrap();
    let first = answer.next().now_or_never().unwrap().unwrap().unwrap();
    assert_eq!(first, "number,text\n0,some text of row 0\n");
    assert!(answer.next().now_or_never().is_none());
    drop(sender);
    assert_eq!(answer.next().now_or_never(), Some(None));
}
