//! Where the program under test lies: the one that is named, or else that of these sources.
//!
//! Knows how Cargo lays out what it builds; knows nothing of what the program does.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The program, as `ALMANAC_TEST_PROGRAM` names it, or built in the profile of these tests. Cargo itself
/// builds a program for the tests of its own package only.
pub(super) fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> =
        LazyLock::new(|| env::var_os("ALMANAC_TEST_PROGRAM").map_or_else(build, PathBuf::from));
    &PROGRAM
}

fn build() -> PathBuf {
    // In `TARGET/PROFILE/deps`.
    let tests = env::current_exe().expect("where these tests lie");
    let built = tests.ancestors().nth(2).expect("the folder of the profile");
    let target = built.parent().expect("the folder of what is built");
    let profile = match built.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(named) => named,
        None => panic!("{} names no profile", built.display()),
    };
    let mut cargo = Command::new(env!("CARGO"));
    // What Cargo says of these tests' package is not how its own surroundings are, and build scripts of
    // libraries would run again, because it changed.
    for (name, _) in env::vars_os() {
        let own = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if own {
            cargo.env_remove(name);
        }
    }
    let output = cargo
        .args([
            "build",
            "--locked",
            "--package",
            "almanac",
            "--bins",
            "--profile",
            profile,
        ])
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "the program cannot be built: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    built.join("almanac")
}
