//! How the program is linked, decided where it is built.
//!
//! Knows nothing of the crate, which is built after it.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script by the environment what it builds for"
)]

use std::env;
use std::process::Command;

/// The first version of glibc that reads packed relocations.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    if built_for_this_machine() && glibc_here().is_some_and(|version| version >= READS_PACKED) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Another machine's glibc cannot be asked, so programs for others are linked as is usual.
fn built_for_this_machine() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    env::var("HOST").is_ok_and(|host| host == target) && target.ends_with("-linux-gnu")
}

fn glibc_here() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let mut numbers = told.trim().strip_prefix("glibc ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
