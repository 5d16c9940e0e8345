//! `almanac serve`: puts the rooms together, opens the service, and closes it in good order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::app::App;
use crate::api::serve::lanes::Lanes;
use crate::api::serve::tls::{self, Certificate};
use crate::api::serve::{Ended, ServeError};
use crate::api::{routes, serve};
use crate::auth::mint::{Minter, TokenOrder};
use crate::auth::reach::Reach;
use crate::auth::settings::Provider;
use crate::auth::tickets::Tickets;
use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::model::registry::{Registry, RegistryError};
use crate::people::text::Name;

use super::assembly::{Assembly, Foundations, assemble};
use super::broken_part::{NamedTask, wait_until_told_or_broken};
use super::closing::stop_in_order;
use super::dependencies::UntilStopping;
use super::failed::Failed;
use super::settings::{Settings, own_url};
use super::standard_output::print;
use super::stores::{self, OpenedStore};
use super::token_keys::{ring, verifier};
use super::{background, data_directory, demo, descriptors, installation, logging, plaintext, runtimes};

/// The signal for a write beyond the limit on file sizes (SIGXFSZ).
const FILE_TOO_LARGE: i32 = 25;

/// How long the sample person's token is valid.
const DEMO_TOKEN_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The name of its session.
const DEMO_SESSION: &str = "almanac serve --demo";

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOrder {
    /// What is stored.
    Stored,
    /// And the sample person, who is loaded first.
    WithSample,
}

pub fn run(settings: Settings, order: ServeOrder) -> Result<(), Failed> {
    logging::start(&settings.log)?;
    installation::makeable(&settings)?;
    data_directory::open(&settings.data_dir)?;
    let served = data_directory::served(&settings.data_dir);
    if served.by_another {
        tracing::warn!(
            "another process serves this data directory too: nothing is lost by that, but each has limits \
             and memory of its own"
        );
    }
    warn_about(&settings);
    refuse_what_is_unsafe(&settings)?;
    let runtime = runtimes::many_threads()?;
    let connections = runtimes::lanes()?;
    let lanes = Lanes::on(connections.iter().map(|runtime| runtime.handle().clone()));
    runtime.block_on(serve_until_told(settings, order, lanes))
}

async fn serve_until_told(mut settings: Settings, order: ServeOrder, lanes: Lanes) -> Result<(), Failed> {
    // Takes about as long as opening the stores, and does not wait for them.
    let registry = tokio::task::spawn_blocking(Registry::builtin);
    let stop = told_to_stop()?;
    let stopping = CancellationToken::new();
    let listening = listen(&mut settings).await?;
    let mut assembly = opened(&settings, order, registry, &stopping).await?;
    let stop_upkeep = CancellationToken::new();
    let mut tasks = background::all(&settings, &assembly, &stop_upkeep);
    let router = routes::router(Arc::clone(&assembly.app));
    let certificate = listening.certificate.clone();
    tasks.extend(certificate.map(|certificate| following(certificate, &stop_upkeep)));
    let operations = listening.operations;
    tasks.extend(operations.map(|listener| serve_operations(listener, &assembly.app, &stop_upkeep)));
    let (address, public_url) = (listening.address, &assembly.app.settings.public_url);
    tracing::info!(%address, %public_url, "serving");
    let mut broken = None;
    let told_or_broken = async {
        let writing = [
            ("the committing task", &mut assembly.committing),
            ("the access log", &mut assembly.logging),
        ];
        let beside = tasks.iter_mut().map(|(name, task)| (*name, task));
        broken = wait_until_told_or_broken(stop, writing.into_iter().chain(beside)).await;
        stopping.cancel();
    };
    let served = serve::serve(
        listening.listener,
        router,
        &assembly.app.settings,
        listening.certificate,
        lanes,
        told_or_broken,
    );
    let ended = Box::pin(served).await;
    stop_upkeep.cancel();
    if let Some(broken) = broken {
        return Err(broken.into_failure());
    }
    stop_in_order(assembly, tasks).await;
    match ended {
        Ended::InGoodOrder => tracing::info!("stopped: everything accepted was answered"),
        Ended::Interrupted => {
            tracing::warn!("stopped: time ran out while requests were still being answered");
        }
    }
    Ok(())
}

