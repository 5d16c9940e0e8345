//! Makes stored media types and file names safe for the headers of a download, whatever somebody once sent.

use std::fmt::Write as _;

/// For bytes whose media type is unknown.
const UNKNOWN: &str = "application/octet-stream";

/// `stored`, if it is a media type.
#[must_use]
pub fn media_type(stored: &str) -> &str {
    let mut parts = stored.split(';');
    let essence = parts.next().unwrap_or_default().trim();
    let is_type = essence
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    let is_parameter = |part: &str| {
        part.trim()
            .split_once('=')
            .is_some_and(|(name, value)| is_token(name) && (is_token(value) || is_quoted(value)))
    };
    if is_type && parts.all(is_parameter) {
        stored.trim()
    } else {
        UNKNOWN
    }
}

/// Tells a browser to save a file called `name` instead of displaying it. Programs that do not understand the
/// encoded name get one without what may not stand there.
#[must_use]
pub fn attachment(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    let mut header = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            header.push(char::from(byte));
        } else {
            let _ = write!(header, "%{byte:02X}");
        }
    }
    header
}

/// Whether a character means only itself in a quoted name: some programs decode what follows `%` there.
fn is_plain(letter: char) -> bool {
    (letter == ' ' || letter.is_ascii_graphic()) && !['"', '\\', '/', '%'].contains(&letter)
}

fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

fn is_quoted(text: &str) -> bool {
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .is_some_and(|inside| {
            let plain = |byte: u8| (byte == b' ' || byte.is_ascii_graphic()) && byte != b'"' && byte != b'\\';
            inside.bytes().all(plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_media_type_is_handed_out_as_bytes() {
        for good in [
            "text/plain",
            "text/plain; charset=utf-8",
            "image/svg+xml",
            "a/b;c=\"d e\"",
        ] {
            assert_eq!(media_type(good), good);
        }
        for bad in [
            "",
            "text",
            "text/",
            "/plain",
            "text/plain; charset",
            "text/ht ml",
            "täxt/plain",
            "a/b;c=\"d",
            "a/b/c",
        ] {
            assert_eq!(media_type(bad), UNKNOWN, "{bad}");
        }
    }

    #[test]
    fn any_name_can_stand_in_a_header() {
        assert_eq!(
            attachment("a b.txt"),
            "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"
        );
        assert_eq!(
            attachment("é\"'\\%41.txt"),
            "attachment; filename=\"__'__41.txt\"; filename*=UTF-8''%C3%A9%22%27%5C%2541.txt"
        );
    }
}
