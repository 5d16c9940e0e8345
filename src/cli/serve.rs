//! `almanac serve`: puts the rooms together, opens the door, and closes it in good order.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::api::admission::Admission;
use crate::api::app::{App, Shared};
use crate::api::health::{NotReady, Readiness};
use crate::api::metrics::Metrics;
use crate::api::serve::Ended;
use crate::api::{routes, serve};
use crate::auth::grants::Grants;
use crate::auth::jwks::Jwks;
use crate::auth::keys::SigningKey;
use crate::auth::settings::Provider;
use crate::auth::tokens::Verifier;
use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::{IdSource, SystemIds};
use crate::model::registry::Registry;
use crate::people::types::Types;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;

use super::settings::{Settings, own_url};
use super::{Failed, data_directory, logging};

/// Asking for an object that is not there shows that the store answers, and costs it nothing.
const NO_SUCH_OBJECT: &str = "data/nobody/nothing";

/// A load balancer asks often and does not wait long.
const READY_LIMIT: Duration = Duration::from_secs(3);

pub fn run(settings: Settings, demo: bool) -> Result<(), Failed> {
    logging::start(&settings.log)?;
    data_directory::open(&settings.data_dir)?;
    warn_about(&settings);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failed::from_error)?;
    runtime.block_on(serve_until_told(settings, demo))
}

async fn serve_until_told(mut settings: Settings, demo: bool) -> Result<(), Failed> {
    let stop = told_to_stop()?;
    let listener = serve::listen(&settings.interface).await.map_err(Failed::from_error)?;
    let address = listener.local_addr().map_err(Failed::from_error)?;
    if settings.interface.public_url == own_url(settings.interface.listen) {
        // The port may have been left to the system.
        settings.interface.public_url = own_url(address);
    }
    if demo {
        return Err(Failed::because("`serve --demo` is not available yet"));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = Catalog::open(&settings.database_url, Arc::clone(&clock))
        .await
        .map_err(Failed::from_error)?;
    let objects = ObjectStorage::open(&settings.objects).map_err(Failed::from_error)?;
    let app = app(&settings, clock, &catalog, objects)?;
    let router = routes::router(Arc::clone(&app)).map_err(Failed::from_error)?;
    tracing::info!(%address, public_url = %app.settings.public_url, "serving");
    let ended = serve::serve(listener, router, &app.settings, stop).await;
    catalog.close().await;
    match ended {
        Ended::InGoodOrder => tracing::info!("stopped: everything accepted was answered"),
        Ended::Interrupted => tracing::warn!("stopped: time ran out while requests were still being answered"),
    }
    Ok(())
}

fn app(settings: &Settings, clock: Arc<dyn Clock>, catalog: &Catalog, objects: ObjectStorage) -> Result<Shared, Failed> {
    let registry = Arc::new(Registry::builtin().map_err(Failed::from_error)?);
    let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
    let metrics = Metrics::new();
    let interface = settings.interface.clone();
    let reads = metrics.meters.reads.clone();
    let queries = Admission::new(
        interface.concurrent_queries,
        interface.waiting_queries,
        interface.queue_patience,
        reads,
    );
    Ok(Arc::new(App {
        verifier: verifier(settings, &clock)?,
        settings: interface,
        types: Types::new(registry, catalog.clone(), Arc::clone(&clock), Arc::clone(&ids)),
        clock,
        ids,
        grants: Grants::each_to_their_own(),
        metrics,
        readiness: Box::new(Foundations {
            catalog: catalog.clone(),
            objects,
        }),
        queries,
    }))
}

fn verifier(settings: &Settings, clock: &Arc<dyn Clock>) -> Result<Verifier, Failed> {
    let identity = settings.identity.clone();
    match &settings.identity.provider {
        Provider::Embedded => {
            let key = SigningKey::open_or_create(&settings.data_dir).map_err(Failed::from_error)?;
            Ok(Verifier::embedded(&key, identity, Arc::clone(clock)))
        }
        Provider::Outside(provider) => {
            let jwks = Jwks::new(provider.clone(), Arc::clone(clock)).map_err(Failed::from_error)?;
            Ok(Verifier::outside(jwks, identity, Arc::clone(clock)))
        }
    }
}

/// Says what an operator would not expect of their settings.
fn warn_about(settings: &Settings) {
    if let Some(endpoint) = &settings.trace_endpoint {
        tracing::warn!(%endpoint, "trace export is not available yet: OTEL_EXPORTER_OTLP_ENDPOINT has no effect");
    }
    if matches!(settings.identity.provider, Provider::Outside(_)) {
        for (name, value) in [
            ("ALMANAC_ISSUER", &settings.identity.issuer),
            ("ALMANAC_AUDIENCE", &settings.identity.audience),
        ] {
            if value.is_none() {
                tracing::warn!("{name} is not set: tokens that the provider made for other services are accepted here");
            }
        }
    }
}

/// Done at the first SIGTERM or SIGINT.
fn told_to_stop() -> Result<impl Future<Output = ()>, Failed> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failed::from_error)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failed::from_error)?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
    })
}

/// What every request stands on.
struct Foundations {
    catalog: Catalog,
    objects: ObjectStorage,
}

impl Readiness for Foundations {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(self.answer())
    }
}

impl Foundations {
    async fn answer(&self) -> Result<(), NotReady> {
        let looked = async {
            self.catalog.ping().await.map_err(|error| NotReady {
                part: "catalogue",
                reason: error.to_string(),
            })?;
            match self.objects.size(NO_SUCH_OBJECT).await {
                Ok(_) | Err(StoreError::Missing { .. }) => Ok(()),
                Err(error) => Err(NotReady {
                    part: "object store",
                    reason: error.to_string(),
                }),
            }
        };
        let late = |_| NotReady {
            part: "catalogue or object store",
            reason: "no answer in time".to_owned(),
        };
        tokio::time::timeout(READY_LIMIT, looked).await.map_err(late)?
    }
}
