//! Types in the catalogue that people made: a person's annotations, and of other people's types only those
//! that are shared with the reader.

use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::grants::{Denied, ReadableTypes, Refused};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::permit::Opening;
use crate::model::registry::{DataType, ListedType, TypeId};
use crate::people::annotations::AnnotationRow;
use crate::people::sharing::received::OpenedBySharer;

/// The types that one person shares with the reader.
pub(super) struct SharedTypes {
    sharer: PersonId,
    opened: OpenedBySharer,
    types: Vec<Arc<DataType>>,
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
        types.any(|data_type| data_type.id == *id)
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
    asked: impl Fn(&DataType) -> bool,
) -> Vec<ListedType> {
    let mut entries = Vec::new();
    for SharedTypes {
        sharer,
        opened,
        types,
    } in shared
    {
        let before = entries.len();
        let found = types.iter().filter(|data_type| asked(data_type));
        entries.extend(found.map(|data_type| ListedType::shared(Arc::clone(data_type), *sharer)));
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
) -> Result<Vec<Arc<DataType>>, ApiError> {
    let is_wanted = |id: &TypeId| wanted.is_empty() || wanted.contains(id);
    let shown = |id: &TypeId| is_wanted(id) && openings.iter().any(|opening| opening.shows(id));
    let built_in = app.types.registry().types().iter();
    let built_in = built_in.filter(|data_type| shown(&data_type.id));
    let mut types: Vec<Arc<DataType>> = built_in.cloned().collect();
    if !wanted.is_empty() && wanted.iter().all(|id| id.definition().is_none()) {
        // Nothing that the sharer made is called by any of the names.
        return Ok(types);
    }
    let own = app.types.all_own(sharer).await?;
    let live = own.live().filter(|own| shown(&own.data_type.id));
    types.extend(live.map(|own| Arc::clone(&own.data_type)));
    let is_shown = |annotation: &AnnotationRow| annotation.is_live() && shown(&annotation.type_id());
    types.extend(annotations(app, sharer, is_shown).await?);
    Ok(types)
}

/// A person's annotations as data types, oldest first, without deleted ones.
pub(super) async fn live_annotations(app: &App, owner: PersonId) -> Result<Vec<Arc<DataType>>, ApiError> {
    annotations(app, owner, AnnotationRow::is_live).await
}

async fn annotations(
    app: &App,
    owner: PersonId,
    is_wanted: impl Fn(&AnnotationRow) -> bool,
) -> Result<Vec<Arc<DataType>>, ApiError> {
    let annotations = app.annotations.all(owner).await?;
    Ok(annotations
        .iter()
        .filter(|annotation| is_wanted(annotation))
        .filter_map(|annotation| annotation.data_type(app.types.registry()).map(Arc::new))
        .collect())
}

fn canonical(app: &App, name: &str) -> TypeId {
    if let Some(known) = app.types.registry().get(name) {
        return known.id.clone();
    }
    TypeId::parse(name).unwrap_or_else(|| TypeId::new(name))
}
