# A PostgreSQL and an S3 server for the tests, on free loopback ports, in directories of their own. Sourced by
# tests/all.

postgres_directory=
s3_process=

# As many free ports as asked for, each with a free one 10,000 above it (where one of the servers puts a
# second listener).
free_ports() {
    python3 - "$1" <<'PYTHON'
import random, socket, sys

def free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

ports = []
for port in random.sample(range(20000, 32000), 4000):
    if free(port) and free(port + 10000):
        ports.append(str(port))
        if len(ports) == int(sys.argv[1]):
            break
print(*ports)
PYTHON
}

# PostgreSQL refuses root, so there it runs as the user that its package made.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups \
            env HOME="$postgres_directory" LC_ALL=C.UTF-8 "$@"
    else
        env LC_ALL=C.UTF-8 "$@"
    fi
}

# A throw-away cluster in $1. Unsynced: nothing here kills this server, and the tests' own promises are about
# Almanac.
start_postgres() {
    local directory=$1 programs port
    programs=$(postgres_programs)
    port=$(free_ports 1)
    mkdir -p "$directory"
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$directory"; fi
    postgres_directory=$directory
    (
        cd "$directory"
        as_postgres "$programs/initdb" -D "$directory/data" -A trust -U postgres --no-sync \
            -E UTF8 --locale=C.UTF-8 >/dev/null
        options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$directory"
        options+=" -c max_connections=400 -c shared_buffers=32MB"
        options+=" -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
        as_postgres "$programs/pg_ctl" -D "$directory/data" -w -s -l "$directory/log" start -o "$options"
    )
    export ALMANAC_TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
    echo "PostgreSQL at $ALMANAC_TEST_POSTGRES_URL"
}

# A SeaweedFS in $1, from the virtual environment $2, with one bucket; every test takes a prefix of its own in
# it.
start_s3() {
    local directory=$1 tools=$2 ports deadline
    mkdir -p "$directory"
    read -r -a ports <<<"$(free_ports 5)"
    export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
    export AWS_ENDPOINT_URL="http://127.0.0.1:${ports[0]}"
    "$tools/bin/weed" mini -dir="$directory" -ip=127.0.0.1 -ip.bind=127.0.0.1 -bucket=almanac \
        -master.telemetry=false -admin.ui=false -webdav=false -volume.max=100 \
        -s3.port.iceberg=0 -s3.port.lance=0 -s3.port="${ports[0]}" -master.port="${ports[1]}" \
        -filer.port="${ports[2]}" -volume.port="${ports[3]}" -admin.port="${ports[4]}" \
        >"$directory.log" 2>&1 &
    s3_process=$!
    deadline=$((SECONDS + 60))
    # It answers before it has made the bucket.
    until curl -sf "$AWS_ENDPOINT_URL/healthz" >/dev/null &&
        curl -sf -H 'Accept: application/json' "http://127.0.0.1:${ports[2]}/buckets/almanac/" >/dev/null; do
        if [ $SECONDS -ge $deadline ] || ! kill -0 "$s3_process" 2>/dev/null; then
            echo "the S3 server does not come up:" >&2
            tail -20 "$directory.log" >&2
            return 1
        fi
        sleep 0.1
    done
    export ALMANAC_TEST_S3_URL="s3://almanac"
    export ALMANAC_TEST_S3_ENDPOINT="$AWS_ENDPOINT_URL" ALMANAC_TEST_S3_BUCKET=almanac
    export ALMANAC_TEST_S3_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID
    export ALMANAC_TEST_S3_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY
    echo "S3 at $AWS_ENDPOINT_URL"
}

# Nobody needs what the S3 server holds any more, and it has been seen to wait for itself for ever when it was
# asked to stop.
stop_servers() {
    if [ -n "$s3_process" ]; then
        kill -KILL "$s3_process" 2>/dev/null || true
        wait "$s3_process" 2>/dev/null || true
    fi
    if [ -n "$postgres_directory" ] && [ -d "$postgres_directory/data" ]; then
        (
            cd "$postgres_directory" || exit
            programs=$(postgres_programs)
            as_postgres "$programs/pg_ctl" -D "$postgres_directory/data" -m immediate -s stop
        ) || true
    fi
}
