-- People whose erasure was begun. `mark` is a digest of the id and stays, so that nothing brings them back;
-- `person` is the id itself while there may be something left to look for, and empty when the erasure is
-- over.
CREATE TABLE erasures (
    mark BLOB NOT NULL PRIMARY KEY,
    person BLOB NOT NULL,
    begun_at INTEGER NOT NULL,
    purged_at INTEGER,
    ended_at INTEGER,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Partitions in which records were replaced or deleted, and when that was first noticed: from when the time
-- runs after which no byte of them may be left.
CREATE TABLE deletions (
    person BLOB NOT NULL REFERENCES people (person),
    data_type TEXT NOT NULL,
    noticed_at INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, data_type)
) STRICT, WITHOUT ROWID;

-- What was deleted long ago is asked for again and again, and must not cost a look at everything.
CREATE INDEX documents_by_deletion ON documents (deleted_at) WHERE deleted_at IS NOT NULL;
