//! Reads verified claims: for whom, from whom, until when.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::auth::reach::Reach;
use crate::auth::settings::{IdentitySettings, Provider};
use crate::model::ids::PersonId;
use crate::model::time::{Instant, MICROS_PER_SECOND};

use super::identity::{Identity, Refusal};

/// The claim for the session that a token belongs to. `jti` has the same value, but earlier tokens have one
/// too without a session.
pub(in crate::auth) const SESSION_CLAIM: &str = "sid";

/// The person that `claims` name, if they are valid at `now` for these settings.
pub(super) fn identity(
    claims: &Map<String, Value>,
    settings: &IdentitySettings,
    now: Instant,
) -> Result<Identity, Refusal> {
    let end = moment(claims, "exp").ok_or(Refusal::NoExpiry)?;
    let expires = end.after(overtime(settings));
    if now >= expires {
        return Err(Refusal::Expired);
    }
    let begun = moment(claims, "iat").map_or(now, |issued| issued.min(now));
    if begun.after(settings.longest.saturating_add(settings.leeway)) < end {
        return Err(Refusal::LongLived);
    }
    if claims.contains_key("nbf") {
        let from = moment(claims, "nbf").ok_or(Refusal::Malformed)?;
        if now.after(settings.leeway) < from {
            return Err(Refusal::NotYet);
        }
    }
    if let Some(issuer) = &settings.issuer
        && claims.get("iss").and_then(Value::as_str) != Some(issuer)
    {
        return Err(Refusal::Issuer);
    }
    if let Some(audience) = &settings.audience
        && !names(claims.get("aud"), audience)
    {
        return Err(Refusal::Audience);
    }
    let person = person(claims, settings)?;
    let name = claims.get("name").and_then(Value::as_str).map(Arc::from);
    Ok(Identity {
        person,
        name,
        expires,
        issued: moment(claims, "iat"),
        session: session(claims, settings)?,
        token: token(claims),
        reach: Reach::of(claims).map_err(|_| Refusal::Malformed)?,
    })
}

/// For how long a token is accepted after the end that it names.
///
/// An outside provider's clock decided on that end, and may be behind this one. Whoever asked for a token of
/// our own was told its end, and expects it to open nothing any more. Only at its beginning may the clock of
/// the node that made it be ahead.
const fn overtime(settings: &IdentitySettings) -> Duration {
    match settings.provider {
        Provider::Embedded => Duration::ZERO,
        Provider::Outside(_) => settings.leeway,
    }
}

/// The configured claim decides if it is present; a person must not be able to hide it behind a `sub` of
/// their choice.
///
/// Our own tokens have the same value in both, under whatever name the claim had then. A subject of an
/// outside provider is whatever its clients are given: it names a person only if the operator says so.
/// Nobody is called by the nil id, which stands for whoever was erased.
fn person(claims: &Map<String, Value>, settings: &IdentitySettings) -> Result<PersonId, Refusal> {
    let stands_in = settings.provider == Provider::Embedded || settings.subject_as_person;
    let claim = claims
        .get(&settings.user_claim)
        .or_else(|| claims.get("sub").filter(|_| stands_in));
    claim
        .and_then(Value::as_str)
        .and_then(|text| Uuid::parse_str(text).ok())
        .filter(|id| !id.is_nil())
        .map(PersonId)
        .ok_or(Refusal::NoPerson)
}

/// The token's own id, if it is safe to log.
fn token(claims: &Map<String, Value>) -> Option<Arc<str>> {
    const LONGEST_ID: usize = 128;
    let id = claims.get("jti")?.as_str()?;
    let is_harmless = id.bytes().all(|byte| byte.is_ascii_graphic());
    (is_harmless && id.len() <= LONGEST_ID).then(|| Arc::from(id))
}

/// The session of a token that was made here. Outside providers have sessions of their own, of which this
/// service knows nothing.
fn session(claims: &Map<String, Value>, settings: &IdentitySettings) -> Result<Option<Uuid>, Refusal> {
    match (&settings.provider, claims.get(SESSION_CLAIM)) {
        (Provider::Outside(_), _) | (Provider::Embedded, None) => Ok(None),
        (Provider::Embedded, Some(claim)) => {
            let id = claim.as_str().and_then(|text| Uuid::parse_str(text).ok());
            id.map(Some).ok_or(Refusal::Malformed)
        }
    }
}

/// A claim in seconds since 1970, which may have a fraction.
fn moment(claims: &Map<String, Value>, name: &str) -> Option<Instant> {
    let seconds = claims.get(name)?.as_f64().filter(|seconds| seconds.is_finite())?;
    // Moments in the far future saturate, which is what they mean.
    Some(Instant::from_micros((seconds * MICROS_PER_SECOND as f64) as i64))
}

fn names(audience: Option<&Value>, wanted: &str) -> bool {
    match audience {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    }
}
