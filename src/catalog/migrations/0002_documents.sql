-- What a person writes, keeps and shares: annotations, tags, files, sessions, grants. Each is a JSON document
-- with an id; what it means is known to the room of people. `name` is what may stand only once among the
-- documents of one person and kind.
CREATE TABLE documents (
    kind TEXT NOT NULL,
    document BLOB NOT NULL,
    person BLOB NOT NULL REFERENCES people (person),
    name TEXT,
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, document)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX documents_by_name ON documents (person, kind, name);

CREATE INDEX documents_by_age ON documents (person, kind, created_at, document);

-- How a document is found by what it refers to: a share by whom it is granted to, a membership by its group.
CREATE TABLE links (
    kind TEXT NOT NULL,
    target BLOB NOT NULL,
    document BLOB NOT NULL,
    person BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, target, document)
) STRICT, WITHOUT ROWID;

CREATE INDEX links_by_document ON links (document);

-- `documents` and `digest` (the exclusive or of the checksums of documents and links) make a lost row an error.
CREATE TABLE folders (
    person BLOB NOT NULL REFERENCES people (person),
    kind TEXT NOT NULL,
    documents INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, kind)
) STRICT, WITHOUT ROWID;
