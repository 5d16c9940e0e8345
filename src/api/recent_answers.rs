//! Keeps small answers from a moment ago, for the same question about the same state.
//!
//! An answer is found by everything that it follows from: the question, the state of everything that was read
//! for it, and the form. Changed data has another state, so nothing here can be out of date; answers are only
//! evicted, the least requested first. Only answers to owners about their own data are kept. Knows bytes;
//! knows nothing of rows or of HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures::Stream;

use crate::api::row_count::RowCount;
use crate::model::cache::Cache;
use crate::model::meters::CacheMeters;
use crate::output::Packing;
use crate::query::ReadState;

/// The most bytes of one answer. For a longer one, most of the work is to send it.
const LARGEST_ANSWER: usize = 256 << 10;
/// Bytes that an answer takes besides its own.
const ENTRY_BYTES: usize = 256;

/// Everything that an answer follows from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub words: String,
    pub states: Vec<ReadState>,
    pub packing: Packing,
}

impl Question {
    /// About how many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        ENTRY_BYTES + self.words.len() + size_of_val(self.states.as_slice())
    }
}

/// An answer as it was given.
#[derive(Clone, Debug)]
pub struct RecentAnswer {
    pub body: Bytes,
    pub rows: u64,
}

/// The answers, within a limit of memory.
#[derive(Clone, Debug)]
pub struct RecentAnswers {
    given: Cache<Arc<Question>, RecentAnswer>,
}

impl RecentAnswers {
    /// `memory`: how many bytes of answers to keep.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let weigh = |question: &Arc<Question>, answer: &RecentAnswer| question.bytes() + answer.body.len();
        Self {
            given: Cache::of_bytes(memory, LARGEST_ANSWER as u64, weigh),
        }
    }

    #[must_use]
    pub fn find(&self, question: &Question) -> Option<RecentAnswer> {
        self.given.get(question)
    }

    /// Makes `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("answers", &self.given);
    }

    /// Drops all answers, of everybody.
    pub fn forget_all(&self) {
        self.given.clear();
    }

    /// `chunks` unchanged; if the stream ends and was small, they are kept as the answer to the question.
    pub fn keeping<S>(&self, question: Arc<Question>, count: RowCount, chunks: S) -> Keeping<S> {
        Keeping {
            chunks,
            copy: Some(Copy {
                answers: self.clone(),
                question,
                count,
                chunks: Vec::new(),
                bytes: 0,
            }),
        }
    }
}

/// The part of an answer that was sent so far.
#[derive(Debug)]
struct Copy {
    answers: RecentAnswers,
    question: Arc<Question>,
    count: RowCount,
    /// Shared with the sender: an answer that turns out to be too large is never copied.
    chunks: Vec<Bytes>,
    bytes: usize,
}

impl Copy {
    fn answer(&self) -> RecentAnswer {
        RecentAnswer {
            // Copied, since a chunk may be part of a much larger buffer, which must not stay in memory for
            // it.
            body: self.chunks.concat().into(),
            rows: self.count.get(),
        }
    }
}

/// An answer being sent, which is kept if it turns out to be small.
#[derive(Debug)]
pub struct Keeping<S> {
    chunks: S,
    copy: Option<Copy>,
}

impl<S, E> Stream for Keeping<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Bytes, E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = Pin::new(&mut this.chunks).poll_next(context);
        match &next {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(chunk))) => match &mut this.copy {
                Some(copy) if copy.bytes + chunk.len() <= LARGEST_ANSWER => {
                    copy.bytes += chunk.len();
                    copy.chunks.push(chunk.clone());
                }
                _ => this.copy = None,
            },
            Poll::Ready(Some(Err(_))) => this.copy = None,
            Poll::Ready(None) => {
                if let Some(copy) = this.copy.take() {
                    let answer = copy.answer();
                    copy.answers.given.insert(copy.question, answer);
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use futures::stream::iter;

    use super::*;
    use crate::output::OutputMethod;

    fn question(words: &str) -> Question {
        Question {
            words: words.to_owned(),
            states: Vec::new(),
            packing: OutputMethod::Jstable.into(),
        }
    }

    /// Sends the chunks of an answer to `words`, until one fails.
    async fn send(answers: &RecentAnswers, words: &str, chunks: Vec<Result<Bytes, ()>>) {
        let count = RowCount::default();
        count.add(chunks.len());
        let sent: Vec<_> = answers
            .keeping(Arc::new(question(words)), count, iter(chunks.clone()))
            .collect()
            .await;
        assert_eq!(sent, chunks);
    }

    #[tokio::test]
    async fn an_answer_that_came_to_its_end_is_there_for_the_same_question() {
        let answers = RecentAnswers::new(1 << 20);
        send(&answers, "steps", vec![Ok("[1,".into()), Ok("2]".into())]).await;
        let found = answers.find(&question("steps")).unwrap();
        assert_eq!((&*found.body, found.rows), (&b"[1,2]"[..], 2));
        assert!(answers.find(&question("floors")).is_none());
        answers.forget_all();
        assert!(answers.find(&question("steps")).is_none());
    }

    #[tokio::test]
    async fn an_answer_that_broke_off_is_not_kept() {
        let answers = RecentAnswers::new(1 << 20);
        send(&answers, "steps", vec![Ok("[1,".into()), Err(())]).await;
        assert!(answers.find(&question("steps")).is_none());
        let unread = answers.keeping(
            Arc::new(question("floors")),
            RowCount::default(),
            iter([Ok::<_, ()>(Bytes::from("[1,")), Ok("2]".into())]),
        );
        assert_eq!(unread.take(1).count().await, 1);
        assert!(answers.find(&question("floors")).is_none());
    }

    #[tokio::test]
    async fn a_long_answer_is_not_kept() {
        let answers = RecentAnswers::new(1 << 20);
        let half = Bytes::from(vec![b' '; LARGEST_ANSWER / 2 + 1]);
        send(&answers, "steps", vec![Ok(half.clone()), Ok(half)]).await;
        assert!(answers.find(&question("steps")).is_none());
    }
}
