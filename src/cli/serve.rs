//! `almanac serve`: puts the rooms together, opens the door, and closes it in good order.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::app::App;
use crate::api::health::{NotReady, Readiness};
use crate::api::serve::Ended;
use crate::api::{routes, serve};
use crate::auth::jwks::Jwks;
use crate::auth::keys::SigningKey;
use crate::auth::mint::{Minter, TokenOrder};
use crate::auth::settings::Provider;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::Verifier;
use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::SystemIds;
use crate::people::files::scan::Scanning;
use crate::people::text::Name;
use crate::store::StoreError;
use crate::store::objects::ObjectStorage;
use crate::upkeep::lease::Leases;
use crate::upkeep::{Upkeep, UpkeepStores, identity};

use super::assembly::{Assembly, Foundations, assemble};
use super::settings::{Settings, own_url};
use super::{Failed, data_directory, demo, logging, print};

/// Asking for an object that is not there shows that the store answers, and costs it nothing.
const NO_SUCH_OBJECT: &str = "data/nobody/nothing";

/// A load balancer asks often and does not wait long.
const READY_LIMIT: Duration = Duration::from_secs(3);

/// How long the token of the sample person serves.
const DEMO_TOKEN: Duration = Duration::from_hours(30 * 24);

/// What its session is called.
const DEMO_SESSION: &str = "almanac serve --demo";

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
    let listener = serve::listen(&settings.interface)
        .await
        .map_err(Failed::from_error)?;
    let address = listener.local_addr().map_err(Failed::from_error)?;
    if settings.interface.public_url == own_url(settings.interface.listen) {
        // The port may have been left to the system.
        settings.interface.public_url = own_url(address);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = Catalog::open(&settings.database_url, Arc::clone(&clock))
        .await
        .map_err(Failed::from_error)?;
    let objects = ObjectStorage::open(&settings.objects).map_err(Failed::from_error)?;
    identity::settle(&catalog, &objects, &SystemIds, settings.adopt_store)
        .await
        .map_err(Failed::from_error)?;
    let foundations = Foundations {
        verifier: verifier(&settings, &clock)?,
        minter: minter(&settings)?,
        tickets: Tickets::open(&catalog).await.map_err(Failed::from_error)?,
        readiness: Box::new(Dependencies {
            catalog: catalog.clone(),
            objects: objects.clone(),
        }),
        clock,
        catalog,
        objects,
    };
    let mut assembly = assemble(&settings, foundations)?;
    if demo {
        demo::load(&assembly.app).await?;
        let invitation = demo::invitation(
            &assembly.app.settings.public_url,
            &demo_token(&assembly.app).await?,
        );
        if let Err(error) = print(&invitation) {
            tracing::warn!(%error, "nobody was told how to ask for the sample person; `almanac token` prints a token");
        }
    }
    let stop_upkeep = CancellationToken::new();
    let upkeep = UpkeepStores {
        catalog: assembly.catalog.clone(),
        snapshots: assembly.snapshots.clone(),
        files: assembly.files.clone(),
        clock: Arc::clone(&assembly.app.clock),
        ids: Arc::clone(&assembly.app.ids),
    };
    let mut upkeep = Upkeep::start(
        settings.upkeep,
        upkeep,
        assembly.app.metrics.meters.clone(),
        stop_upkeep.clone(),
        assembly.computing.handle(),
    );
    let scanning = scanning(&settings, &assembly, &stop_upkeep);
    let router = routes::router(Arc::clone(&assembly.app)).map_err(Failed::from_error)?;
    tracing::info!(%address, public_url = %assembly.app.settings.public_url, "serving");
    let mut broken = None;
    let told_or_broken = async {
        broken = tokio::select! {
            () = stop => None,
            ended = &mut assembly.committing => Some(("the committing task", ended)),
            ended = &mut upkeep => Some(("upkeep", ended)),
        };
    };
    let ended = serve::serve(listener, router, &assembly.app.settings, told_or_broken).await;
    stop_upkeep.cancel();
    let limit = assembly.app.settings.shutdown_limit;
    if let Some((part, outcome)) = broken {
        // A service that cannot write, or lets its tail grow, must not stay and say that it is well.
        let reason = outcome
            .err()
            .map_or_else(|| "it ended".to_owned(), |error| error.to_string());
        tracing::error!(part, reason, "a part of the service broke; it stops");
        assembly.computing.shutdown_background();
        return Err(Failed::because(format!(
            "{part} broke: {reason}; start the service again"
        )));
    }
    if let Some(scanning) = scanning {
        finished("the scanning of files", scanning, limit).await;
    }
    finished("upkeep", upkeep, limit).await;
    close(assembly, limit).await;
    match ended {
        Ended::InGoodOrder => tracing::info!("stopped: everything accepted was answered"),
        Ended::Interrupted => {
            tracing::warn!("stopped: time ran out while requests were still being answered");
        }
    }
    Ok(())
}

