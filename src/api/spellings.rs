//! Routes that serve at more than one address: older spellings, and participants of groups instead of people.
//!
//! Handlers and documentation are those of the first address; nothing is written twice.

use std::sync::Arc;

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Deprecated, RefOr, Required, Response};

use crate::api::endpoints::{Endpoint, Routes};

/// The addresses of people's data: with the person in the path, and with the person in the query.
const OF_PERSON: &str = "/data/v0/{svc_userid}/";
const BY_QUERY: &str = "/data/v0/";
/// The address of the same data of a group's participant.
const OF_PARTICIPANT: &str = "/data/v0/pool/{group_id}/participant/{participant_id}/";

/// `endpoint` at its own address, and at each of `others`: prefixes of addresses that mean the same as
/// `prefix`.
pub(super) fn also_at(endpoint: Endpoint, prefix: &'static str, others: &'static [&'static str]) -> Routes {
    let others = others.iter().enumerate().map(|(number, other)| {
        elsewhere(&endpoint, prefix, other, move |operation| {
            operation.deprecated = Some(Deprecated::True);
            name_apart(operation, &format!("older_{number}"));
        })
    });
    others.fold(Routes::new(), Routes::with).with(endpoint)
}

/// `endpoint` about a person, and the same about participants of groups.
pub(super) fn also_of_participants(endpoint: Endpoint) -> Routes {
    let is_in_path = endpoint
        .addresses
        .iter()
        .all(|address| address.starts_with(OF_PERSON));
    let from = if is_in_path { OF_PERSON } else { BY_QUERY };
    Routes::new()
        .with(elsewhere(&endpoint, from, OF_PARTICIPANT, of_participant))
        .with(endpoint)
}

/// Changes the documentation of an operation about a person to be about a group's participant.
fn of_participant(operation: &mut Operation) {
    name_apart(operation, "of_participant");
    let parameters = operation.parameters.get_or_insert_default();
    parameters.retain(|parameter| !matches!(parameter, RefOr::T(known) if known.name == "svc_userid"));
    for name in ["participant_id", "group_id"] {
        let id = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(id))
            .build();
        parameters.insert(0, RefOr::T(parameter));
    }
    let refused = RefOr::T(Response::new(""));
    let responses = &mut operation.responses.responses;
    responses
        .entry(StatusCode::FORBIDDEN.as_str().to_owned())
        .or_insert(refused);
}

/// `endpoint` with `to` in place of `from` in its address, and its operations changed by `change`.
fn elsewhere(
    endpoint: &Endpoint,
    from: &'static str,
    to: &'static str,
    change: impl Fn(&mut Operation) + Send + Sync + 'static,
) -> Endpoint {
    let described = Arc::clone(&endpoint.described);
    Endpoint {
        addresses: endpoint
            .addresses
            .iter()
            .map(|address| moved(address, from, to))
            .collect(),
        methods: endpoint.methods.clone(),
        described: Arc::new(move || {
            let (schemas, paths, methods) = described();
            (schemas, renamed(paths, from, to, &change), methods)
        }),
    }
}

fn renamed(mut paths: Paths, from: &str, to: &str, change: impl Fn(&mut Operation)) -> Paths {
    let items = std::mem::take(&mut paths.paths);
    for (path, mut item) in items {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.patch,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            change(operation);
        }
        paths.paths.insert(moved(&path, from, to), item);
    }
    paths
}

/// An address with its prefix `from` replaced by `to`.
fn moved(address: &str, from: &str, to: &str) -> String {
    address
        .strip_prefix(from)
        .map_or_else(|| address.to_owned(), |rest| format!("{to}{rest}"))
}

fn name_apart(operation: &mut Operation, suffix: &str) {
    if let Some(id) = &mut operation.operation_id {
        id.push('_');
        id.push_str(suffix);
    }
}
