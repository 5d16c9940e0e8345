//! The tables: their columns and their keys.
//!
//! Statements are generated from these definitions, so that a checksum cannot miss a column. Knows nothing of
//! what the rows mean, and nothing of how they are read and written.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Bytes,
    OptionalInt,
    OptionalText,
}

/// A table whose rows carry a checksum in a last column named `checksum`.
#[derive(Debug)]
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// How many of the leading columns are the primary key.
    pub key: usize,
}

use Kind::{Bytes, Int, OptionalInt, OptionalText, Text};

pub(super) const PEOPLE: Table = Table {
    name: "people",
    columns: &[
        ("person", Bytes),
        ("name", OptionalText),
        ("preferences", OptionalText),
        ("created_at", Int),
    ],
    key: 1,
};

pub(super) const LEDGERS: Table = Table {
    name: "ledgers",
    columns: &[
        ("person", Bytes),
        ("sequence", Int),
        ("partitions", Int),
        ("digest", Int),
    ],
    key: 1,
};

pub(super) const PARTITIONS: Table = Table {
    name: "partitions",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("version", Int),
        ("records", Int),
        ("pieces", Int),
        ("dead", Int),
        ("digest", Int),
        ("bytes", Int),
        ("min_start", Int),
        ("max_start", Int),
        ("max_end", Int),
        ("changed_at", Int),
        ("current_minute", Int),
        ("current_count", Int),
    ],
    key: 2,
};

pub(super) const PIECES: Table = Table {
    name: "pieces",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("piece", Bytes),
        ("sequence", Int),
        ("row_count", Int),
        ("bytes", Int),
        ("min_start", Int),
        ("max_start", Int),
        ("max_end", Int),
        ("layout_version", Int),
        ("content_checksum", Int),
        ("path", OptionalText),
        ("footer_bytes", OptionalInt),
        ("footer_checksum", OptionalInt),
        ("created_at", Int),
    ],
    key: 3,
};

pub(super) const DEAD_ROWS: Table = Table {
    name: "dead_rows",
    columns: &[
        ("person", Bytes),
        ("data_type", Text),
        ("piece", Bytes),
        ("record", Bytes),
        ("sequence", Int),
    ],
    key: 4,
};

pub(super) const RETIRED_OBJECTS: Table = Table {
    name: "retired_objects",
    columns: &[("path", Text), ("retired_at", Int)],
    key: 1,
};

/// Called strays only here and in statements: so they were called when the migration was released that makes
/// the table, and it cannot be changed any more.
pub(super) const ORPHANS: Table = Table {
    name: "strays",
    columns: &[
        ("path", Text),
        ("noticed_at", Int),
        ("condemned_at", OptionalInt),
        ("removed_at", OptionalInt),
    ],
    key: 1,
};

pub(super) const MANIFESTS: Table = Table {
    name: "manifests",
    columns: &[
        ("person", Bytes),
        ("number", Int),
        ("state", Int),
        ("written_at", Int),
    ],
    key: 1,
};

pub(super) const UPLOADS: Table = Table {
    name: "uploads",
    columns: &[
        ("person", Bytes),
        ("idempotency_key", Text),
        ("upload", Bytes),
        ("fingerprint", Bytes),
        ("accepted_at", Int),
    ],
    key: 2,
};

pub(super) const UPDATES: Table = Table {
    name: "updates",
    columns: &[
        ("person", Bytes),
        ("minute", Int),
        ("data_type", Text),
        ("record_count", Int),
    ],
    key: 3,
};

pub(super) const UPDATED_DAYS: Table = Table {
    name: "updated_days",
    columns: &[
        ("person", Bytes),
        ("day", Int),
        ("data_type", Text),
        ("record_count", Int),
        ("minutes", Text),
    ],
    key: 3,
};

pub(super) const SOURCES: Table = Table {
    name: "sources",
    columns: &[
        ("person", Bytes),
        ("source_key", Text),
        ("source", Bytes),
        ("name", OptionalText),
        ("added_at", Int),
    ],
    key: 2,
};

