//! Routes that serve at more than one address: older spellings, and participants of groups in the place of
//! people.
//!
//! Handlers and documentation are those of the first address; nothing is written twice.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, Paths};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Deprecated, RefOr, Required, Response};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// Where the data of people is read: of those in the path, and of those in the query.
const OF_PERSON: &str = "/data/v0/{svc_userid}/";
const BY_QUERY: &str = "/data/v0/";
/// Where the same data of a group's participant is.
const OF_PARTICIPANT: &str = "/data/v0/pool/{group_id}/participant/{participant_id}/";

/// `routes` at their own address, and at each of `others`: beginnings of addresses that mean the same as
/// `prefix`.
#[must_use]
pub(super) fn also_at<S: Clone + Send + Sync + 'static>(
    routes: UtoipaMethodRouter<S>,
    prefix: &str,
    others: &[&str],
) -> OpenApiRouter<S> {
    let mut router = OpenApiRouter::new();
    for (number, other) in others.iter().enumerate() {
        let (schemas, paths, methods) = routes.clone();
        let paths = renamed(paths, prefix, other, |operation| {
            operation.deprecated = Some(Deprecated::True);
            name_apart(operation, &format!("older_{number}"));
        });
        router = router.routes((schemas, paths, methods));
    }
    router.routes(routes)
}

/// `routes` about a person, and the same about participants of groups.
#[must_use]
pub(super) fn also_of_participants<S: Clone + Send + Sync + 'static>(
    routes: UtoipaMethodRouter<S>,
) -> OpenApiRouter<S> {
    let (schemas, paths, methods) = routes.clone();
    let is_in_path = paths.paths.keys().all(|path| path.starts_with(OF_PERSON));
    let from = if is_in_path { OF_PERSON } else { BY_QUERY };
    let paths = renamed(paths, from, OF_PARTICIPANT, |operation| {
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
    });
    OpenApiRouter::new()
        .routes((schemas, paths, methods))
        .routes(routes)
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
        let path = path
            .strip_prefix(from)
            .map_or_else(|| path.clone(), |rest| format!("{to}{rest}"));
        paths.paths.insert(path, item);
    }
    paths
}

fn name_apart(operation: &mut Operation, suffix: &str) {
    if let Some(id) = &mut operation.operation_id {
        id.push('_');
        id.push_str(suffix);
    }
}
