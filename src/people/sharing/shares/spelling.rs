//! How a share names types and files: in the registry's spelling and the form in which files are stored, so
//! that what is shared is compared with texts alone. Refuses types that the owner does not have.

use crate::catalog::CatalogError;
use crate::catalog::documents::DocumentKind;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart, MOST_FAULTS};
use crate::model::ids::PersonId;
use crate::model::stored_json;
use crate::model::text::composed;
use crate::people::annotations::AnnotationRoot;
use crate::people::file_names::place;
use crate::people::sharing::errors::SharingError;
use crate::people::sharing::handle::Sharing;
use crate::people::sharing::terms::{EVERY_VERSION, LIVE_FILES};
use crate::people::sharing::text::{LONGEST_LINE, each_once_in_order, fault_of};
use crate::people::types::{ResolvedType, Types, TypesError};

/// The most types and files that one share may name.
const MOST_NAMED: usize = 1_000;

/// The types and files that a share names, in the registry's spelling.
pub(super) async fn spelt(
    sharing: &Sharing,
    types: &Types,
    owner: PersonId,
    listed: &[String],
    faults: &mut Vec<Fault>,
) -> Result<Vec<String>, SharingError> {
    if listed.len() > MOST_NAMED {
        let message = format!("a share names {MOST_NAMED} types and files at most");
        faults.push(Fault::new(["body", "svc_data_types"], "too_long", message));
        return Ok(Vec::new());
    }
    let mut spelt = Vec::with_capacity(listed.len());
    for (index, text) in listed.iter().enumerate() {
        if faults.len() >= MOST_FAULTS {
            break;
        }
        let loc: [LocPart; 3] = ["body".into(), "svc_data_types".into(), index.into()];
        let path = text
            .strip_prefix(LIVE_FILES)
            .or_else(|| text.strip_prefix(EVERY_VERSION));
        if let Some(path) = path {
            match place(path) {
                Ok(_) => faults.extend(fault_of(&loc, path, LONGEST_LINE)),
                Err(reason) => {
                    faults.push(Fault::new(loc, "value_error", reason).with_value(text.as_str()));
                }
            }
            // Names of files are stored in this form.
            spelt.push(composed(text).into_owned());
            continue;
        }
        match types.look_up(owner, text).await {
            Ok(Some(resolved)) if sharing.names_what_is_there(owner, &resolved).await? => {
                spelt.push(resolved.id().to_string());
            }
            Ok(_) => faults.push(unknown_type(loc, text)),
            Err(TypesError::Catalog(error)) => return Err(error.into()),
            Err(error) => {
                return Err(CatalogError::Corrupt {
                    what: error.to_string(),
                }
                .into());
            }
        }
    }
    Ok(each_once_in_order(spelt))
}

fn unknown_type(loc: [LocPart; 3], text: &str) -> Fault {
    Fault::new(
        loc,
        "value_error",
        format!("{:?} is not a data type", beginning(text)),
    )
    .with_value(text)
}

impl Sharing {
    /// Whether the annotation that a type names, if any, is one of the owner's whose records have that type.
    async fn names_what_is_there(
        &self,
        owner: PersonId,
        resolved: &ResolvedType,
    ) -> Result<bool, CatalogError> {
        let Some(id) = resolved.annotation else {
            return Ok(true);
        };
        let found = self.catalog.document(DocumentKind::Annotation, id).await?;
        let Some(annotation) = found.filter(|annotation| annotation.person == owner) else {
            return Ok(false);
        };
        let root: AnnotationRoot =
            stored_json::read(&annotation.body).map_err(|error| CatalogError::Corrupt {
                what: format!("annotation {id} cannot be read: {error}"),
            })?;
        Ok(root.annotation_type().base() == resolved.data_type.id.as_str())
    }
}