pub(super) const DEFINITIONS: Table = Table {
    name: "definitions",
    columns: &[
        ("definition", Bytes),
        ("person", Bytes),
        ("base", Text),
        ("body", Text),
        ("version", Int),
        ("deprecated", Int),
        ("created_at", Int),
        ("updated_at", Int),
    ],
    key: 1,
};

pub(super) const DOCUMENTS: Table = Table {
    name: "documents",
    columns: &[
        ("kind", Text),
        ("document", Bytes),
        ("person", Bytes),
        ("name", OptionalText),
        ("body", Text),
        ("version", Int),
        ("created_at", Int),
        ("updated_at", Int),
        ("deleted_at", OptionalInt),
    ],
    key: 2,
};

pub(super) const LINKS: Table = Table {
    name: "links",
    columns: &[
        ("kind", Text),
        ("target", Bytes),
        ("document", Bytes),
        ("person", Bytes),
    ],
    key: 3,
};

pub(super) const FOLDERS: Table = Table {
    name: "folders",
    columns: &[
        ("person", Bytes),
        ("kind", Text),
        ("documents", Int),
        ("digest", Int),
    ],
    key: 2,
};

pub(super) const ACCESS_LOG: Table = Table {
    name: "access_log",
    columns: &[
        ("person", Bytes),
        ("entry", Bytes),
        ("at", Int),
        ("actor", Bytes),
        ("body", Text),
        ("row_count", OptionalInt),
        ("outcome", Text),
    ],
    key: 2,
};

pub(super) const ERASURES: Table = Table {
    name: "erasures",
    columns: &[
        ("mark", Bytes),
        ("person", Bytes),
        ("begun_at", Int),
        ("purged_at", OptionalInt),
        ("ended_at", OptionalInt),
    ],
    key: 1,
};

pub(super) const DELETIONS: Table = Table {
    name: "deletions",
    columns: &[("person", Bytes), ("data_type", Text), ("noticed_at", Int)],
    key: 2,
};

pub(super) const LEASES: Table = Table {
    name: "leases",
    columns: &[("name", Text), ("holder", Text), ("held_until", Int)],
    key: 1,
};

pub(super) const META: Table = Table {
    name: "meta",
    columns: &[("name", Text), ("value", Text)],
    key: 1,
};

/// Every table but `blobs`, each after those that it refers to.
pub(super) const ALL: &[&Table] = &[
    &PEOPLE,
    &LEDGERS,
    &PARTITIONS,
    &PIECES,
    &DEAD_ROWS,
    &RETIRED_OBJECTS,
    &ORPHANS,
    &MANIFESTS,
    &UPLOADS,
    &UPDATES,
    &UPDATED_DAYS,
    &SOURCES,
    &DEFINITIONS,
    &DOCUMENTS,
    &LINKS,
    &FOLDERS,
    &ACCESS_LOG,
    &ERASURES,
    &DELETIONS,
    &LEASES,
    &META,
];

/// What a catalogue knows of its own object store, and of the nodes that work on both. It means nothing in a
/// copy.
pub(super) const OF_THIS_STORE: &[&Table] = &[&ORPHANS, &MANIFESTS, &LEASES];

impl Table {
    /// The columns of the primary key, separated by commas.
    pub(super) fn key_columns(&self) -> String {
        let names: Vec<&str> = self
            .columns
            .iter()
            .take(self.key)
            .map(|(name, _)| *name)
            .collect();
        names.join(", ")
    }

    /// The reverse order of the keys, as the rest of a `select`.
    pub(super) fn backwards(&self) -> String {
        let names = self.columns.iter().take(self.key);
        let falling: Vec<String> = names.map(|(name, _)| format!("{name} DESC")).collect();
        format!("ORDER BY {}", falling.join(", "))
    }

    /// Whether each of its rows belongs to a person.
    pub(super) fn has_owner(&self) -> bool {
        self.owner_column().is_some()
    }

    /// The column with the person to whom a row belongs.
    pub(super) fn owner_column(&self) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == "person")
    }
}
