//! What a token may do, if that is less than its person may: only read or only record, and only some types. A
//! token can only be narrower than its person. What it may not do is refused before anything is looked at, or
//! where a permit would be given.
//!
//! Knows tokens and types; paths and methods belong to the interface, of which it knows only the prefixes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::model::names::named;
use crate::model::registry::TypeId;

/// The claims that narrow a token.
const SCOPE: &str = "svc_scope";
const TYPES: &str = "svc_types";

/// The prefix where everything is a read, whatever the method.
pub const READING: &str = "/data/";
/// The prefix for sending records, whose types the path or the body names.
const RECORDING: &str = "/ingest/v1/record";
/// The prefix for sending records in every form.
const INGEST: &str = "/ingest/";
/// The prefix for sending files and for defining types.
const INPUT: &str = "/input/v1/";
/// The paths below `/data/` that belong to no type: what they list is of all of them.
const OF_NO_TYPE: [&str; 2] = ["/data/v1alpha1/data_sources", "/data/v1alpha1/data_types"];

/// What a type takes in a list besides its id.
const TYPE_BYTES: usize = 48;

named! {
    "scope",
    /// What a token may be used for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Scope {
        Read = "read",
        Write = "write",
    }
}

/// What a token may do. By default, everything that its person may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    pub scope: Option<Scope>,
    /// A base covers the types that people define on it.
    pub types: Option<Arc<[TypeId]>>,
}

impl Reach {
    /// About how many bytes its types take.
    #[must_use]
    pub fn memory(&self) -> usize {
        let types = self.types.iter().flat_map(|types| types.iter());
        types.map(|id| TYPE_BYTES + id.as_str().len()).sum()
    }
}

/// Why a request exceeds a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Beyond {
    #[error("this token can only read")]
    Reads,
    #[error("this token can only send records and files")]
    Writes,
    #[error("this token is for records of some types only")]
    Types,
}

/// The claims of a token narrow it in a way that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotUnderstood;

/// Whether a request only reads: questions are asked by other methods too.
#[must_use]
pub fn only_reads(is_safe: bool, path: &str) -> bool {
    is_safe || path.starts_with(READING)
}

impl Reach {
    /// Whether a request is allowed, apart from its types, which are checked later.
    pub fn admits(&self, is_safe: bool, path: &str) -> Result<(), Beyond> {
        match self.scope {
            Some(Scope::Read) if !only_reads(is_safe, path) => return Err(Beyond::Reads),
            Some(Scope::Write) if is_safe || !sends(path) => return Err(Beyond::Writes),
            _ => {}
        }
        let has_types =
            (path.starts_with(READING) && !OF_NO_TYPE.contains(&path)) || path.starts_with(RECORDING);
        if self.types.is_some() && !has_types {
            return Err(Beyond::Types);
        }
        Ok(())
    }

    /// Whether it is for all types that its person may see.
    #[must_use]
    pub const fn has_all_types(&self) -> bool {
        self.types.is_none()
    }

    #[must_use]
    pub fn covers(&self, data_type: &TypeId) -> bool {
        self.types.as_deref().is_none_or(|types| {
            types
                .iter()
                .any(|covered| covered == data_type || covered.as_str() == data_type.base())
        })
    }

    pub(super) fn write_into(&self, claims: &mut Map<String, Value>) {
        if let Some(scope) = self.scope {
            claims.insert(SCOPE.to_owned(), json!(scope.name()));
        }
        if let Some(types) = &self.types {
            let names: Vec<&str> = types.iter().map(TypeId::as_str).collect();
            claims.insert(TYPES.to_owned(), json!(names));
        }
    }

    /// A claim that is not understood invalidates the token.
    pub(super) fn of(claims: &Map<String, Value>) -> Result<Self, NotUnderstood> {
        let scope = match claims.get(SCOPE) {
            None => None,
            Some(claim) => {
                let scope = claim.as_str().and_then(|name| name.parse().ok());
                Some(scope.ok_or(NotUnderstood)?)
            }
        };
        let types = match claims.get(TYPES) {
            None => None,
            Some(claim) => {
                let names = claim.as_array().ok_or(NotUnderstood)?;
                let types: Option<Vec<TypeId>> = names
                    .iter()
                    .map(|name| Some(TypeId::new(name.as_str()?)))
                    .collect();
                Some(types.ok_or(NotUnderstood)?.into())
            }
        };
        Ok(Self { scope, types })
    }
}

