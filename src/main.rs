//! The `almanac` program. Everything it can do is in the library; see `almanac help`.

mod allocator;

use std::process::ExitCode;

/// Many short-lived buffers of many sizes are made and dropped on many threads; with the system's allocator
/// that takes a fifth more work, or far more memory stays in use.
#[global_allocator]
static ALLOCATOR: allocator::InPowers = allocator::InPowers(mimalloc::MiMalloc);

fn main() -> ExitCode {
    allocator::give_back_soon();
    almanac::cli::run(std::env::args_os())
}
