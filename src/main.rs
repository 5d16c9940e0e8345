//! The `almanac` program. Everything it can do is in the library; see `almanac help`.

use std::process::ExitCode;

/// Many short-lived buffers of many sizes are made and dropped on many threads; with the system's allocator
/// that takes a fifth more work, or far more memory stays in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::give_back_soon();
    almanac::cli::run(std::env::args_os())
}

/// The options of the allocator that we set. Its crate has no names for them.
#[expect(unsafe_code, reason = "the allocator takes its options through a C interface")]
mod allocator {
    use std::ffi::{c_int, c_long};

    /// An option, by its number in the allocator.
    struct Choice {
        option: c_int,
        value: c_long,
        /// The environment variable by which an operator can set it instead.
        variable: &'static str,
        /// The allocator's own default.
        #[cfg(test)]
        usual: c_long,
    }

    /// Thirty threads that take turns each hold on to what they last freed: by default the allocator kept
    /// three times the memory in use while records came in. Measured in docs/decisions/0058.
    const CHOICES: [Choice; 2] = [
        // Called `mi_option_purge_delay`: after this many milliseconds memory goes back to the system.
        Choice {
            option: 15,
            value: 10,
            variable: "MIMALLOC_PURGE_DELAY",
            #[cfg(test)]
            usual: 1_000,
        },
        // Called `mi_option_generic_collect`: each time that a thread has needed this many more pages, it
        // looks for those that others have emptied meanwhile.
        Choice {
            option: 34,
            value: 200,
            variable: "MIMALLOC_GENERIC_COLLECT",
            #[cfg(test)]
            usual: 10_000,
        },
    ];

    /// SQLite and zstd allocate from the C library, which by default makes eight arenas for each processor
    /// and keeps in each what was once needed. They allocate little, and seldom at the same time.
    #[cfg(target_env = "gnu")]
    const ARENAS: c_int = 2;
    /// What the C library calls `M_ARENA_MAX`.
    #[cfg(target_env = "gnu")]
    const ARENA_MAX: c_int = -8;

    unsafe extern "C" {
        #[cfg(target_env = "gnu")]
        fn mallopt(option: c_int, value: c_int) -> c_int;
        fn mi_option_set(option: c_int, value: c_long);
        #[cfg(test)]
        fn mi_option_get(option: c_int) -> c_long;
    }

    pub(crate) fn give_back_soon() {
        for choice in CHOICES {
            if std::env::var_os(choice.variable).is_none() {
                // SAFETY: stores a number in a table of the allocator, for an option that it has.
                unsafe { mi_option_set(choice.option, choice.value) };
            }
        }
        #[cfg(target_env = "gnu")]
        if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
            // SAFETY: stores a number, before there is a second thread.
            unsafe { mallopt(ARENA_MAX, ARENAS) };
        }
    }

    #[test]
    fn the_options_are_those_that_are_meant() {
        // SAFETY: reads numbers from the same table.
        let told = || CHOICES.map(|choice| unsafe { mi_option_get(choice.option) });
        assert_eq!(told(), CHOICES.map(|choice| choice.usual));
        give_back_soon();
        assert_eq!(told(), CHOICES.map(|choice| choice.value));
    }
}
