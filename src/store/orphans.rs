//! Finds objects that nothing names, and takes back the objects of a write that was refused.

use std::collections::{BTreeMap, HashSet};

use super::errors::StoreError;
use super::objects::ObjectStorage;
use super::piece::ObjectName;
use crate::catalog::records::{NewPiece, NewPlace};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::{PersonId, PieceId};
use crate::model::registry::TypeId;

/// The `paths` that no piece points to. Paths that cannot be checked, because the catalogue is damaged there,
/// count as pointed to, and so do those that are not objects of pieces.
pub async fn orphaned_pieces(catalog: &Catalog, paths: &[String]) -> Result<Vec<String>, StoreError> {
    let mut by_partition: BTreeMap<(PersonId, TypeId), Vec<(PieceId, &String)>> = BTreeMap::new();
    for path in paths {
        if let Some(name) = ObjectName::parse(path) {
            by_partition
                .entry((name.person, name.data_type))
                .or_default()
                .push((name.piece, path));
        }
    }
    let mut orphaned = Vec::new();
    for ((person, data_type), objects) in by_partition {
        let pieces = match catalog.pieces_of(person, &data_type).await {
            Err(CatalogError::Corrupt { .. }) => continue,
            pieces => pieces?,
        };
        let live: HashSet<PieceId> = pieces.iter().map(|piece| piece.id).collect();
        let gone = objects.into_iter().filter(|(piece, _)| !live.contains(piece));
        orphaned.extend(gone.map(|(_, path)| path.clone()));
    }
    orphaned.sort_unstable();
    Ok(orphaned)
}

/// Deletes the objects of pieces whose commit was refused or failed. They are condemned first, so this is
/// also right when the outcome of the commit is unknown: if it happened they stay, and if it is still to come
/// it is refused.
pub async fn delete_uncommitted(
    catalog: &Catalog,
    objects: &ObjectStorage,
    pieces: &[NewPiece],
) -> Result<(), StoreError> {
    let paths: Vec<String> = pieces
        .iter()
        .filter_map(|piece| match &piece.place {
            NewPlace::Object { path, .. } => Some(path.clone()),
            NewPlace::Tail { .. } => None,
        })
        .collect();
    if paths.is_empty() {
        return Ok(());
    }
    catalog.condemn(&paths).await?;
    let orphaned = orphaned_pieces(catalog, &paths).await?;
    for path in &orphaned {
        objects.delete(path).await?;
    }
    let gone: HashSet<&String> = orphaned.iter().collect();
    let named: Vec<String> = paths
        .iter()
        .filter(|path| !gone.contains(path))
        .cloned()
        .collect();
    catalog.unmark_orphans(&named).await?;
    catalog.note_removed(&orphaned).await?;
    Ok(())
}
