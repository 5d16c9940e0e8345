//! Turns off huge pages for this process.
//!
//! The allocator keeps many sparsely filled arenas, each for one size on one thread. If the system backs them
//! by pages of two megabytes, every first touch takes a whole page, and the process several times the memory
//! that it uses. Measured in docs/decisions/0058.

/// Asks the system for ordinary pages from now on, if it has others. Must be called before there are threads.
pub(super) fn decline() {
    // If the system refuses, the process takes more memory; nothing else changes.
    #[cfg(target_os = "linux")]
    let _declined = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_system_gives_this_process_ordinary_pages() {
        super::decline();
        assert_eq!(rustix::thread::transparent_huge_pages_are_disabled(), Ok(true));
    }
}
