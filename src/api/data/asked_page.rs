//! The page of an answer that a request asks for: where it begins, and how it is sent with the cursor of the
//! next one.
//!
//! Lives as long as the request. Knows cursors and who asks; knows nothing of what the rows mean.

use axum::response::Response;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_form::AnswerForm;
use crate::api::app::App;
use crate::api::cursor::Pages;
use crate::api::problem::ApiError;
use crate::auth::grants::GrantAuthority;
use crate::query::page_of_prepared::NextPage;
use crate::query::paging::{RowKey, RowPosition};
use crate::query::places::Granted;
use crate::query::places::raw::RawSpec;
use crate::query::{Order, Prepared};

use super::asking::Asking;

/// The page of one person's rows that an address asks for.
pub(super) struct AskedPage<'a> {
    app: &'a App,
    asking: &'a Asking,
    form: &'a AnswerForm,
    pages: Pages<'a>,
    /// Where the page begins.
    after: Option<RowPosition>,
}

impl<'a> AskedPage<'a> {
    /// Refuses a cursor of another question.
    pub(super) fn of(app: &'a App, asking: &'a Asking, form: &'a AnswerForm) -> Result<Self, ApiError> {
        let request = &asking.request;
        let pages = Pages::of_address(&app.tickets, asking.owner, request.path(), request.words());
        let after = pages.place(form.cursor.as_deref())?;
        Ok(Self {
            app,
            asking,
            form,
            pages,
            after,
        })
    }

    /// The question for all rows of a type, with those of `columns` that the page needs.
    pub(super) fn spec(&self, columns: &[&'static str], key: &RowKey) -> Result<RawSpec, ApiError> {
        let form = self.form;
        Ok(RawSpec::of(columns, key, form.columns.as_ref(), form.ids())?)
    }

    /// The granted rows, from the beginning of the page on.
    pub(super) fn beginning(&self, granted: Granted<GrantAuthority>) -> Granted<GrantAuthority> {
        let Some(place) = &self.after else { return granted };
        Granted {
            permit: granted.permit.within(place.starts_after(Order::Ascending)),
            ..granted
        }
    }

    /// The rows of the page, and where the next one begins.
    pub(super) fn cut(&self, prepared: Prepared, key: &RowKey) -> Result<(Prepared, NextPage), ApiError> {
        Ok(prepared.page(key, self.after.as_ref(), self.form.limit)?)
    }

    /// Sends the page of the rows.
    pub(super) async fn answer(
        self,
        slot: AdmissionSlot,
        prepared: Prepared,
        key: &RowKey,
    ) -> Result<Response, ApiError> {
        let page = self.cut(prepared, key)?;
        self.send(slot, page, "").await
    }

    /// Sends a page that is cut already. `etag_parts`: what shapes it and is not part of the address.
    pub(super) async fn send(
        self,
        slot: AdmissionSlot,
        (prepared, next): (Prepared, NextPage),
        etag_parts: &str,
    ) -> Result<Response, ApiError> {
        let answer = self
            .asking
            .answer(self.app, slot, prepared, self.form, etag_parts)
            .await?;
        self.pages
            .with_next_cursor(self.app, self.form, answer, next)
            .await
    }
}
