//! The `almanac` program. Everything it can do is in the library; see `almanac help`.

use std::process::ExitCode;

/// Many short-lived buffers of many sizes are made and dropped on many threads; the system's allocator holds
/// on to far more memory for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    almanac::cli::run(std::env::args_os())
}
