//! Every setting there is: its name, where it can be said, what holds when nobody says it.

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The key in the file.
    pub name: &'static str,
    /// The same with dashes.
    pub flag: &'static str,
    /// The environment variable.
    pub variable: &'static str,
    /// What holds when nothing is said. Empty: nothing does, or it is worked out from other settings, as the
    /// help says.
    pub default: &'static str,
    /// Never printed, and not taken from flags, which other users of the machine can see.
    pub secret: bool,
    pub help: &'static str,
}

const fn entry(
    name: &'static str,
    flag: &'static str,
    variable: &'static str,
    default: &'static str,
    help: &'static str,
) -> Entry {
    Entry {
        name,
        flag,
        variable,
        default,
        secret: false,
        help,
    }
}

const fn secret(name: &'static str, variable: &'static str, help: &'static str) -> Entry {
    Entry {
        name,
        flag: "",
        variable,
        default: "",
        secret: true,
        help,
    }
}

/// In the order in which they are shown.
pub const SETTINGS: &[Entry] = &[
    entry(
        "listen",
        "listen",
        "ALMANAC_LISTEN",
        "127.0.0.1:8080",
        "Address and port to listen on",
    ),
    entry(
        "public_url",
        "public-url",
        "ALMANAC_PUBLIC_URL",
        "",
        "Address under which clients reach the service; from the listen address if not given",
    ),
    entry(
        "data_dir",
        "data-dir",
        "ALMANAC_DATA_DIR",
        "./almanac-data",
        "Directory of the embedded catalogue, the objects and the signing key",
    ),
    entry(
        "database_url",
        "database-url",
        "ALMANAC_DATABASE_URL",
        "",
        "Catalogue: postgres://... or sqlite://PATH; SQLite in the data directory if not given",
    ),
    entry(
        "object_store",
        "object-store",
        "ALMANAC_OBJECT_STORE",
        "",
        "Objects: s3://bucket/prefix or a directory; the data directory if not given",
    ),
    entry(
        "adopt_store",
        "adopt-store",
        "ALMANAC_ADOPT_STORE",
        "false",
        "Take catalogue and object store for a pair even if they do not look like one; for one start, by somebody who knows",
    ),
    secret("aws_access_key_id", "AWS_ACCESS_KEY_ID", "Key id for S3"),
    secret(
        "aws_secret_access_key",
        "AWS_SECRET_ACCESS_KEY",
        "Secret key for S3",
    ),
    secret("aws_session_token", "AWS_SESSION_TOKEN", "Session token for S3"),
    entry(
        "aws_region",
        "aws-region",
        "AWS_REGION",
        "",
        "Region of the S3 bucket; AWS_DEFAULT_REGION and then us-east-1 if not given",
    ),
    entry(
        "aws_default_region",
        "aws-default-region",
        "AWS_DEFAULT_REGION",
        "",
        "Region where no other is given",
    ),
    entry(
        "aws_endpoint_url",
        "aws-endpoint-url",
        "AWS_ENDPOINT_URL",
        "",
        "Address of an S3-compatible server",
    ),
    entry(
        "aws_allow_http",
        "aws-allow-http",
        "AWS_ALLOW_HTTP",
        "false",
        "Whether S3 may be spoken to without TLS",
    ),
    entry(
        "jwks_url",
        "jwks-url",
        "ALMANAC_JWKS_URL",
        "",
        "Key set of an outside identity provider; without it, tokens are signed with the key in the data directory",
    ),
    entry(
        "issuer",
        "issuer",
        "ALMANAC_ISSUER",
        "",
        "Issuer that tokens must name; `almanac` for embedded tokens if not given",
    ),
    entry(
        "audience",
        "audience",
        "ALMANAC_AUDIENCE",
        "",
        "Audience that tokens must name; `almanac` for embedded tokens if not given",
    ),
    entry(
        "user_claim",
        "user-claim",
        "ALMANAC_USER_CLAIM",
        "svc_userid",
        "Claim with the person's id; `sub` is looked at after it",
    ),
    entry(
        "algorithms",
        "algorithms",
        "ALMANAC_ALGORITHMS",
        "RS256,ES256,EdDSA",
        "Signature algorithms that an outside provider may use",
    ),
    entry(
        "token_leeway",
        "token-leeway",
        "ALMANAC_TOKEN_LEEWAY",
        "30s",
        "How far the provider's clock and this one may differ",
    ),
    entry(
        "jwks_lifetime",
        "jwks-lifetime",
        "ALMANAC_JWKS_LIFETIME",
        "10m",
        "How long a fetched key set is used without asking again",
    ),
    entry(
        "jwks_interval",
        "jwks-interval",
        "ALMANAC_JWKS_INTERVAL",
        "10s",
        "Least time between two requests for the key set",
    ),
    entry(
        "limit_sessions",
        "limit-sessions",
        "ALMANAC_LIMIT_SESSIONS",
        "1000",
        "API sessions that one person may have",
    ),
    entry(
        "cors_origins",
        "cors-origins",
        "ALMANAC_CORS_ORIGINS",
        "",
        "Origins whose pages may call the interface, with commas between them; * for all",
    ),
    entry(
        "source_prefix",
        "source-prefix",
        "ALMANAC_SOURCE_PREFIX",
        "com.almanac",
        "First part of the source ids of annotations",
    ),
    entry(
        "body_limit",
        "body-limit",
        "ALMANAC_BODY_LIMIT",
        "64MiB",
        "Largest body of a request, before and after decompression",
    ),
    entry(
        "connection_limit",
        "connection-limit",
        "ALMANAC_CONNECTION_LIMIT",
        "4096",
        "Connections open at once",
    ),
    entry(
        "slow_client_limit",
        "slow-client-limit",
        "ALMANAC_SLOW_CLIENT_LIMIT",
        "60s",
        "How long a client may neither send what it owes nor take what it asked for",
    ),
    entry(
        "shutdown_limit",
        "shutdown-limit",
        "ALMANAC_SHUTDOWN_LIMIT",
        "30s",
        "How long a stopping service waits for accepted requests",
    ),
    entry(
        "query_deadline",
        "query-deadline",
        "ALMANAC_QUERY_DEADLINE",
        "60s",
        "How long a question may take until its first row",
    ),
    entry(
        "concurrent_queries",
        "concurrent-queries",
        "ALMANAC_CONCURRENT_QUERIES",
        "16",
        "Questions answered at once",
    ),
    entry(
        "waiting_queries",
        "waiting-queries",
        "ALMANAC_WAITING_QUERIES",
        "256",
        "Questions that may wait for their turn; more get 429",
    ),
    entry(
        "queue_patience",
        "queue-patience",
        "ALMANAC_QUEUE_PATIENCE",
        "15s",
        "How long a question waits for its turn before it gets 503",
    ),
    entry(
        "query_threads",
        "query-threads",
        "ALMANAC_QUERY_THREADS",
        "0",
        "Threads that compute answers; 0: one per processor",
    ),
    entry(
        "memory_limit",
        "memory-limit",
        "ALMANAC_MEMORY_LIMIT",
        "128MiB",
        "Memory of all running questions together; what needs more goes to disk",
    ),
    entry(
        "spill_limit",
        "spill-limit",
        "ALMANAC_SPILL_LIMIT",
        "4GiB",
        "Disk that questions may use for lack of memory",
    ),
    entry(
        "cell_limit",
        "cell-limit",
        "ALMANAC_CELL_LIMIT",
        "50000000",
        "Rows times columns of one computed answer, the column of times not counted",
    ),
    entry(
        "geocoder_url",
        "geocoder-url",
        "ALMANAC_GEOCODER_URL",
        "",
        "Address of a Nominatim-compatible service that is sent the positions to name; without it, names come from the places built in",
    ),
    entry(
        "geocoder_timeout",
        "geocoder-timeout",
        "ALMANAC_GEOCODER_TIMEOUT",
        "2s",
        "How long the answer of that service is waited for; without one, a position has no name",
    ),
    entry(
        "geocoder_cache",
        "geocoder-cache",
        "ALMANAC_GEOCODER_CACHE",
        "10000",
        "Answers of that service that are kept",
    ),
    entry(
        "waiting_writes",
        "waiting-writes",
        "ALMANAC_WAITING_WRITES",
        "1024",
        "Accepted bodies that may wait to be committed; more get 429",
    ),
    entry(
        "commit_window",
        "commit-window",
        "ALMANAC_COMMIT_WINDOW",
        "0ms",
        "How long a group commit gathers after its first request; what arrives during a commit is gathered anyway",
    ),
    entry(
        "commit_size",
        "commit-size",
        "ALMANAC_COMMIT_SIZE",
        "8MiB",
        "Bytes after which a group commit gathers no more",
    ),
    entry(
        "upkeep",
        "upkeep",
        "ALMANAC_UPKEEP",
        "true",
        "Whether this node does background work",
    ),
    entry(
        "upkeep_interval",
        "upkeep-interval",
        "ALMANAC_UPKEEP_INTERVAL",
        "5s",
        "Pause between two looks for background work",
    ),
    entry(
        "flush_age",
        "flush-age",
        "ALMANAC_FLUSH_AGE",
        "60s",
        "Age at which the tail becomes an object",
    ),
    entry(
        "flush_size",
        "flush-size",
        "ALMANAC_FLUSH_SIZE",
        "4MiB",
        "Size at which the tail of a partition becomes an object",
    ),
    entry(
        "grace_period",
        "grace-period",
        "ALMANAC_GRACE_PERIOD",
        "10m",
        "How long replaced objects stay for readers that began before",
    ),
    entry(
        "collect_anyway",
        "collect-anyway",
        "ALMANAC_COLLECT_ANYWAY",
        "false",
        "Whether objects that nothing names are deleted even if they are more than half of the store",
    ),
    entry(
        "limit_annotations",
        "limit-annotations",
        "ALMANAC_LIMIT_ANNOTATIONS",
        "10000",
        "Annotations that one person may keep, deleted ones included",
    ),
    entry(
        "limit_tags",
        "limit-tags",
        "ALMANAC_LIMIT_TAGS",
        "10000",
        "Tags that one person may have",
    ),
    entry(
        "limit_reflections",
        "limit-reflections",
        "ALMANAC_LIMIT_REFLECTIONS",
        "1000",
        "Reflections that one person may keep, deleted ones included",
    ),
    entry(
        "log",
        "log",
        "ALMANAC_LOG",
        "info",
        "What is logged: a level, or a list such as `info,almanac::store=debug`",
    ),
    entry(
        "log_format",
        "log-format",
        "ALMANAC_LOG_FORMAT",
        "text",
        "Form of the log: text or json",
    ),
    entry(
        "otel_exporter_otlp_endpoint",
        "otel-exporter-otlp-endpoint",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "",
        "Where traces are to go (not available yet)",
    ),
];

/// The setting called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    SETTINGS.iter().find(|entry| entry.name == name)
}
