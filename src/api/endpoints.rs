//! Routes, each listed once together with its documentation.
//!
//! Every start needs the routes. Few processes are ever asked for their documentation, and it takes many
//! times as long to make, so it is made on demand. Knows no route.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::api::app::AppState;

/// The endpoint of one or more handlers, whose documentation stands beside them and which serve at one
/// address, each under methods of its own.
macro_rules! endpoint {
    ($($($part:ident)::+),+ $(,)?) => {{
        use utoipa_axum::PathItemExt as _;
        let mut addresses = std::collections::BTreeSet::new();
        let methods = axum::routing::MethodRouter::new();
        $(
            addresses.insert(utoipa_axum::routes!(@path [path()] of $($part)::+));
            let of_handler = utoipa_axum::routes!(@path [methods()] of $($part)::+);
            let methods = of_handler.iter().fold(methods, |methods, method| {
                methods.on(method.to_method_filter(), $($part)::+)
            });
        )+
        $crate::api::endpoints::Endpoint {
            addresses,
            methods,
            described: std::sync::Arc::new(|| utoipa_axum::routes!($($($part)::+),+)),
        }
    }};
}
pub(crate) use endpoint;

/// Handlers, and how to make their documentation.
#[derive(Clone)]
pub struct Endpoint {
    /// The address in the documentation of each handler; all must have the same one.
    pub addresses: BTreeSet<String>,
    pub methods: MethodRouter<AppState>,
    pub described: Arc<dyn Fn() -> UtoipaMethodRouter<AppState> + Send + Sync>,
}

/// Adds to the documentation of routes, or changes it.
type Saying = Box<dyn FnOnce(OpenApiRouter<AppState>) -> OpenApiRouter<AppState> + Send>;

/// Routes, and how to make their documentation.
#[derive(Default)]
#[must_use]
pub struct Routes {
    router: Router<AppState>,
    sayings: Vec<Saying>,
}

impl Routes {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, endpoint: Endpoint) -> Self {
        for address in &endpoint.addresses {
            self.router = self.router.route(address, endpoint.methods.clone());
        }
        let described = endpoint.described;
        self.saying(move |said| said.routes(described()))
    }

    pub fn merge(mut self, others: Self) -> Self {
        let Self { router, sayings } = others;
        self.router = self.router.merge(router);
        self.saying(move |said| said.merge(all_of(sayings)))
    }

    /// Adds `others` with `prefix` in front of their addresses.
    pub fn nest(mut self, prefix: &'static str, others: Self) -> Self {
        let Self { router, sayings } = others;
        self.router = self.router.nest(prefix, router);
        self.saying(move |said| said.nest(prefix, all_of(sayings)))
    }

    /// These routes, with `change` applied to their documentation.
    pub fn saying(
        mut self,
        change: impl FnOnce(OpenApiRouter<AppState>) -> OpenApiRouter<AppState> + Send + 'static,
    ) -> Self {
        self.sayings.push(Box::new(change));
        self
    }

    /// The routes without their documentation.
    pub fn into_router(self) -> Router<AppState> {
        self.router
    }

    /// The documentation of the routes.
    #[must_use]
    pub fn into_document(self) -> Document {
        all_of(self.sayings).into_openapi()
    }
}

#[cfg(test)]
impl From<Router<AppState>> for Routes {
    /// Routes without documentation.
    fn from(router: Router<AppState>) -> Self {
        Self {
            router,
            sayings: Vec::new(),
        }
    }
}

fn all_of(sayings: Vec<Saying>) -> OpenApiRouter<AppState> {
    sayings
        .into_iter()
        .fold(OpenApiRouter::new(), |said, saying| saying(said))
}
