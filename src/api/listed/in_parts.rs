//! Listings that may have too many entries to be held: of these, the answer is made while it is sent.
//!
//! Such entries are written twice, for the tag and for the body; only what they are made from is held. Knows
//! no entries.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use futures::stream;
use serde::Serialize;
use serde_json::Value;

use crate::api::answer::Sending;
use crate::api::answer_headers::{is_known, not_modified};
use crate::api::entity_tags::weak_tag;
use crate::api::failures::Broken;
use crate::api::problem::ApiError;
use crate::output::{EncodeError, ListedColumn, Packing, encode, listed};

use super::{ListingForm, chosen, listed_as};

/// The most entries of an answer that is made before it is sent.
const MOST_HELD: usize = 4_096;
/// The number of entries that are written at a time, of about a kilobyte each.
const PART: usize = 128;

/// `entries` in the form that was asked for, however many there are, or 304 when the caller has them already.
pub async fn listed_in_parts<T>(
    sending: Sending<'_>,
    headers: &HeaderMap,
    form: ListingForm,
    columns: &[ListedColumn],
    entries: Vec<T>,
) -> Result<Response, ApiError>
where
    T: Serialize + Send + Sync + 'static,
{
    if entries.len() <= MOST_HELD {
        return listed_as(sending.app, headers, form, columns, &entries).await;
    }
    let columns = chosen(columns, &form.columns)?;
    let entries = Entries(entries.into());
    let tag = entries.tag(&form).await.map_err(ApiError::internal)?;
    if is_known(headers, &tag) {
        return not_modified(&tag, form.content_type());
    }
    let head = form.head(&tag)?;
    let Some(method) = form.method else {
        return Ok(sending.in_parts(head, stream::iter(entries.texts())));
    };
    let packing = Packing {
        method,
        buffers: form.buffers,
    };
    let schema = listed(&columns, &[]).map_err(ApiError::internal)?.schema();
    let spill_files = sending.app.engine.spill_files().clone();
    let batches = stream::iter(entries.batches(columns));
    Ok(sending.in_parts(head, encode(packing, schema, spill_files, batches)))
}

struct Entries<T>(Arc<[T]>);

impl<T: Serialize> Entries<T> {
    /// The tag of an answer with these entries, weak like all tags.
    async fn tag(&self, form: &ListingForm) -> Result<String, Broken> {
        let mut hasher = DefaultHasher::new();
        (form.method, &form.columns, form.buffers).hash(&mut hasher);
        for first in self.firsts() {
            self.text(first)?.hash(&mut hasher);
            // Others wait for the thread.
            tokio::task::yield_now().await;
        }
        Ok(weak_tag(hasher.finish()))
    }

    /// A list in JSON, in parts.
    fn texts(self) -> impl Iterator<Item = Result<Bytes, Broken>> {
        self.firsts().map(move |first| self.text(first).map(Bytes::from))
    }

    /// Rows, in parts.
    fn batches(self, columns: Vec<ListedColumn>) -> impl Iterator<Item = Result<RecordBatch, Broken>> {
        self.firsts().map(move |first| {
            let rows = self.part(first).iter().map(serde_json::to_value);
            let rows = rows.collect::<Result<Vec<Value>, _>>().map_err(unwritten)?;
            Ok(listed(&columns, &rows).map_err(EncodeError::from)?)
        })
    }

    /// The place of the first entry of each part.
    fn firsts(&self) -> impl Iterator<Item = usize> + use<T> {
        (0..self.0.len()).step_by(PART)
    }

    fn part(&self, first: usize) -> &[T] {
        let end = self.0.len().min(first + PART);
        self.0.get(first..end).unwrap_or_default()
    }

    /// A part of the list in JSON.
    fn text(&self, first: usize) -> Result<Vec<u8>, Broken> {
        let mut text = serde_json::to_vec(self.part(first)).map_err(unwritten)?;
        // It was written as a list of its own.
        if first > 0
            && let Some(opening) = text.first_mut()
        {
            *opening = b',';
        }
        if first + PART < self.0.len() {
            text.pop();
        }
        Ok(text)
    }
}

fn unwritten(error: serde_json::Error) -> Broken {
    Broken::Plan(DataFusionError::External(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::ColumnKind;

    fn entries(count: usize) -> Entries<Value> {
        let all: Vec<Value> = (0..count).map(|number| json!({ "number": number })).collect();
        Entries(all.into())
    }

    #[test]
    fn parts_are_together_the_list() {
        for count in [1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1] {
            let texts: Vec<Bytes> = entries(count).texts().collect::<Result<_, _>>().unwrap();
            assert_eq!(texts.len(), count.div_ceil(PART));
            let whole = serde_json::to_vec(&*entries(count).0).unwrap();
            assert!(texts.concat() == whole, "{count} entries");
            let columns = vec![ListedColumn::new("number", ColumnKind::Whole)];
            let batches: Vec<RecordBatch> = entries(count).batches(columns).map(Result::unwrap).collect();
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), count);
        }
    }

    #[tokio::test]
    async fn a_tag_stands_for_entries_and_their_form() {
        let json = ListingForm::default();
        let rows = ListingForm {
            columns: vec!["number".to_owned()],
            ..ListingForm::default()
        };
        let tag = async |count: usize, form: &ListingForm| entries(count).tag(form).await.unwrap();
        assert_eq!(tag(300, &json).await, tag(300, &json).await);
        assert_ne!(tag(300, &json).await, tag(299, &json).await);
        assert_ne!(tag(300, &json).await, tag(300, &rows).await);
    }
}
