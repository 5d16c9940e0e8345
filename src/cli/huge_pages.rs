//! Huge pages, which this process does without.
//!
//! The allocator keeps many arenas that are hardly filled, each for one size on one thread. Where the system
//! backs them by pages of two megabytes, every first touch takes all of that, and the process several times
//! what it holds. Measured in docs/decisions/0058.

/// Asks the system for ordinary pages from now on, if it knows of others. To be called before there are
/// threads.
pub(super) fn decline() {
    // Where the system cannot be asked it takes more memory, and all else is the same.
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
