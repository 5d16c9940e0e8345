-- What exists. Written in SQLite's words; the PostgreSQL form is derived from it word by word when it is applied.
-- Times are microseconds since 1970 in UTC, ids are 16 bytes, free structure is JSON text.
-- `checksum` is a CRC-32 over the table's name and the row's other columns, so that a damaged row is an error and not another truth.

CREATE TABLE people (
    person BLOB NOT NULL PRIMARY KEY,
    name TEXT,
    preferences TEXT,
    created_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What changes with every commit of a person. `partitions` and `digest` (the exclusive or of their checksums) make a lost partition row an error.
CREATE TABLE ledgers (
    person BLOB NOT NULL PRIMARY KEY REFERENCES people (person),
    sequence INTEGER NOT NULL,
    partitions INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `digest` is the exclusive or of the checksums of the partition's pieces and dead rows, so that a lost one is an error.
-- `current_count` counts the updates of the newest minute; earlier minutes are rows of `updates`.
CREATE TABLE partitions (
    person BLOB NOT NULL REFERENCES people (person),
    data_type TEXT NOT NULL,
    version INTEGER NOT NULL,
    records INTEGER NOT NULL,
    pieces INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    min_start INTEGER NOT NULL,
    max_start INTEGER NOT NULL,
    max_end INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    current_minute INTEGER NOT NULL,
    current_count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, data_type)
) STRICT, WITHOUT ROWID;

-- `path` is null for a piece of the tail, whose bytes are in `blobs`.
CREATE TABLE pieces (
    person BLOB NOT NULL,
    data_type TEXT NOT NULL,
    piece BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    min_start INTEGER NOT NULL,
    max_start INTEGER NOT NULL,
    max_end INTEGER NOT NULL,
    layout_version INTEGER NOT NULL,
    content_checksum INTEGER NOT NULL,
    path TEXT,
    footer_bytes INTEGER,
    footer_checksum INTEGER,
    created_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, data_type, piece)
) STRICT, WITHOUT ROWID;

CREATE INDEX tail_pieces ON pieces (created_at) WHERE path IS NULL;

CREATE TABLE blobs (
    piece BLOB NOT NULL PRIMARY KEY,
    blob BLOB NOT NULL
) STRICT;

CREATE TABLE dead_rows (
    person BLOB NOT NULL,
    data_type TEXT NOT NULL,
    piece BLOB NOT NULL,
    record BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, data_type, piece, record)
) STRICT, WITHOUT ROWID;

-- Objects that no piece points to any more. They stay until readers with an older snapshot are done.
CREATE TABLE retired_objects (
    path TEXT NOT NULL PRIMARY KEY,
    retired_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Requests that named an idempotency key.
CREATE TABLE uploads (
    person BLOB NOT NULL REFERENCES people (person),
    idempotency_key TEXT NOT NULL,
    upload BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    accepted_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_by_age ON uploads (accepted_at);

-- Records put or deleted per minute of acceptance, but for the newest minute of each partition.
CREATE TABLE updates (
    person BLOB NOT NULL REFERENCES people (person),
    minute INTEGER NOT NULL,
    data_type TEXT NOT NULL,
    record_count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, minute, data_type)
) STRICT, WITHOUT ROWID;

CREATE TABLE sources (
    person BLOB NOT NULL REFERENCES people (person),
    source_key TEXT NOT NULL,
    source BLOB NOT NULL,
    name TEXT,
    added_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, source_key)
) STRICT, WITHOUT ROWID;

-- Data types that people defined themselves.
CREATE TABLE definitions (
    definition BLOB NOT NULL PRIMARY KEY,
    person BLOB NOT NULL REFERENCES people (person),
    base TEXT NOT NULL,
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    deprecated INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX definitions_by_person ON definitions (person);

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