/// Has files looked through for harm, where somebody does that.
fn scanning(settings: &Settings, assembly: &Assembly, stop: &CancellationToken) -> Option<JoinHandle<()>> {
    let scanner = settings.files.clamd.clone()?;
    let app = &assembly.app;
    let leases = Leases::new(
        assembly.catalog.clone(),
        app.ids.next().to_string(),
        app.metrics.meters.upkeep.clone(),
    );
    let work = Scanning::new(app.files.clone(), scanner, leases).run(stop.clone());
    Some(tokio::spawn(work))
}

/// Waits for a task that was told to end, and no longer than `limit`.
async fn finished(what: &str, mut task: JoinHandle<()>, limit: Duration) {
    match tokio::time::timeout(limit, &mut task).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "{what} failed"),
        Err(_) => {
            tracing::warn!("{what} did not end in time and is dropped");
            task.abort();
        }
    }
}

/// Ends what works in the background, after the last request, and waits for none of it longer than `limit`.
pub(super) async fn close(assembly: Assembly, limit: Duration) {
    // The committing task ends when nobody can reach its queue any more.
    drop(assembly.app);
    finished("the committing task", assembly.committing, limit).await;
    finished("the access log", assembly.logging, limit).await;
    if tokio::time::timeout(limit, assembly.catalog.close())
        .await
        .is_err()
    {
        tracing::warn!("the catalogue did not close in time");
    }
    assembly.computing.shutdown_background();
    drop(assembly.spill);
}

/// A token of the sample person, where tokens are made here.
async fn demo_token(app: &App) -> Result<String, Failed> {
    let Some(minter) = &app.minter else {
        return Err(Failed::because(
            "`serve --demo` prints a token, so it needs the embedded identity provider: unset ALMANAC_JWKS_URL",
        ));
    };
    let order = TokenOrder {
        person: demo::PERSON,
        name: Some(demo::NAME.to_owned()),
        lifetime: DEMO_TOKEN,
    };
    let session = app
        .sessions
        .open(
            order.person,
            Name::try_from(DEMO_SESSION.to_owned()).map_err(Failed::from_error)?,
            order.lifetime,
        )
        .await;
    let session = session.map_err(Failed::from_error)?;
    minter
        .token(&order, session.id, session.created_at)
        .map_err(Failed::from_error)
}

/// What makes tokens, where they are made here.
pub(super) fn minter(settings: &Settings) -> Result<Option<Minter>, Failed> {
    match &settings.identity.provider {
        Provider::Outside(_) => Ok(None),
        Provider::Embedded => {
            let key = SigningKey::open_or_create(&settings.data_dir).map_err(Failed::from_error)?;
            Ok(Some(Minter::new(key, settings.identity.clone())))
        }
    }
}

pub(super) fn verifier(settings: &Settings, clock: &Arc<dyn Clock>) -> Result<Verifier, Failed> {
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
                tracing::warn!(
                    "{name} is not set: tokens that the provider made for other services are accepted here"
                );
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

/// Of a process that answers one request, nobody asks whether it is ready.
pub(super) struct AlwaysReady;

impl Readiness for AlwaysReady {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What every request stands on.
struct Dependencies {
    catalog: Catalog,
    objects: ObjectStorage,
}

impl Readiness for Dependencies {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(self.answer())
    }
}

impl Dependencies {
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
