-- What became of transactions whose end was awaited: each leaves a row, by which whoever did not hear the
-- database's answer finds out. `happened` is 0 where somebody asked before the transaction got there: then it
-- never will. Rows are forgotten by the process that wrote them once nobody can ask any more.
CREATE TABLE commits (
    witness BLOB NOT NULL PRIMARY KEY,
    happened INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
