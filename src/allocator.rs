//! How the allocator is asked, and the options of it that we set. Its crate has no names for them.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe, and this one takes its options through C"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};

use libmimalloc_sys::mi_malloc;
use mimalloc::MiMalloc;

/// The allocator, asked for powers of two where alignment matters.
///
/// Arrow wants each buffer at a multiple of 128 bytes. The allocator's blocks of 2^n bytes lie at
/// multiples of 2^n; for any other size it takes a block that is larger by the alignment, each time by
/// the long way, and frees it by a longer one. A record becomes many buffers of 64 bytes. Measured in
/// docs/decisions/0126.
pub(crate) struct InPowers(pub(crate) MiMalloc);

/// Blocks of up to this many bytes are aligned by nature.
const ALIGNED_BY_NATURE: usize = 4 << 10;
/// Every block of at least so many bytes is aligned to this.
const ALIGNED_ALWAYS: usize = 16;
/// Every block is aligned to this, however small.
const WORD: usize = 8;

/// The size to ask for: the next power of two, if that takes no more than the allocator would add.
const fn rounded(size: usize, align: usize) -> usize {
    if align <= ALIGNED_ALWAYS || size > ALIGNED_BY_NATURE || align > ALIGNED_BY_NATURE {
        return size;
    }
    let least = if size < align { align } else { size };
    let power = least.next_power_of_two();
    if power < size + align { power } else { size }
}

fn rounded_layout(layout: Layout) -> Layout {
    let size = rounded(layout.size(), layout.align());
    Layout::from_size_align(size, layout.align()).unwrap_or(layout)
}

/// Whether every block of that size is aligned well enough, so that the allocator need not be told.
const fn is_aligned_anyway(layout: Layout) -> bool {
    layout.align() <= WORD || (layout.align() <= ALIGNED_ALWAYS && layout.size() >= ALIGNED_ALWAYS)
}

// SAFETY: every call is passed on to an allocator, for the same pointers and alignments, and for sizes
// that are at least those that were asked for. It does not use sizes to free.
unsafe impl GlobalAlloc for InPowers {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_aligned_anyway(layout) {
            // SAFETY: any size may be asked for. Told of an alignment, it goes a longer way.
            return unsafe { mi_malloc(layout.size()) }.cast();
        }
        // SAFETY: the caller's promises hold for the larger size too.
        unsafe { self.0.alloc(rounded_layout(layout)) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(rounded_layout(layout)) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller has the pointer from this allocator.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller has the pointer from this allocator, and the new size is no smaller.
        unsafe { self.0.realloc(pointer, layout, rounded(new_size, layout.align())) }
    }
}

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

#[expect(
    clippy::disallowed_methods,
    reason = "these variables are the allocators' own, which read them too"
)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_only_where_that_takes_no_more() {
        for (size, align, asked) in [
            (64, 128, 128),
            (1, 128, 128),
            (128, 128, 128),
            (192, 128, 256),
            (320, 128, 320),
            (448, 128, 512),
            (4_000, 128, 4_096),
            (4_097, 128, 4_097),
            (24, 8, 24),
            (100, 16, 100),
            (64, 8_192, 64),
        ] {
            assert_eq!(rounded(size, align), asked, "{size} at {align}");
        }
    }

    #[test]
    fn memory_is_aligned_as_large_as_asked_and_keeps_its_bytes_when_it_grows() {
        let allocator = InPowers(MiMalloc);
        for align in [1, 8, 16, 64, 128, 4_096] {
            for size in [1, 63, 64, 65, 127, 192, 320, 1_000, 4_096, 10_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let grown = Layout::from_size_align(size * 3, align).unwrap();
                // SAFETY: within the sizes that were asked for, and freed once.
                unsafe {
                    let zeroed = allocator.alloc_zeroed(layout);
                    assert_eq!(zeroed.addr() % align, 0);
                    assert!((0..size).all(|at| *zeroed.add(at) == 0), "{size} at {align}");
                    zeroed.write_bytes(7, size);
                    let more = allocator.realloc(zeroed, layout, size * 3);
                    assert_eq!(more.addr() % align, 0);
                    assert!((0..size).all(|at| *more.add(at) == 7), "{size} at {align}");
                    more.write_bytes(9, size * 3);
                    allocator.dealloc(more, grown);
                }
            }
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
