//! What many operations take and answer alike, said once for all of them instead of beside each.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, Required, Response};
use utoipa_axum::router::OpenApiRouter;

/// What everybody behind the wall may be told.
const EVERYBODY: [StatusCode; 3] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Taken by every operation that takes `filter`: a participant of a group of the caller's, in the place of a person.
const GROUPS: [&str; 2] = ["pool_id", "participant_id"];

/// `routes`, all of which may also answer with `statuses`.
#[must_use]
pub fn also_answering<S: Clone + Send + Sync + 'static>(
    mut routes: OpenApiRouter<S>,
    statuses: &[StatusCode],
) -> OpenApiRouter<S> {
    for operation in operations(routes.get_openapi_mut()) {
        add(operation, statuses);
    }
    routes
}

/// Adds what the operations of the interface have in common, and says of every refusal which form it has.
pub fn complete(document: &mut Document) {
    for item in document.paths.paths.values_mut() {
        if let Some(get) = &mut item.get {
            add(get, &[StatusCode::NOT_MODIFIED]);
        }
    }
    for operation in operations(document) {
        add(operation, &EVERYBODY);
        if operation.request_body.is_some() {
            add(operation, &[StatusCode::REQUEST_TIMEOUT]);
        }
        if takes(operation, "filter") {
            name_groups(operation);
        }
        for (status, response) in &mut operation.responses.responses {
            if let (Ok(status), RefOr::T(response)) = (status.parse(), response) {
                explain(status, response);
            }
        }
    }
}

fn operations(document: &mut Document) -> impl Iterator<Item = &mut Operation> {
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

fn takes(operation: &Operation, name: &str) -> bool {
    operation
        .parameters
        .iter()
        .flatten()
        .any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == name))
}

fn name_groups(operation: &mut Operation) {
    for name in GROUPS {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some("A participant of a group of the caller's, named by both"))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build();
        operation
            .parameters
            .get_or_insert_default()
            .push(RefOr::T(parameter));
    }
}

/// Fills in what a response that only has a status leaves open.
fn explain(status: StatusCode, response: &mut Response) {
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
