//! Says on standard error what is no result of a command: standard output is for results that others read.

use std::io::Write as _;

pub(super) fn tell(what: &str) {
    // If standard error is closed, nobody can be told.
    let _written = writeln!(std::io::stderr().lock(), "almanac: {what}");
}