/// Whether what changes something at `path` sends something. Deeper below [`INPUT`] than a kind of things and
/// one of them stands what answers with something stored: a definition that is changed, a file that is
/// restored.
fn sends(path: &str) -> bool {
    let input = path.strip_prefix(INPUT);
    path.starts_with(INGEST) || input.is_some_and(|rest| rest.split('/').count() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(scope: Option<Scope>, types: &[&str]) -> Reach {
        let types: Vec<TypeId> = types.iter().map(|name| TypeId::new(name)).collect();
        Reach {
            scope,
            types: (!types.is_empty()).then(|| types.into()),
        }
    }

    #[test]
    fn a_token_is_as_narrow_after_it_was_signed_as_before() {
        for narrow in [
            Reach::default(),
            reach(Some(Scope::Read), &[]),
            reach(
                Some(Scope::Write),
                &["HeartRate", "Event/0191f000-0000-7000-8000-000000000001"],
            ),
        ] {
            let mut claims = Map::new();
            narrow.write_into(&mut claims);
            assert_eq!(Reach::of(&claims), Ok(narrow));
        }
        for (name, claim) in [
            (SCOPE, json!("admin")),
            (SCOPE, json!(null)),
            (TYPES, json!("HeartRate")),
            (TYPES, json!([1])),
        ] {
            let claims = Map::from_iter([(name.to_owned(), claim)]);
            assert_eq!(Reach::of(&claims), Err(NotUnderstood), "{name}");
        }
    }

    #[test]
    fn what_a_token_may_do_is_decided_by_method_and_path() {
        let admits = |reach: &Reach, safe: bool, path: &str| reach.admits(safe, path).is_ok();
        let (reads, writes, typed) = (
            reach(Some(Scope::Read), &[]),
            reach(Some(Scope::Write), &[]),
            reach(None, &["HeartRate"]),
        );
        for (is_safe, path, expected) in [
            (true, "/data/v0/metrics_catalog", [true, false, true]),
            (false, "/data/v1/frames", [true, false, true]),
            (true, "/data/v1alpha1/data_sources", [true, false, false]),
            (false, "/ingest/v1/record/HeartRate", [false, true, true]),
            (false, "/ingest/v1/record/batch", [false, true, true]),
            (false, "/ingest/v1/record", [false, true, true]),
            (false, "/input/v1/file", [false, true, false]),
            (true, "/input/v1/file", [true, false, false]),
            (false, "/input/v1/file/0191f000", [false, true, false]),
            (false, "/input/v1/file/0191f000/restore", [false, false, false]),
            (
                false,
                "/input/v1/file_upload/0191f000/restore",
                [false, false, false],
            ),
            (false, "/input/v1/data_type/Event", [false, true, false]),
            (false, "/input/v1/data_type/Event/0191f000", [false, false, false]),
            (true, "/user/v1alpha1/info", [true, false, false]),
            (false, "/user/v1alpha1/api_session", [false, false, false]),
            (false, "/user/v1alpha1/account", [false, false, false]),
        ] {
            let found = [&reads, &writes, &typed].map(|reach| admits(reach, is_safe, path));
            assert_eq!(found, expected, "{path}");
            assert!(admits(&Reach::default(), is_safe, path));
        }
    }

    #[test]
    fn a_base_covers_what_is_defined_on_it_and_not_the_other_way_round() {
        let own = TypeId::new("Event/0191f000-0000-7000-8000-000000000001");
        assert!(reach(None, &["Event"]).covers(&own));
        assert!(!reach(None, &[own.as_str()]).covers(&TypeId::new("Event")));
        assert!(!reach(None, &["HeartRate"]).covers(&own));
        assert!(Reach::default().covers(&own));
    }
}
