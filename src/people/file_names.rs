//! Checks the names of files and folders.
//!
//! Names are in Unicode's composed form, so that a name is the same whichever machine it comes from, and
//! contain nothing that is special to a file system.

use unicode_normalization::UnicodeNormalization as _;

/// The most bytes of the name of a file or folder.
const LONGEST_NAME: usize = 255;
/// The most bytes of a path, from its first slash.
const LONGEST_PATH: usize = 1024;
/// The most bytes of a media type.
const LONGEST_TYPE: usize = 255;

/// The folder `text` as it is stored, `/` or `/one/two`: a trailing slash is dropped. The error says why it
/// is no path.
pub fn folder(text: &str) -> Result<String, String> {
    path(text, LONGEST_PATH)
}

/// The folder `text` as it is stored, or a file's path and name joined, which may be longer. The error says
/// why it is no path.
pub fn place(text: &str) -> Result<String, String> {
    path(text, LONGEST_PATH + 1 + LONGEST_NAME)
}

fn path(text: &str, longest: usize) -> Result<String, String> {
    let path: String = text.nfc().collect();
    let Some(inside) = path.strip_prefix('/') else {
        return Err("path must start with a slash".to_owned());
    };
    if path.len() > longest {
        return Err(format!("a path may be at most {longest} bytes long"));
    }
    if inside.is_empty() {
        return Ok(path);
    }
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    for name in inside.split('/') {
        segment(name).map_err(|what| format!("a folder in the path {what}"))?;
    }
    Ok(format!("/{inside}"))
}

/// The file name `text` as it is stored. The error says why it is none.
pub fn name(text: &str) -> Result<String, String> {
    let name: String = text.nfc().collect();
    if name.contains('/') {
        return Err("the name has a slash in it; folders belong to the path".to_owned());
    }
    segment(&name).map_err(|what| format!("the name {what}"))?;
    Ok(name)
}

/// A media type or other short text as sent. The error says why it cannot be stored.
pub fn label(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_TYPE {
        return Err(format!("expected at most {LONGEST_TYPE} bytes"));
    }
    if text.contains(char::is_control) {
        return Err("control characters cannot be kept".to_owned());
    }
    Ok(text.nfc().collect())
}

/// Path and name joined.
#[must_use]
pub fn full_name(path: &str, name: &str) -> String {
    if path == "/" {
        format!("/{name}")
    } else {
        format!("{path}/{name}")
    }
}

fn segment(name: &str) -> Result<(), String> {
    if name.is_empty() {
        Err("is empty".to_owned())
    } else if matches!(name, "." | "..") {
        Err(format!("is {name:?}, which means something else"))
    } else if name.len() > LONGEST_NAME {
        Err(format!("is longer than {LONGEST_NAME} bytes"))
    } else if name.contains(char::is_control) {
        Err("has control characters in it".to_owned())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_starts_with_a_slash_and_may_end_with_one() {
        assert_eq!(folder("/").unwrap(), "/");
        assert_eq!(folder("/a/b").unwrap(), "/a/b");
        assert_eq!(folder("/a/b/").unwrap(), "/a/b");
        assert_eq!(folder("a").unwrap_err(), "path must start with a slash");
        assert_eq!(folder("").unwrap_err(), "path must start with a slash");
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for path in [
            "//",
            "/a//b",
            "/a//",
            "/..",
            "/a/../b",
            "/./a",
            "/a\0b",
            "/a\u{7}",
            "/a\u{85}b",
        ] {
            folder(path).expect_err(path);
        }
        for text in ["", ".", "..", "a/b", "/", "a\0", "a\nb"] {
            name(text).expect_err(text);
        }
        folder(&format!("/{}", "x".repeat(256))).unwrap_err();
        folder(&"/x".repeat(513)).unwrap_err();
        folder(&format!("/{}", "x".repeat(255))).unwrap();
        folder(&"/x".repeat(512)).unwrap();
        name(&"é".repeat(128)).unwrap_err();
        name(&"é".repeat(127)).unwrap();
    }

    #[test]
    fn a_file_in_the_deepest_folder_has_a_place() {
        let (path, longest) = ("/x".repeat(512), "x".repeat(255));
        let whole = full_name(&folder(&path).unwrap(), &name(&longest).unwrap());
        assert_eq!(place(&whole).unwrap(), whole);
        let reason = place(&"/x".repeat(641)).unwrap_err();
        assert_eq!(reason, "a path may be at most 1280 bytes long");
        place("/a/../b").unwrap_err();
    }

    #[test]
    fn any_other_unicode_is_kept_in_its_composed_form() {
        assert_eq!(name("Cafe\u{301} \u{1f980}.txt").unwrap(), "Café \u{1f980}.txt");
        assert_eq!(folder("/Zu\u{308}rich").unwrap(), "/Zürich");
        assert_eq!(name("...").unwrap(), "...");
    }
}