/// The sockets that are open, and what is spoken on them.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    /// For health and metrics, if they have an address of their own.
    operations: Option<TcpListener>,
    certificate: Option<Arc<Certificate>>,
}

/// Opens the sockets, and completes the settings with what is known only then.
async fn listen(settings: &mut Settings) -> Result<Listening, Failed> {
    let listener = serve::listen(settings.interface.listen)
        .await
        .map_err(|error| not_listening(&error, "--listen"))?;
    let operations = operations_listener(settings).await?;
    let certificate = certificate(settings)?;
    let address = listener.local_addr().map_err(Failed::from_error)?;
    let scheme = if certificate.is_some() { "https" } else { "http" };
    if settings.interface.public_url == own_url(scheme, settings.interface.listen) {
        // The system may have chosen the port.
        settings.interface.public_url = own_url(scheme, address);
    }
    settings.interface.connection_limit = descriptors::connections(settings.interface.connection_limit);
    Ok(Listening {
        listener,
        address,
        operations,
        certificate,
    })
}

fn not_listening(error: &ServeError, flag: &str) -> Failed {
    Failed::because(format!("{error}; choose another address with {flag}"))
}

/// The service over its catalogue, which is closed again if the service cannot be.
async fn opened(
    settings: &Settings,
    order: ServeOrder,
    registry: JoinHandle<Result<Registry, RegistryError>>,
    stopping: &CancellationToken,
) -> Result<Assembly, Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let connections = settings.database_connections;
    let catalog = Catalog::open_with(&settings.database_url, Arc::clone(&clock), connections)
        .await
        .map_err(Failed::from_error)?;
    let assembled = async {
        let foundations = open_foundations(settings, catalog.clone(), clock, registry, stopping).await?;
        let assembly = assemble(settings, foundations)?;
        if order == ServeOrder::WithSample {
            load_demo(&assembly.app).await?;
        }
        Ok(assembly)
    };
    let assembled = Box::pin(assembled).await;
    stores::or_closed(&catalog, assembled).await
}

async fn open_foundations(
    settings: &Settings,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    registry: JoinHandle<Result<Registry, RegistryError>>,
    stopping: &CancellationToken,
) -> Result<Foundations, Failed> {
    let OpenedStore { objects, keys } =
        stores::paired(settings, &catalog, |what| tracing::warn!("{what}")).await?;
    installation::warn_of_lost_signing_key(settings, &catalog).await;
    let ring = ring(settings, &clock)?;
    Ok(Foundations {
        verifier: verifier(settings, ring.as_ref(), &clock)?,
        minter: ring.map(|ring| Minter::following(ring, settings.identity.clone())),
        tickets: Tickets::open(&catalog).await.map_err(Failed::from_error)?,
        readiness: Box::new(UntilStopping::of(&catalog, &objects, stopping)),
        clock,
        catalog,
        objects,
        keys,
        registry: registry
            .await
            .map_err(Failed::from_error)?
            .map_err(Failed::from_error)?,
    })
}

/// Loads the sample person, and says how to ask for their data.
async fn load_demo(app: &App) -> Result<(), Failed> {
    if !Box::pin(demo::load(app)).await? {
        tracing::warn!("the sample person was erased, and is not loaded again");
        return Ok(());
    }
    let invitation = demo::invitation(&app.settings.public_url, &demo_token(app).await?);
    if let Err(error) = print(&invitation) {
        tracing::warn!(%error, "the commands for the sample person could not be printed; \
                                `almanac token` prints a token");
    }
    Ok(())
}

