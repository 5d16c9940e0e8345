//! Checks whether a person's documents could have come through the interface: documents are listed together,
//! so one malformed body would make all the others unreadable.
//!
//! Knows documents and what each kind accepts; knows nothing of what is here already.

use serde_json::Value;

use crate::catalog::documents::{Document, DocumentKind};
use crate::model::faults::{Fault, LocPart};
use crate::model::nul::path_to_nul;
use crate::model::time::Instant;
use crate::people::annotations::AnnotationRoot;
use crate::people::file_names;
use crate::people::files::File;
use crate::people::reflections::ReflectionContent;
use crate::people::text::Name;

/// The highest version accepted; each change adds one, so there must be room for more. Layouts of types count
/// theirs in 32 bits.
const MOST_VERSIONS: i64 = 1 << 31;

/// Refuses a version that nothing has, or after which there could be no other.
pub(super) fn judge_version(version: i64) -> Result<(), String> {
    if (1..=MOST_VERSIONS).contains(&version) {
        Ok(())
    } else {
        Err(format!("there is no version {version}"))
    }
}

/// Refuses a document that could not have come through the interface.
pub(super) fn judge(document: &Document) -> Result<(), String> {
    judge_version(document.version)?;
    let body: Value = serde_json::from_str(&document.body).map_err(|error| format!("its body: {error}"))?;
    if path_to_nul(&document.body, &body).is_some() {
        return Err("U+0000 cannot be stored".to_owned());
    }
    match document.kind {
        DocumentKind::Annotation => {
            is_nameless(document)?;
            AnnotationRoot::read(&body).map(drop).map_err(first_fault_text)
        }
        DocumentKind::Reflection => {
            is_nameless(document)?;
            ReflectionContent::judge(&document.body, &body).map_err(first_fault_text)
        }
        DocumentKind::Tag => tag(document, &body),
        DocumentKind::File => file(document),
        _ => Ok(()),
    }
}

/// The first fault with its place.
pub(super) fn first_fault_text(faults: Vec<Fault>) -> String {
    let Some(fault) = faults.into_iter().next() else {
        return "it has another form".to_owned();
    };
    let way: Vec<String> = fault
        .loc
        .into_iter()
        .map(|part| match part {
            LocPart::Name(name) => name,
            LocPart::Index(index) => index.to_string(),
        })
        .collect();
    format!("{}: {}", way.join("."), fault.message)
}

/// These kinds have their names in their bodies; an outer name would take a place that nothing gives back.
fn is_nameless(document: &Document) -> Result<(), String> {
    match document.name {
        None => Ok(()),
        Some(_) => Err("it has a name outside of its body".to_owned()),
    }
}

fn tag(document: &Document, body: &Value) -> Result<(), String> {
    let name = document.name.as_deref().ok_or("it has no name")?;
    let kept = Name::try_from(name.to_owned()).map_err(|error| format!("its name: {error}"))?;
    if kept.as_str() != name {
        return Err("its name is not in Unicode's composed form".to_owned());
    }
    if body.as_object().is_none_or(|members| !members.is_empty()) {
        return Err("a tag has a name and nothing else".to_owned());
    }
    Ok(())
}

