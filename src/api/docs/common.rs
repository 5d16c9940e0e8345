//! What many operations accept and answer in common, added once for all instead of beside each.

use axum::http::{Method, StatusCode};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, Deprecated, OpenApi as Document, Ref, RefOr, Required, Response};

use crate::api::docs::parameters::takes;
use crate::api::docs::{answers, headers};
use crate::api::endpoints::Routes;
use crate::api::layers::precondition::creates;
use crate::api::query_params::glossary;
use crate::auth::reach::only_reads;

/// Statuses that every request that needs a token may get.
const EVERYBODY: [StatusCode; 5] = [
    StatusCode::UNAUTHORIZED,
    // A token may be for less, and the operator may limit how often people ask.
    StatusCode::FORBIDDEN,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Parameters that hold names of types. A name that several types have is not found.
const NAMES_OF_TYPES: [&str; 3] = ["data_type", "metric", "metrics"];

/// `routes`, all of which may also answer with `statuses`.
pub fn also_answering(routes: Routes, statuses: &'static [StatusCode]) -> Routes {
    routes.saying(move |mut said| {
        operations(said.get_openapi_mut()).for_each(|operation| add(operation, statuses));
        said
    })
}

/// `routes` as an older name for routes that are listed elsewhere.
pub fn deprecated(routes: Routes) -> Routes {
    routes.saying(|mut said| {
        for operation in operations(said.get_openapi_mut()) {
            operation.deprecated = Some(Deprecated::True);
            if let Some(id) = &mut operation.operation_id {
                id.push_str("_deprecated");
            }
        }
        said
    })
}

/// Adds what all operations of the interface have in common, and the form of every refusal.
pub fn complete(document: &mut Document) {
    for (address, item) in &mut document.paths.paths {
        if let Some(question) = item.post.as_mut().filter(|_| only_reads(false, address)) {
            headers::add_to_disclosure(question);
        }
        if let Some(get) = &mut item.get {
            // Whatever is read can be read conditionally.
            add(get, &[StatusCode::NOT_MODIFIED, StatusCode::PRECONDITION_FAILED]);
            answers::also_in_every_form(get);
            headers::add_to_read(get);
            // Whatever has a GET can be changed conditionally.
            let changes = [
                (Method::PUT, &mut item.put),
                (Method::POST, &mut item.post),
                (Method::PATCH, &mut item.patch),
                (Method::DELETE, &mut item.delete),
            ];
            for (method, change) in changes {
                let Some(change) = change else { continue };
                add(change, &[StatusCode::PRECONDITION_FAILED]);
                headers::add_to_change(change, creates(&method, address));
            }
        }
    }
    for operation in operations(document) {
        add(operation, &EVERYBODY);
        headers::add_rates(operation);
        if operation.request_body.is_some() {
            // A body may come too slowly, or not all of it.
            add(operation, &[StatusCode::REQUEST_TIMEOUT, StatusCode::BAD_REQUEST]);
        }
        if takes(operation, |name| NAMES_OF_TYPES.contains(&name)) {
            add(operation, &[StatusCode::NOT_FOUND]);
        }
    }
    explain(document);
}

/// Explains every name, and adds that a query can be refused, the headers of answers, and the form of every
/// refusal.
pub fn explain(document: &mut Document) {
    for operation in operations(document) {
        if takes(operation, |_| true) {
            add(operation, &[StatusCode::UNPROCESSABLE_ENTITY]);
        }
        headers::add_to_any(operation);
        explain_names(operation);
    }
    explain_refusals(document);
}

/// Adds the form of every refusal.
fn explain_refusals(document: &mut Document) {
    for operation in operations(document) {
        for (status, response) in &mut operation.responses.responses {
            if let (Ok(status), RefOr::T(response)) = (status.parse(), response) {
                explain_refusal(status, response);
            }
        }
    }
}

/// Gives names of their own to operations that share one handler, under several methods of one address: the
/// first keeps its name.
pub fn tell_methods_apart(document: &mut Document) {
    for item in document.paths.paths.values_mut() {
        let others = [
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        let mut taken: Vec<String> = [&item.get, &item.put]
            .into_iter()
            .flatten()
            .filter_map(|operation| operation.operation_id.clone())
            .collect();
        for (method, operation) in others {
            let Some(id) = operation
                .as_mut()
                .and_then(|operation| operation.operation_id.as_mut())
            else {
                continue;
            };
            if taken.contains(id) {
                *id = format!("{id}_by_{method}");
            }
            taken.push(id.clone());
        }
    }
}

/// Every operation of the document.
pub fn operations(document: &mut Document) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
        ]
        .into_iter()
        .flatten()
    })
}

fn add(operation: &mut Operation, statuses: &[StatusCode]) {
    for status in statuses {
        let response = || RefOr::T(Response::new(""));
        operation
            .responses
            .responses
            .entry(status.as_str().to_owned())
            .or_insert_with(response);
    }
}

/// Explains the parameters that no reader describes: those of paths and headers.
fn explain_names(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.description.is_none()
            && let Some(entry) = glossary::entry(&parameter.name)
        {
            let optional = parameter.required == Required::False;
            *parameter = entry.explained(parameter.clone(), false, optional);
        }
    }
}

/// Completes the description of a response that has only a status.
fn explain_refusal(status: StatusCode, response: &mut Response) {
    if response.description.is_empty() {
        status
            .canonical_reason()
            .unwrap_or_default()
            .clone_into(&mut response.description);
    }
    if response.content.is_empty() && (status.is_client_error() || status.is_server_error()) {
        let (media_type, schema) = if status == StatusCode::UNPROCESSABLE_ENTITY {
            ("application/json", "ValidationProblem")
        } else {
            ("application/problem+json", "Problem")
        };
        let content = Content::new(Some(Ref::from_schema_name(schema)));
        response.content.insert(media_type.to_owned(), RefOr::T(content));
    }
}
