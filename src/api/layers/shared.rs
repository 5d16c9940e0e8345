//! Shares the inside of a layer between all requests instead of cloning it for each.
//!
//! A layer of the router clones the service inside of it for every request, and each clone clones what is
//! inside of that in turn, most of which a refusal or a remembered answer never reaches. A shared service is
//! cloned when a request reaches it, and no deeper than one layer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use tower::util::Oneshot;
use tower::{Layer, Service, ServiceExt as _};

/// Shares what is inside.
#[derive(Clone, Copy, Debug)]
pub struct SharedLayer;

impl<S> Layer<S> for SharedLayer {
    type Service = SharedService<S>;

    fn layer(&self, inside: S) -> SharedService<S> {
        SharedService(Arc::new(inside))
    }
}

/// A service inside of a layer.
#[derive(Debug)]
pub struct SharedService<S>(Arc<S>);

impl<S> Clone for SharedService<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Service<Request> for SharedService<S>
where
    S: Service<Request, Error = Infallible> + Clone,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Oneshot<S, Request>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        S::clone(&self.0).oneshot(request)
    }
}
