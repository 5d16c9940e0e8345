//! The `almanac` program. Everything it can do is in the library; see `almanac help`.

use std::process::ExitCode;

/// Many short-lived buffers of many sizes are made and dropped on many threads; the system's allocator holds
/// on to far more memory for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::give_back_soon();
    almanac::cli::run(std::env::args_os())
}

/// The one option of the allocator that is ours to choose. Its crate has no words for it.
#[expect(unsafe_code, reason = "the allocator takes its options through a C interface")]
mod allocator {
    use std::ffi::{c_int, c_long};

    /// What the allocator calls `mi_option_purge_delay`.
    const PURGE_DELAY: c_int = 15;
    /// Milliseconds after which freed memory goes back to the system: by itself the allocator waits for a
    /// second, and holds on to half as much again as is in use. Much shorter, and long answers take more
    /// time. Measured in docs/decisions/0058.
    const SOON: c_long = 50;
    /// With which an operator may say otherwise.
    const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
        #[cfg(test)]
        fn mi_option_get(option: c_int) -> c_long;
    }

    pub(crate) fn give_back_soon() {
        if std::env::var_os(VARIABLE).is_none() {
            // SAFETY: stores a number in a table of the allocator, for an option that it has.
            unsafe { mi_option_set(PURGE_DELAY, SOON) };
        }
    }

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads a number from the same table.
        let told = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(told(), 1000, "what the allocator does by itself");
        give_back_soon();
        assert_eq!(told(), SOON);
    }
}
