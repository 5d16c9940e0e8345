//! Cursors: places in an answer as text, which clients send back to continue from there.
//!
//! A cursor is opaque to clients: it carries a place, and a seal over the place and the question, so that one
//! that was changed or belongs to another question is refused instead of answered with the wrong rows.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::App;
use crate::api::header_names::X_SVC_NEXT_CURSOR;
use crate::api::problem::{ApiError, invalid};
use crate::auth::tickets::Tickets;
use crate::model::ids::PersonId;
use crate::query::explain::Explain;
use crate::query::page_of_prepared::NextPage;
use crate::query::paging::RowPosition;

/// Hexadecimal digits of a time, a partition, or a seal; below, those of an id.
const NUMBER: usize = 16;
const ID: usize = 32;

/// Parameters that may change from page to page.
const SHAPES_PAGES: [&str; 9] = [
    "",
    "columns",
    "compression",
    "cursor",
    "defuse_formulas",
    "explain",
    "limit",
    "output",
    "strict",
];

/// What pages of one answer have in common.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    tickets: &'a Tickets,
    question: u64,
}

impl<'a> Pages<'a> {
    /// Pages of the answer to `question`, which says everything except page, columns and form.
    pub fn of(tickets: &'a Tickets, question: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        question.hash(&mut hasher);
        Self {
            tickets,
            question: hasher.finish(),
        }
    }

    /// Pages of the answer to the question in an address: `query` without the parameters that only shape a
    /// page.
    #[must_use]
    pub fn of_address(tickets: &'a Tickets, owner: PersonId, route: &str, query: &str) -> Self {
        let shapes_pages = |parameter: &&str| {
            let name = parameter.split('=').next().unwrap_or_default();
            !SHAPES_PAGES.contains(&name)
        };
        let mut asked: Vec<&str> = query.split('&').filter(shapes_pages).collect();
        asked.sort_unstable();
        Self::of(tickets, &(owner, route, asked))
    }

    /// The place that a cursor stands for.
    pub fn place(&self, cursor: Option<&str>) -> Result<Option<RowPosition>, ApiError> {
        // An empty cursor also means the first page, so that a loop can begin with it.
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(None);
        };
        let (place, seal) = read(cursor).ok_or_else(wrong)?;
        if seal == self.seal(&place) {
            Ok(Some(place))
        } else {
            Err(wrong())
        }
    }

    /// `response`, which has a page in this `form`, with the cursor of the next page, if there is one. A
    /// caller that has the page already has its cursor too, and a plan is no page.
    pub async fn with_next_cursor(
        &self,
        app: &App,
        form: &AnswerForm,
        mut response: Response,
        next: NextPage,
    ) -> Result<Response, ApiError> {
        if response.status() == StatusCode::NOT_MODIFIED || form.explain != Explain::No {
            return Ok(response);
        }
        if let Some(place) = next.find_start(&app.engine).await? {
            let cursor = written(&place, self.seal(&place));
            let cursor = HeaderValue::from_str(&cursor).map_err(ApiError::internal)?;
            response.headers_mut().insert(X_SVC_NEXT_CURSOR, cursor);
        }
        Ok(response)
    }

    fn seal(&self, place: &RowPosition) -> u64 {
        let mut hasher = DefaultHasher::new();
        ("cursor", self.question, place).hash(&mut hasher);
        self.tickets.sealed(hasher.finish())
    }
}

fn wrong() -> ApiError {
    invalid(
        ["query", "cursor"],
        "this cursor does not belong to this question; leave it out to get the first page",
    )
}

fn written(place: &RowPosition, seal: u64) -> String {
    let RowPosition {
        start,
        end,
        id,
        partition,
    } = place;
    let id = u128::from_be_bytes(*id);
    format!("{start:016x}{end:016x}{id:032x}{partition:016x}{seal:016x}")
}

fn read(cursor: &str) -> Option<(RowPosition, u64)> {
    let digits = cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || cursor.len() != 4 * NUMBER + ID {
        return None;
    }
    let number = |from: usize| u64::from_str_radix(cursor.get(from..from + NUMBER)?, 16).ok();
    let id = cursor.get(2 * NUMBER..2 * NUMBER + ID)?;
    let place = RowPosition {
        start: number(0)?.cast_signed(),
        end: number(NUMBER)?.cast_signed(),
        id: u128::from_str_radix(id, 16).ok()?.to_be_bytes(),
        partition: number(2 * NUMBER + ID)?,
    };
    Some((place, number(3 * NUMBER + ID)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_where_it_was_made() {
        for place in [
            RowPosition {
                start: -62_135_596_800_000_000,
                end: 253_402_300_799_999_999,
                id: [0xff; 16],
                partition: u64::MAX,
            },
            RowPosition {
                start: 0,
                end: 1,
                id: [0; 16],
                partition: 0,
            },
        ] {
            assert_eq!(read(&written(&place, 7)), Some((place, 7)));
        }
        for other in ["", "0", "é", &"0".repeat(95), &"g".repeat(96), &"+".repeat(96)] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
