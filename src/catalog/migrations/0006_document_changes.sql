-- What changed lately is asked for every minute, and must not cost a look at everything.
CREATE INDEX documents_by_change ON documents (person, kind, updated_at);
