-- Objects of the store that nothing names. `noticed_at`: when one was first seen so. From `condemned_at` on, no commit may name it any more.
-- `removed_at`: when it was deleted; the row stays longer than any write takes, so that a late commit still hears of it.
-- All three are times of the database. An object that is kept for the operator has been noticed at the end of time.
CREATE TABLE strays (
    path TEXT NOT NULL PRIMARY KEY,
    noticed_at INTEGER NOT NULL,
    condemned_at INTEGER,
    removed_at INTEGER,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest manifest of each person in the object store: what state of theirs it holds.
CREATE TABLE manifests (
    person BLOB NOT NULL PRIMARY KEY REFERENCES people (person),
    number INTEGER NOT NULL,
    state INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
