//! `almanac token`: an access token on standard output and nothing else. Works beside a running service with
//! the same settings, and only if there is an installation: a token of a new one, made by mistake somewhere
//! else, would open nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::auth::mint::{Minter, TokenOrder, USUAL_LIFETIME};
use crate::auth::reach::{Reach, Scope};
use crate::auth::settings::Provider;
use crate::model::clock::SystemClock;
use crate::model::ids::{PersonId, SystemIds};
use crate::model::nearest::{hint, nearest};
use crate::model::registry::{Base, Registry, TypeId};
use crate::model::whole_units::in_whole_units;
use crate::people::sessions::{Session, Sessions};
use crate::people::text::Name;

use super::failed::Failed;
use super::settings::{Settings, without_passwords};
use super::standard_output::print;
use super::{installation, runtimes, stores};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The name of a token's session if none was given.
const USUAL_SESSION_NAME: &str = "almanac token";

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(super) struct NewTokenOrder {
    pub person: PersonId,
    pub name: Option<String>,
    /// The lifetime, if one was named.
    pub days: Option<u64>,
    pub reach: Reach,
}

pub(super) fn run(settings: &Settings, asked: &NewTokenOrder) -> Result<(), Failed> {
    if let Provider::Outside(provider) = &settings.identity.provider {
        return Err(Failed::because(format!(
            "tokens come from the identity provider at {}; this service accepts none of its own",
            without_passwords(&provider.jwks_url)
        )));
    }
    let lifetime = lifetime(asked.days, settings.identity.longest)?;
    let name = asked
        .name
        .clone()
        .unwrap_or_else(|| USUAL_SESSION_NAME.to_owned());
    let name = Name::try_from(name)
        .map_err(|error| Failed::wrong_usage(format!("the name cannot be stored: {error}")))?;
    let order = TokenOrder {
        person: asked.person,
        name: asked.name.clone(),
        lifetime,
        reach: known(&asked.reach)?,
    };
    let key = installation::signing_key(settings)?;
    let runtime = runtimes::one_thread()?;
    let session = runtime.block_on(opened(settings, &order, name))?;
    let token = Minter::new(key, settings.identity.clone())
        .token(&order, session.id, session.created_at)
        .map_err(Failed::from_error)?;
    print(&format!("{token}\n"))
}

/// How long a token is valid for which `days` were asked for, if any were.
fn lifetime(days: Option<u64>, longest: Duration) -> Result<Duration, Failed> {
    let Some(days) = days else {
        return Ok(USUAL_LIFETIME.min(longest));
    };
    let lifetime = Duration::from_secs(days.saturating_mul(SECONDS_PER_DAY));
    if lifetime > longest {
        return Err(Failed::wrong_usage(format!(
            "tokens are valid for {} at most (ALMANAC_TOKEN_LIFETIME_LIMIT); ask for less with --days, or \
             leave it out",
            in_whole_units(longest)
        )));
    }
    Ok(lifetime)
}

/// A reach with canonical names of types. An impossible name is refused: its token would open nothing.
fn known(reach: &Reach) -> Result<Reach, Failed> {
    let Some(types) = &reach.types else {
        return Ok(reach.clone());
    };
    let registry = Registry::builtin().map_err(Failed::from_error)?;
    let canonical = |name: &TypeId| {
        let built_in = registry.get(name.as_str()).map(|known| known.id.clone());
        let own = || TypeId::parse(name.as_str()).filter(|own| registry.get(own.base()).is_some());
        built_in.or_else(own).ok_or_else(|| {
            let known = registry.types().iter().map(|known| known.id.as_str());
            let hint = hint(nearest(name.as_str(), known));
            Failed::wrong_usage(format!("there is no type {name}{hint}"))
        })
    };
    let types: Vec<TypeId> = types.iter().map(canonical).collect::<Result<_, Failed>>()?;
    refuse_writing_beside_others(reach.scope, &types)?;
    Ok(Reach {
        types: Some(types.into()),
        ..reach.clone()
    })
}

/// Refuses a token of one annotation that is not for reading alone: it could neither send nor delete. An id
/// is looked up among the records of all annotations of a base, so it could reach those of another one.
fn refuse_writing_beside_others(scope: Option<Scope>, types: &[TypeId]) -> Result<(), Failed> {
    let is_beside_others = |id: &&TypeId| id.definition().is_some() && Base::named(id.base()).is_none();
    match types.iter().find(is_beside_others) {
        Some(id) if scope != Some(Scope::Read) => Err(Failed::wrong_usage(format!(
            "a token of {id} can only read: make it with --scope read, or for all of {}",
            id.base()
        ))),
        _ => Ok(()),
    }
}

/// Opens a session of the person, who is added to the catalogue if needed.
async fn opened(settings: &Settings, order: &TokenOrder, name: Name) -> Result<Session, Failed> {
    let catalog = stores::catalog(settings).await?;
    let ensured = catalog.ensure_person(order.person, order.name.as_deref()).await;
    let sessions = Sessions::new(
        catalog.clone(),
        Arc::new(SystemClock),
        Arc::new(SystemIds::default()),
        settings.limits.sessions,
    );
    let session = match ensured {
        Ok(_) => sessions.open(order.person, name, order.lifetime).await,
        Err(error) => Err(error.into()),
    };
    catalog.close().await;
    session.map_err(Failed::from_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_names_the_limit_in_units_that_fit() {
        let hour = Duration::from_hours(1);
        let told = lifetime(Some(1), hour).unwrap_err().to_string();
        assert!(told.contains("for 1 hour at most"), "{told}");
        assert_eq!(lifetime(None, hour).unwrap(), hour);
    }

    #[test]
    fn a_token_of_one_annotation_only_reads() {
        let reach = |scope: Option<Scope>, base: &str| Reach {
            scope,
            types: Some(
                [TypeId::new(&format!(
                    "{base}/0191f000-0000-7000-8000-000000000001"
                ))]
                .into(),
            ),
        };
        let told = known(&reach(None, "MomentAnnotation")).unwrap_err().to_string();
        assert!(told.contains("for all of MomentAnnotation"), "{told}");
        assert!(known(&reach(Some(Scope::Write), "MomentAnnotation")).is_err());
        assert!(known(&reach(Some(Scope::Read), "MomentAnnotation")).is_ok());
        assert!(known(&reach(None, "Event")).is_ok());
    }
}
