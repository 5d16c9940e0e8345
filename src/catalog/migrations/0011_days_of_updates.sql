-- Counts of updates of days that are over: one row for each type instead of one for each minute.
-- `minutes` is JSON, `[[minute of the day, count], …]`.
CREATE TABLE updated_days (
    person BLOB NOT NULL REFERENCES people (person),
    day INTEGER NOT NULL,
    data_type TEXT NOT NULL,
    record_count INTEGER NOT NULL,
    minutes TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (person, day, data_type)
) STRICT, WITHOUT ROWID;
