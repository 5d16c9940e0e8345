#!/bin/bash
# Holds the lock file against published advisories, and writes a bill of materials. Needs the network, so it
# is not part of tests/all.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The one that tests/all installs will do.
PATH="${CARGO_TARGET_DIR:-target}/test-tools/bin:$PATH"
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
cargo deny --workspace check advisories
out=${CARGO_TARGET_DIR:-target}/bom.json
mkdir -p "$(dirname "$out")"
platform=$(rustc -vV | sed -n 's/^host: //p')
cargo metadata --format-version 1 --locked --filter-platform "$platform" |
    python3 tests/support/bom.py Cargo.lock > "$out"
echo "bill of materials: $out"
