//! The parameters of an operation, as they are documented.

use axum::http::HeaderName;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::{RefOr, Required};

/// Whether a parameter in the query has a name that is `wanted`.
pub(super) fn takes(operation: &Operation, wanted: impl Fn(&str) -> bool) -> bool {
    let mut parameters = known(operation);
    parameters.any(|parameter| parameter.parameter_in == ParameterIn::Query && wanted(&parameter.name))
}

/// Whether a parameter, wherever it stands, has one of these names.
pub(super) fn names_one(operation: &Operation, names: &[&str]) -> bool {
    known(operation).any(|parameter| names.contains(&parameter.name.as_str()))
}

/// Adds a header that may be sent, unless the operation names it by itself.
pub(super) fn add_header(operation: &mut Operation, name: &HeaderName) {
    if names_one(operation, &[name.as_str()]) {
        return;
    }
    let header = ParameterBuilder::new()
        .name(name.as_str())
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .schema(Some(Object::with_type(Type::String)));
    let parameters = operation.parameters.get_or_insert_default();
    parameters.push(header.build().into());
}

fn known(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    let parameters = operation.parameters.iter().flatten();
    parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    })
}
