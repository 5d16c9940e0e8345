//! Writes to standard output. Nothing else does.

use std::io::Write as _;

use super::failed::Failed;

pub(super) fn print(text: &str) -> Result<(), Failed> {
    print_bytes(text.as_bytes())
}

pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), Failed> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    written.map_err(|error| Failed::because(format!("the output could not be written: {error}")))
}