fn file(document: &Document) -> Result<(), String> {
    let file = File::of(document).map_err(|error| error.to_string())?;
    let path = file_names::folder(&file.path).map_err(|what| format!("body.path: {what}"))?;
    let name = file_names::name(&file.name).map_err(|what| format!("body.name: {what}"))?;
    if path != file.path || name != file.name {
        return Err("its path and name are not as they are stored".to_owned());
    }
    if file.content_type.contains(char::is_control) {
        return Err("body.content_type: control characters cannot be kept".to_owned());
    }
    let moments = [file.uploaded_at, file.archived_at, file.last_scanned];
    if moments
        .into_iter()
        .flatten()
        .any(|moment| !(Instant::MIN..=Instant::MAX).contains(&moment))
    {
        return Err("one of its moments lies outside the years 1 to 9999".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::model::ids::PersonId;

    fn document(kind: DocumentKind, name: Option<&str>, body: &Value) -> Document {
        let now = Instant::from_micros(1_700_000_000_000_000);
        Document {
            kind,
            id: Uuid::from_u128(1),
            person: PersonId(Uuid::from_u128(2)),
            name: name.map(str::to_owned),
            body: body.to_string(),
            version: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    #[track_caller]
    fn refused(document: &Document, expected: &str) {
        let reason = judge(document).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }

    #[test]
    fn annotations_have_the_form_that_the_interface_takes() {
        let sound =
            json!({"annotation_type": "moment", "name": "Tea", "description": "", "tags": [], "spec": null});
        let of = |name, body: &Value| document(DocumentKind::Annotation, name, body);
        assert_eq!(judge(&of(None, &sound)), Ok(()));
        refused(&of(Some("Tea"), &sound), "a name outside of its body");
        let mut nameless = sound.clone();
        nameless["name"] = json!("");
        refused(&of(None, &nameless), "body.name: ");
        let mut unknown = sound;
        unknown["annotation_type"] = json!("mood");
        refused(&of(None, &unknown), "body.annotation_type: ");
        for body in [json!([]), json!({}), json!(null)] {
            assert!(judge(&of(None, &body)).is_err(), "{body}");
        }
    }

    #[test]
    fn reflections_have_the_form_that_the_interface_takes() {
        let sound = json!({"name": "Evening", "schedule": {"cron": "0 20 * * *", "start_at": null,
            "end_at": null, "paused": false, "time_zone": "Europe/Berlin"}});
        let of = |body: &Value| document(DocumentKind::Reflection, None, body);
        assert_eq!(judge(&of(&sound)), Ok(()));
        let mut never = sound.clone();
        never["schedule"]["cron"] = json!("0 0 30 2 *");
        refused(&of(&never), "body.schedule");
        let mut long = sound;
        long["annotations"] = json!(vec!["x".repeat(200); 1000]);
        refused(&of(&long), "bytes of JSON long");
        assert!(judge(&of(&json!({}))).is_err());
    }

    #[test]
    fn a_tag_is_a_name_and_nothing_else() {
        let of = |name, body: &Value| document(DocumentKind::Tag, name, body);
        assert_eq!(judge(&of(Some("calm"), &json!({}))), Ok(()));
        refused(&of(None, &json!({})), "no name");
        refused(&of(Some(" calm"), &json!({})), "its name: ");
        refused(&of(Some("e\u{301}"), &json!({})), "composed form");
        refused(&of(Some("calm"), &json!({"colour": "red"})), "nothing else");
        refused(&of(Some("calm"), &json!([])), "nothing else");
        let mut endless = of(Some("calm"), &json!({}));
        endless.version = i64::MAX;
        refused(&endless, "no version");
    }

    #[test]
    fn files_have_names_and_moments_that_can_be_told() {
        let sound = json!({"path": "/notes", "name": "a.txt", "content_type": "text/plain", "size": 1,
            "state": "uploaded", "scan_state": "clean", "uploaded_at": 0, "archived_at": null,
            "last_scanned": null, "restored_from": null, "source_id": null, "source_name": null,
            "content": Uuid::from_u128(3), "sha256": "00"});
        let of = |body: &Value| document(DocumentKind::File, Some("/notes/a.txt"), body);
        assert_eq!(judge(&of(&sound)), Ok(()));
        for (member, value, expected) in [
            ("path", json!("notes"), "body.path: "),
            ("path", json!("/notes/../x"), "body.path: "),
            ("path", json!("/notes/"), "as they are stored"),
            ("name", json!("a/b"), "body.name: "),
            ("content_type", json!("text/plain\r\nX: y"), "body.content_type: "),
            ("uploaded_at", json!(i64::MAX), "years 1 to 9999"),
            ("name", json!("a\0"), "U+0000"),
        ] {
            let mut body = sound.clone();
            body[member] = value;
            refused(&of(&body), expected);
        }
    }

    #[test]
    fn after_every_version_there_is_room_for_others() {
        for version in [1, MOST_VERSIONS] {
            assert_eq!(judge_version(version), Ok(()));
        }
        for version in [i64::MIN, -1, 0, MOST_VERSIONS + 1, i64::from(u32::MAX), i64::MAX] {
            assert_eq!(
                judge_version(version),
                Err(format!("there is no version {version}"))
            );
        }
    }
}