/// The certificate for TLS, if TLS is used.
fn certificate(settings: &Settings) -> Result<Option<Arc<Certificate>>, Failed> {
    let files = settings.interface.certificate.as_ref();
    let opened = files.map(Certificate::open).transpose();
    Ok(opened.map_err(Failed::from_error)?.map(Arc::new))
}

/// A socket at the separate address for health and metrics, if one is set.
async fn operations_listener(settings: &Settings) -> Result<Option<TcpListener>, Failed> {
    let Some(address) = settings.interface.operations_address else {
        return Ok(None);
    };
    let listener = serve::listen(address)
        .await
        .map_err(|error| not_listening(&error, "--operations-address"))?;
    let address = listener.local_addr().map_err(Failed::from_error)?;
    tracing::info!(%address, "showing health and metrics");
    Ok(Some(listener))
}

/// Uses the certificate that its files hold.
fn following(certificate: Arc<Certificate>, stop: &CancellationToken) -> NamedTask {
    let stop = stop.clone();
    let followed = async move {
        let files = certificate.follow_files(tls::LOOK_INTERVAL);
        stop.run_until_cancelled(files).await;
    };
    ("the following of the certificate", tokio::spawn(followed))
}

/// Shows health and metrics at the separate address.
fn serve_operations(listener: TcpListener, app: &Arc<App>, stop: &CancellationToken) -> NamedTask {
    let (router, stop) = (routes::operations(Arc::clone(app)), stop.clone());
    let settings = app.settings.clone();
    let shown = async move {
        let _ended = serve::serve(listener, router, &settings, None, Lanes::on([]), stop.cancelled()).await;
    };
    ("the showing of health and metrics", tokio::spawn(shown))
}

/// A token of the sample person, if this installation issues tokens.
async fn demo_token(app: &App) -> Result<String, Failed> {
    let Some(minter) = &app.minter else {
        return Err(Failed::because(
            "`serve --demo` prints a token, so it needs the embedded identity provider: unset \
             ALMANAC_JWKS_URL",
        ));
    };
    let order = TokenOrder {
        person: demo::PERSON,
        name: Some(demo::NAME.to_owned()),
        lifetime: minter.lifetime(DEMO_TOKEN_LIFETIME),
        reach: Reach::default(),
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

/// Warns of effects of the settings that an operator would not expect.
fn warn_about(settings: &Settings) {
    if settings.files.direct && !settings.sends_directly() {
        tracing::warn!(
            "ALMANAC_DIRECT_UPLOADS has no effect: the object store is a directory, or what is stored is \
             encrypted"
        );
    }
    if settings.allow_plaintext {
        tracing::warn!(
            "ALMANAC_ALLOW_PLAINTEXT: anybody on the network path can read and change the traffic"
        );
    }
}

/// Refuses settings that would let strangers in; a warning is not enough.
fn refuse_what_is_unsafe(settings: &Settings) -> Result<(), Failed> {
    if matches!(settings.identity.provider, Provider::Outside(_)) {
        for (name, value) in [
            ("ALMANAC_ISSUER", &settings.identity.issuer),
            ("ALMANAC_AUDIENCE", &settings.identity.audience),
        ] {
            if value.is_none() {
                return Err(Failed::because(format!(
                    "{name} is not set: tokens that the provider issued for other services would be \
                     accepted here; say what tokens for this one carry"
                )));
            }
        }
    }
    plaintext::refuse_unsafe_provider(settings)
}

/// Done at the first SIGTERM or SIGINT.
fn told_to_stop() -> Result<impl Future<Output = ()>, Failed> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failed::from_error)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failed::from_error)?;
    // A write beyond the limit on file sizes is then an error for the writer, and does not end the process.
    let too_large = signal(SignalKind::from_raw(FILE_TOO_LARGE));
    drop(too_large.map_err(Failed::from_error)?);
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
    })
}
