//! The headers of answers, and those by which a request says on what conditions it is to be answered.
//!
//! Layers around all routes and what routes share set and read most of them, not the routes themselves. So
//! what an operation takes, and with which statuses it answers, says which headers go with it; a route names
//! only those that it sets by itself. What a header says stands once, among the components of the document.
//! Left out are headers that tell caches and browsers how to treat whatever is answered.

use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION, RANGE,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, StatusCode};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Header, HeaderBuilder, Ref, RefOr, Response};

use super::parameters::{add_header, names_one, takes};
use crate::api::header_names::{
    PREFER, RATE_LIMIT, RATE_LIMIT_POLICY, SERVER_TIMING, X_IGNORED_PARAMETERS, X_REQUEST_ID,
    X_SVC_EFFECTIVE_RANGE, X_SVC_NEXT_CURSOR, X_SVC_PERIODS_LEFT_OUT, X_SVC_RANGE,
};
use crate::api::query_params::STRICT;

/// What each header of an answer says.
const EXPLAINED: [(HeaderName, &str); 17] = [
    (ACCEPT_RANGES, "That the bytes can also be had in ranges"),
    (
        CONTENT_DISPOSITION,
        "Whether the answer is shown or saved, and under which name",
    ),
    (
        CONTENT_RANGE,
        "Which bytes these are, and of how many; if none are sent, of how many alone",
    ),
    (
        ETAG,
        "The tag of the answer, for `If-Match` and `If-None-Match`. Left out where it may be another one at \
         each moment",
    ),
    (LOCATION, "The path of what was made"),
    (RANGE, "The bytes that are there. Left out: none"),
    (
        RATE_LIMIT,
        "How much of each rate is left. Left out: nobody limits rates",
    ),
    (
        RATE_LIMIT_POLICY,
        "The rates that there are. Left out: nobody limits rates",
    ),
    (RETRY_AFTER, "After how many seconds it may be tried again"),
    (
        SERVER_TIMING,
        "How long it took to plan and to begin the answer, and whether it was kept from a moment ago",
    ),
    (WWW_AUTHENTICATE, "How to say who asks"),
    (
        X_IGNORED_PARAMETERS,
        "The parameters that the route does not know. Left out: it knows all of them",
    ),
    (
        X_REQUEST_ID,
        "The id of the request: the client's own, or one made here",
    ),
    (
        X_SVC_EFFECTIVE_RANGE,
        "The windows that an answer about somebody else is about. Left out: it is about the caller",
    ),
    (
        X_SVC_NEXT_CURSOR,
        "The cursor of the next page. Left out: there is none",
    ),
    (
        X_SVC_PERIODS_LEFT_OUT,
        "How many periods are left out because too few participants have records in them. Left out: the \
         answer is not about all participants of a group",
    ),
    (
        X_SVC_RANGE,
        "The range that was asked for, with dates and zones resolved: `start/end`, an open end as two dots",
    ),
];

/// Parameters that name somebody whose data is asked for.
const NAMES_OF_PEOPLE: [&str; 4] = ["participant_id", "pool_id", "sharer_svc_userid", "svc_userid"];

/// The parameter by which an answer is had in pages.
const CURSOR: &str = "cursor";
/// Parameters that say which range is asked for. A selector names one too.
const NAMES_OF_RANGES: [&str; 3] = ["end_time", "q", "start_time"];

/// Explains the headers to which answers refer.
pub(super) fn explain(components: &mut Components) {
    components.headers.extend(EXPLAINED.map(|(name, description)| {
        let header = HeaderBuilder::from(Header::default()).description(Some(description));
        (name.as_str().to_owned(), RefOr::T(header.build()))
    }));
}

/// Adds the conditions of a read, the tag of what it answers, and what it says of somebody else.
pub(super) fn add_to_read(get: &mut Operation) {
    add_header(get, &IF_MATCH);
    add_header(get, &IF_NONE_MATCH);
    for (status, response) in answers(get) {
        if is_answer(status) {
            carry(response, &[ETAG]);
        }
    }
    if names_one(get, &NAMES_OF_PEOPLE) {
        add_to_disclosure(get);
    }
}

/// Adds the conditions of a change. What is created is not there yet, so it has no tag that is unwanted.
pub(super) fn add_to_change(change: &mut Operation, creates: bool) {
    add_header(change, &IF_MATCH);
    if !creates {
        add_header(change, &IF_NONE_MATCH);
    }
}

/// Adds what an answer says that discloses others' data.
pub(super) fn add_to_disclosure(operation: &mut Operation) {
    for (status, response) in answers(operation) {
        if is_answer(status) {
            carry(response, &[X_SVC_EFFECTIVE_RANGE]);
        }
    }
}

/// Adds what is left of the rates.
pub(super) fn add_rates(operation: &mut Operation) {
    for (status, response) in answers(operation) {
        if is_answer(status) || status == StatusCode::TOO_MANY_REQUESTS {
            carry(response, &[RATE_LIMIT, RATE_LIMIT_POLICY]);
        }
    }
}

/// Adds what follows from the parameters and the statuses of an operation, within the wall or outside.
pub(super) fn add_to_any(operation: &mut Operation) {
    let mut of_all = vec![X_REQUEST_ID];
    if takes(operation, |name| name == STRICT) {
        add_header(operation, &PREFER);
        of_all.push(X_IGNORED_PARAMETERS);
    }
    if takes(operation, |name| NAMES_OF_RANGES.contains(&name)) {
        of_all.push(X_SVC_RANGE);
    }
    let has_pages = takes(operation, |name| name == CURSOR);
    let partial = StatusCode::PARTIAL_CONTENT;
    let has_ranges = operation.responses.responses.contains_key(partial.as_str());
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            refer(response);
            carry(response, &of_all);
        }
    }
    for (status, response) in answers(operation) {
        let more = match status {
            StatusCode::OK if has_pages => vec![X_SVC_NEXT_CURSOR],
            StatusCode::OK if has_ranges => vec![ACCEPT_RANGES, CONTENT_DISPOSITION],
            StatusCode::PARTIAL_CONTENT => vec![ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE],
            StatusCode::UNAUTHORIZED => vec![WWW_AUTHENTICATE],
            StatusCode::RANGE_NOT_SATISFIABLE => vec![CONTENT_RANGE],
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => vec![RETRY_AFTER],
            _ => Vec::new(),
        };
        carry(response, &more);
    }
}

/// Adds headers to an answer.
pub(super) fn carry(response: &mut Response, names: &[HeaderName]) {
    for name in names {
        let explained = Ref::new(format!("#/components/headers/{name}"));
        response
            .headers
            .insert(name.as_str().to_owned(), RefOr::Ref(explained));
    }
}

/// Lets the headers that a route names by itself refer to what explains them.
fn refer(response: &mut Response) {
    let explained = EXPLAINED.map(|(name, _)| name).into_iter();
    let of_route: Vec<HeaderName> = explained
        .filter(|name| response.headers.contains_key(name.as_str()))
        .collect();
    carry(response, &of_route);
}

/// The answers of an operation, with their statuses.
fn answers(operation: &mut Operation) -> impl Iterator<Item = (StatusCode, &mut Response)> {
    let answers = operation.responses.responses.iter_mut();
    answers.filter_map(|(status, response)| match response {
        RefOr::T(response) => Some((status.parse().ok()?, response)),
        RefOr::Ref(_) => None,
    })
}

/// Whether it is no refusal.
fn is_answer(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}
