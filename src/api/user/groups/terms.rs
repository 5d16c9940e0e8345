//! The terms of a group: what its members agreed to, so that it stays as it is. Who sends a whole group to
//! change its description sends them too, perhaps in another spelling.
//!
//! Knows the members of a group by their names; knows nothing of who may change it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::api::user::bounds::bound;
use crate::model::faults::Fault;
use crate::model::registry::Registry;
use crate::model::text::composed;
use crate::model::time::parse_instant;

/// What is wrong with the terms in `sent`, which must be those of `group`. Other members say nothing.
pub(super) fn changed_terms(registry: &Registry, group: &Value, sent: &Map<String, Value>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, sent) in sent {
        let Some(known) = group.get(name) else { continue };
        let is_same = match (name.as_str(), sent) {
            ("time_start" | "time_end", Value::String(text)) => {
                let Some(moment) = bound(&mut faults, name, text.clone()) else {
                    // The fault says why it is no bound.
                    continue;
                };
                known.as_str() == Some(moment.to_rfc3339().as_str())
            }
            _ => is_same(registry, name, known, sent),
        };
        if !is_same {
            let message = "members agreed to this; only description, images, view_description and \
                           invitations change";
            faults.push(Fault::new(["body", name.as_str()], "value_error", message));
        }
    }
    faults
}

/// Whether a member was sent with the value that the group has, however that is spelt.
fn is_same(registry: &Registry, name: &str, known: &Value, sent: &Value) -> bool {
    match (known, sent) {
        (Value::String(known), Value::String(sent)) => match name {
            "group_id" => Uuid::try_parse(sent).is_ok_and(|id| id.to_string() == *known),
            "created_at" => parse_instant(sent).is_ok_and(|moment| moment.to_rfc3339() == *known),
            _ => composed(known) == composed(sent),
        },
        (Value::Array(known), Value::Array(sent)) => {
            let sent = types(registry, sent);
            sent.is_some() && sent == types(registry, known)
        }
        // What a group has where nothing is sent.
        (Value::Array(known), Value::Null) => known.is_empty(),
        (Value::Bool(known), Value::Null) => !known,
        _ => known == sent,
    }
}

/// The listed types, each once; `None` where something else is among them.
fn types(registry: &Registry, listed: &[Value]) -> Option<BTreeSet<String>> {
    let mut types = listed.iter();
    types.try_fold(BTreeSet::new(), |mut types, listed| {
        types.insert(registry.get(listed.as_str()?)?.id.to_string());
        Some(types)
    })
}
