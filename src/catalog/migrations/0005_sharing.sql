-- What stands between two people: links are also found by whose documents they belong to.
CREATE INDEX links_by_person ON links (person, kind, target);

-- What others read of a person, and what became of the person's shares. Rows are added and completed, never
-- changed otherwise. `entry` grows with time. `row_count` is null where rows were not counted.
CREATE TABLE access_log (
    person BLOB NOT NULL REFERENCES people (person),
    entry BLOB NOT NULL,
    at INTEGER NOT NULL,
    actor BLOB NOT NULL,
    body TEXT NOT NULL,
    row_count INTEGER,
    outcome TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, entry)
) STRICT, WITHOUT ROWID;
