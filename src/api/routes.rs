//! The routes, each listed once together with its documentation, and the layers around them.

use axum::middleware::{from_fn, from_fn_with_state};
use axum::{Extension, Router};
use tower::ServiceBuilder;
use tower::util::{MapRequest, option_layer};
use utoipa::OpenApi;
use utoipa::openapi::{OpenApi as Document, Server};

use crate::api::app::AppState;
use crate::api::data::frames::Reads;
use crate::api::endpoints::{Routes, endpoint};
use crate::api::layers::passage::{Passage, inner_passage, passage};
use crate::api::layers::precondition::PrecheckRoutes;
use crate::api::layers::rates::charge_ticket;
use crate::api::layers::shared::SharedLayer;
use crate::api::layers::{compression, cors, heads, request_log};
use crate::api::paths::with_whole_type_ids;
use crate::api::problem::ApiError;
use crate::api::{data, docs, health, ingest, input, user};

/// The routes that need neither a token nor a ticket.
pub(crate) fn open_routes() -> Routes {
    Routes::new()
        .with(endpoint!(health::live))
        .with(endpoint!(health::ready))
        .merge(user::open_routes())
}

/// The routes that a ticket opens.
pub(crate) fn ticket_routes() -> Routes {
    Routes::new()
        .with(endpoint!(input::files::upload::upload))
        .with(endpoint!(data::frames::bytes))
}

/// The interface's own routes, one list per prefix.
pub(crate) fn interface_routes() -> Routes {
    data::routes()
        .merge(data::frame_routes())
        .merge(ingest::routes())
        .merge(input::routes())
        .merge(user::routes())
}

/// What only operators ask for.
fn operations_routes() -> Routes {
    Routes::new().with(endpoint!(health::metrics))
}

/// Health and metrics alone, for a separate address.
pub fn operations(app: AppState) -> Router {
    Routes::new()
        .with(endpoint!(health::live))
        .with(endpoint!(health::ready))
        .merge(operations_routes())
        .into_router()
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(app.clone(), request_log::log_request))
        .with_state(app)
}

/// Routes for calls from inside the service in somebody's name: the reader is known, and the outer request
/// does the disclosing.
fn inside(routes: Routes, app: AppState) -> Router {
    let routes = routes
        .into_router()
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(app.clone(), inner_passage));
    routes.with_state(app)
}

/// The whole service as one router.
pub fn router(app: AppState) -> Router {
    assembled(app, interface_routes)
}

/// The router with `interface` behind the wall.
pub(crate) fn assembled(app: AppState, interface: fn() -> Routes) -> Router {
    let open = if app.settings.operations_address.is_some() {
        open_routes
    } else {
        || open_routes().merge(operations_routes())
    };
    let public_url = app.settings.public_url.clone();
    let document = move || document(interface(), open().merge(ticket_routes()), &public_url);

    let state = Passage {
        app: app.clone(),
        prechecks: {
            let app = app.clone();
            PrecheckRoutes::new(move || inside(interface(), app))
        },
    };
    let reads = Reads::new(inside(data::routes(), app.clone()));
    // Unknown addresses are behind the wall as well: without a token, nobody learns which ones exist.
    let interface = interface()
        .into_router()
        .fallback(nothing_here)
        .method_not_allowed_fallback(other_method)
        .layer(
            ServiceBuilder::new()
                .layer(from_fn_with_state(state, passage))
                .layer(SharedLayer)
                .layer(Extension(reads)),
        );
    let open = open()
        .into_router()
        .merge(docs::routes(document))
        .method_not_allowed_fallback(other_method)
        .layer(from_fn(heads::heads));
    let tickets = ticket_routes()
        .into_router()
        .method_not_allowed_fallback(other_method)
        .layer(from_fn(heads::heads))
        .layer(from_fn_with_state(app.clone(), charge_ticket));

    let around = ServiceBuilder::new()
        .layer(from_fn_with_state(app.clone(), request_log::log_request))
        .layer(SharedLayer)
        .layer(option_layer(cors::layer(&app.settings.cors_origins)))
        .layer(compression::layer())
        .map_response(compression::varied)
        .layer(SharedLayer);
    let routes = interface.merge(open).merge(tickets);
    let routes = routes.layer(around).with_state(app);
    // A layer of the router would run after the route was chosen.
    Router::new().fallback_service(MapRequest::new(routes, with_whole_type_ids))
}

/// The documentation of the routes.
fn document(interface: Routes, open: Routes, public_url: &str) -> Document {
    let mut interface = interface.into_document();
    docs::common::complete(&mut interface);
    let mut open = open.into_document();
    docs::common::explain(&mut open);
    docs::common::tell_methods_apart(&mut open);
    let mut document = docs::OpenApiBase::openapi();
    document.merge(interface);
    document.merge(open);
    document.servers = Some(vec![Server::new(public_url)]);
    document
}

async fn nothing_here() -> ApiError {
    ApiError::not_found("there is nothing at this address; /docs lists what there is")
}

async fn other_method() -> ApiError {
    ApiError::method_not_allowed()
}
