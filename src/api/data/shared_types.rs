//! Types in the catalogue that people made: a person's annotations, and of other people's types only those
//! that are shared with the reader.

use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::grants::{Denied, ReadableTypes, Refused};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::permit::Opening;
use crate::model::registry::TypeId;
use crate::people::annotations::AnnotationRow;
use crate::people::sharing::received::OpenedBySharer;

use super::listed_type::{Entry, ListedType};

/// The types that one person shares with the reader.
pub(super) struct SharedTypes {
    sharer: PersonId,
    opened: OpenedBySharer,
    types: Vec<ListedType>,
}

/// The types that others share with a person who lists their own types, by sharer; if any are named, only
/// those. Empty when another person's types are listed.
pub(super) async fn shared_with(
    app: &App,
    permit: &ReadableTypes,
    named: &[String],
) -> Result<Vec<SharedTypes>, ApiError> {
    if !permit.is_own() {
        return Ok(Vec::new());
    }
    let wanted: Vec<TypeId> = named.iter().map(|name| canonical(app, name)).collect();
    let mut shared = Vec::new();
    for (sharer, opened) in app.sharing.openings_for(permit.owner()).await? {
        let types = types_shown(app, sharer, &opened.openings, &wanted).await?;
        shared.push(SharedTypes {
            sharer,
            opened,
            types,
        });
    }
    Ok(shared)
}

/// Whether `shared` has the type called `name`.
pub(super) fn is_among(shared: &[SharedTypes], name: &str) -> bool {
    let has = |id: &TypeId| {
        let mut types = shared.iter().flat_map(|shared| &shared.types);
        types.any(|listed| listed.id() == id)
    };
    TypeId::parse(name).is_some_and(|id| has(&id))
}

/// Who shares with `reader` the type of that id, which a person made.
pub(super) async fn sharer_of(app: &App, reader: PersonId, name: &str) -> Result<Option<PersonId>, ApiError> {
    let Some(id) = TypeId::parse(name).filter(|id| id.definition().is_some()) else {
        return Ok(None);
    };
    for (sharer, opened) in app.sharing.openings_for(reader).await? {
        let wanted = std::slice::from_ref(&id);
        if !types_shown(app, sharer, &opened.openings, wanted)
            .await?
            .is_empty()
        {
            return Ok(Some(sharer));
        }
    }
    Ok(None)
}

/// Those shared types that are `asked` for. Their sharers are told that they were read.
pub(super) fn entries_read(
    reader: &Reader,
    shared: &[SharedTypes],
    asked: impl Fn(&ListedType) -> bool,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for SharedTypes {
        sharer,
        opened,
        types,
    } in shared
    {
        let before = entries.len();
        let found = types.iter().filter(|listed| asked(listed));
        entries.extend(found.map(|listed| Entry::shared(listed.clone(), *sharer)));
        if entries.len() > before {
            reader.disclosures().note_listed(*sharer, opened);
        }
    }
    entries
}

/// Refuses the name of a type that the permit does not show, whether or not such a type exists.
pub(super) fn refuse_hidden(app: &App, permit: &ReadableTypes, name: &str) -> Result<(), ApiError> {
    if permit.windows_of(&canonical(app, name)).is_some() {
        Ok(())
    } else {
        Err(Denied::from(Refused).into())
    }
}

/// The types of `sharer` that some of `openings` show; if any are `wanted`, only those.
pub(super) async fn types_shown(
    app: &App,
    sharer: PersonId,
    openings: &[Opening],
    wanted: &[TypeId],
) -> Result<Vec<ListedType>, ApiError> {
    let is_wanted = |id: &TypeId| wanted.is_empty() || wanted.contains(id);
    let shown = |id: &TypeId| is_wanted(id) && openings.iter().any(|opening| opening.shows(id));
    let built_in = app.types.registry().types().iter();
    let built_in = built_in.filter(|data_type| shown(&data_type.id));
    let mut types: Vec<ListedType> = built_in.cloned().map(ListedType::Made).collect();
    if !wanted.is_empty() && wanted.iter().all(|id| id.definition().is_none()) {
        // Nothing that the sharer made is called by any of the names.
        return Ok(types);
    }
    let own = app.types.all_own(sharer).await?;
    let live = own.live().filter(|own| shown(&own.data_type.id));
    types.extend(live.map(|own| ListedType::Made(Arc::clone(&own.data_type))));
    let is_shown = |annotation: &AnnotationRow| annotation.is_live() && shown(&annotation.type_id());
    let annotations = app.annotations.all(sharer).await?;
    types.extend(ListedType::annotations(
        &annotations,
        app.types.registry(),
        is_shown,
    ));
    Ok(types)
}

/// A person's annotations, oldest first, without deleted ones.
pub(super) async fn live_annotations(app: &App, owner: PersonId) -> Result<Vec<ListedType>, ApiError> {
    let all = app.annotations.all(owner).await?;
    Ok(ListedType::annotations(&all, app.types.registry(), AnnotationRow::is_live).collect())
}

fn canonical(app: &App, name: &str) -> TypeId {
    if let Some(known) = app.types.registry().get(name) {
        return known.id.clone();
    }
    TypeId::parse(name).unwrap_or_else(|| TypeId::new(name))
}
