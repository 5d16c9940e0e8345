//! What is worse than a crash: bits flip, the database forgets, a backup is put back, a catalogue is lost.

pub(super) mod harm;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

use super::history::Rows;
use super::node::Node;
use super::records::{TYPES, person};
use super::world::{PEOPLE, World, address_of, catalogue_in};
use crate::model::ids::{PersonId, SystemIds};
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::piece::ObjectName;
use crate::upkeep::backup::{CATALOGUE_FILE, OBJECTS_FOLDER, back_up};
use crate::upkeep::manifest::write_changed;
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::rebuild::rebuild;
use harm::{Backup, Counted, Damage, Damaged, Earlier};

/// A database does not lose more than that.
const LOST_AT_MOST: Duration = Duration::from_mins(1);

fn owner_of(found: PersonId) -> Option<usize> {
    (0..PEOPLE).find(|owner| person(*owner) == found)
}

impl World {
    pub(super) async fn damage_or_mend(&mut self) {
        if !self.damages.is_empty() {
            return self.mend_all().await;
        }
        let gates = Arc::clone(&self.shared.gates);
        let Ok(_alone) = gates.writer.try_lock() else {
            return;
        };
        let damage = match self.chance.below(5) {
            0 => self.flip_object().await,
            1 => self.flip_blob().await,
            2 => self.falsify_row().await,
            3 => {
                let data_type = self.chance.below(TYPES.len());
                self.falsify_number(Counted::Partitions(data_type)).await
            }
            _ => self.falsify_number(Counted::Ledgers).await,
        };
        if let Some(damage) = damage {
            self.told.disasters += 1;
            self.damages.push(damage);
            self.damaged();
        }
    }

    async fn flip_object(&mut self) -> Option<Damage> {
        let paths: Vec<String> = self.stored().await.into_iter().collect();
        if paths.is_empty() {
            return None;
        }
        let path = self.chance.pick(&paths).clone();
        let owner = owner_of(ObjectName::parse(&path)?.person)?;
        let location = object_store::path::Path::from(path.as_str());
        let content = self.objects().get(&location).await.ok()?.bytes().await.ok()?;
        let mut flipped = content.to_vec();
        let place = self.chance.below(flipped.len());
        flipped[place] ^= 1 << self.chance.below(8);
        self.objects().put(&location, flipped.into()).await.unwrap();
        self.say(&format!("a bit of {path} flips"));
        let what = Damaged::Object { path, content };
        Some(Damage { owner, what })
    }

    async fn flip_blob(&mut self) -> Option<Damage> {
        let mut connection = self.connection().await;
        let sql = "SELECT blobs.piece, person, blob FROM blobs JOIN pieces ON pieces.piece = blobs.piece \
                   ORDER BY 1";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        if rows.is_empty() {
            return None;
        }
        let row = self.chance.pick(&rows);
        let (piece, content): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(2));
        let owner = owner_of(PersonId::from_slice(&row.get::<Vec<u8>, _>(1))?)?;
        let mut flipped = content.clone();
        let place = self.chance.below(flipped.len());
        flipped[place] ^= 1 << self.chance.below(8);
        put_blob(&mut connection, &piece, &flipped).await;
        self.say(&format!("a bit of a tail piece of person {owner} flips"));
        let what = Damaged::Blob { piece, content };
        Some(Damage { owner, what })
    }

    async fn falsify_row(&mut self) -> Option<Damage> {
        let mut connection = self.connection().await;
        let sql = "SELECT piece, person FROM pieces ORDER BY 1";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        if rows.is_empty() {
            return None;
        }
        let row = self.chance.pick(&rows);
        let piece: Vec<u8> = row.get(0);
        let owner = owner_of(PersonId::from_slice(&row.get::<Vec<u8>, _>(1))?)?;
        count(&mut connection, &piece, 1).await;
        self.say(&format!("a row of the catalogue about person {owner} changes"));
        let what = Damaged::Row { piece };
        Some(Damage { owner, what })
    }

    /// Of somebody who has a write under way, if there is one.
    async fn falsify_number(&mut self, table: Counted) -> Option<Damage> {
        let writers: Vec<usize> = (0..PEOPLE)
            .filter(|owner| self.histories[*owner].open() != 0)
            .collect();
        let owner = if writers.is_empty() {
            self.chance.below(PEOPLE)
        } else {
            *self.chance.pick(&writers)
        };
        if change_number(&mut self.connection().await, table, owner, 1).await == 0 {
            return None;
        }
        self.say(&format!("a number changes in {table:?} about person {owner}"));
        let what = Damaged::Number { table };
        Some(Damage { owner, what })
    }

    /// Everything that was damaged is as it was, where it still is.
    pub(super) async fn mend_all(&mut self) {
        if self.damages.is_empty() {
            return;
        }
        let gates = Arc::clone(&self.shared.gates);
        let Ok(_alone) = gates.writer.try_lock() else {
            return;
        };
        let mut connection = self.connection().await;
        // Until now.
        self.damaged();
        for damage in std::mem::take(&mut self.damages) {
            match damage.what {
                Damaged::Object { path, content } => {
                    let location = object_store::path::Path::from(path.as_str());
                    if self.objects().head(&location).await.is_ok() {
                        self.objects().put(&location, content.into()).await.unwrap();
                    }
                }
                Damaged::Blob { piece, content } => put_blob(&mut connection, &piece, &content).await,
                Damaged::Row { piece } => count(&mut connection, &piece, -1).await,
                Damaged::Number { table } => {
                    change_number(&mut connection, table, damage.owner, -1).await;
                }
            }
        }
        self.say("what was damaged is put right");
    }

    /// A failover to a database that had not heard of the last commits; the nodes go on.
    pub(super) async fn fail_over(&mut self) {
        let recent = self.earlier.take().filter(|earlier| {
            self.now().micros() - earlier.taken_at.micros() < LOST_AT_MOST.as_micros() as i64
        });
        let Some(earlier) = recent else {
            return self.take_down().await;
        };
        let gates = Arc::clone(&self.shared.gates);
        let Ok(_alone) = gates.writer.try_lock() else {
            return;
        };
        if !self.damages.is_empty() {
            return;
        }
        let mut connection = self.connection().await;
        replace_tables(&mut connection, &earlier.file).await;
        connection.close().await.unwrap();
        std::fs::remove_file(&earlier.file).unwrap();
        self.told.disasters += 1;
        self.keeps_more = true;
        self.say("the database is as it was a moment ago");
        self.accept_what_is_there(|_, _, _| ()).await;
        self.everything_may_fail();
    }

    async fn take_down(&mut self) {
        if !self.damages.is_empty() {
            return;
        }
        let file = self
            .directory
            .path()
            .join(format!("earlier-{}.db", self.chance.next()));
        let mut connection = self.connection().await;
        let sql = format!("VACUUM INTO '{}'", file.display());
        sqlx::query(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
        self.earlier = Some(Earlier {
            file,
            taken_at: self.now(),
        });
        self.say("the database is copied by another");
    }

    /// What is stored is what the truth is from now on.
    async fn accept_what_is_there(&mut self, each: impl Fn(&mut Self, usize, &(Rows, BTreeMap<u32, u32>))) {
        self.shares.went_back();
        let node = Node::undisturbed(&self.shared).await;
        for owner in 0..PEOPLE {
            let there = self.truth(&node, owner).await;
            each(self, owner, &there);
            self.histories[owner].went_back(there.0, there.1);
        }
        node.stores.catalog.close().await;
        node.die();
    }

    /// Nothing is under way, and everybody stops.
    pub(super) async fn disaster(&mut self) {
        self.earlier = None;
        self.told.disasters += 1;
        match (self.chance.below(3), self.backup.is_some()) {
            (0, true) => self.restore().await,
            (1, _) => Box::pin(self.lose_catalogue()).await,
            _ => self.back_up().await,
        }
    }

    async fn back_up(&mut self) {
        let node = Node::undisturbed(&self.shared).await;
        let directory = tempfile::tempdir_in(self.directory.path()).unwrap();
        let time = self.shared.time.clone();
        let copied = back_up(
            &node.stores.catalog,
            node.stores.objects(),
            None,
            directory.path(),
            time,
            Arc::new(SystemIds::default()),
            &|_| (),
        )
        .await;
        let wrong = copied.unwrap().finish().unwrap().wrong;
        if !wrong.is_empty() {
            self.fail(&format!("a backup complains of {wrong:?}"));
        }
        let mut people = Vec::new();
        for owner in 0..PEOPLE {
            people.push(self.truth(&node, owner).await);
        }
        node.stores.catalog.close().await;
        node.die();
        self.backup = Some(Backup { directory, people });
        self.say("a backup is made");
    }

    async fn restore(&mut self) {
        let Some(backup) = self.backup.take() else { return };
        self.stop_everybody();
        self.settle().await;
        let catalogue = self.remove_catalogue();
        std::fs::copy(backup.directory.path().join(CATALOGUE_FILE), catalogue).unwrap();
        let copied = ObjectStorage::open(&ObjectStoreSettings::Local(
            backup.directory.path().join(OBJECTS_FOLDER),
        ));
        let copied = copied.unwrap().store();
        let paths: Vec<_> = copied
            .list(None)
            .map_ok(|found| found.location)
            .try_collect()
            .await
            .unwrap();
        for path in paths {
            let content = copied.get(&path).await.unwrap().bytes().await.unwrap();
            self.objects().put(&path, content.into()).await.unwrap();
        }
        self.keeps_more = true;
        self.say("the backup is put back");
        let node = Node::undisturbed(&self.shared).await;
        node.settle(true).await;
        node.stores.catalog.close().await;
        node.die();
        let people = backup.people;
        self.accept_what_is_there(|world, owner, there| {
            if people[owner] != *there {
                world.fail(&format!(
                    "a backup had {:?} of person {owner}, and put back it is {there:?}",
                    people[owner]
                ));
            }
        })
        .await;
        self.start_everybody().await;
    }

    async fn lose_catalogue(&mut self) {
        let node = Node::undisturbed(&self.shared).await;
        if self.chance.one_in(2) {
            // Not by the job, which does nothing while a node that died seems to be at it.
            for owner in 0..PEOPLE {
                self.decide_for_catalogue(&node, owner).await;
                write_changed(&node.stores, person(owner)).await.unwrap();
                self.histories[owner].forget_passed();
            }
        }
        node.stores.catalog.close().await;
        node.die();
        self.stop_everybody();
        self.settle().await;
        self.remove_catalogue();
        // The store does not know which keys were accepted: what is repeated now happens again.
        self.keyed.clear();
        self.say("the catalogue is lost, and made anew from the store");
        let node = Node::undisturbed(&self.shared).await;
        let rebuilt = rebuild(&node.stores).await.unwrap();
        if !rebuilt.failed.is_empty() {
            self.fail(&format!(
                "a lost catalogue does not come back: {:?}",
                rebuilt.failed
            ));
        }
        node.settle(false).await;
        let mut written_down = Vec::new();
        for owner in 0..PEOPLE {
            written_down.push(
                !numbers(node.stores.objects(), person(owner))
                    .await
                    .unwrap()
                    .is_empty(),
            );
        }
        node.stores.catalog.close().await;
        node.die();
        self.keeps_more = true;
        self.accept_what_is_there(|world, owner, (rows, _)| {
            if written_down[owner] && !world.histories[owner].has_passed(rows) {
                let difference = world.histories[owner].difference(rows);
                world.fail(&format!(
                    "what came back of person {owner} was never true since it was written down: {difference}"
                ));
            }
        })
        .await;
        for history in &mut self.histories {
            history.forget_passed();
        }
        self.backup = None;
        self.start_everybody().await;
    }

    /// What the store alone knows of a person is given up, if the catalogue went back since.
    async fn decide_for_catalogue(&self, node: &Node, owner: usize) {
        let known = node.stores.catalog.known_manifest(person(owner)).await.unwrap();
        let Some(known) = known else { return };
        for number in numbers(node.stores.objects(), person(owner)).await.unwrap() {
            if number > known.number {
                let path = manifest_path(person(owner), number);
                node.stores.objects().delete(&path).await.unwrap();
            }
        }
    }

    fn stop_everybody(&mut self) {
        for slot in 0..Self::nodes() {
            self.crash(slot);
        }
    }

    async fn start_everybody(&mut self) {
        for slot in 0..Self::nodes() {
            self.start(slot).await;
        }
    }

    /// The next one has another name, so that whatever still closes the old one leaves it alone.
    fn remove_catalogue(&mut self) -> PathBuf {
        self.lost += 1;
        self.shared.address = address_of(&self.directory, self.lost);
        catalogue_in(&self.directory, self.lost)
    }

    async fn connection(&self) -> SqliteConnection {
        sqlx::sqlite::SqliteConnectOptions::new()
            .filename(catalogue_in(&self.directory, self.lost))
            .foreign_keys(false)
            .connect()
            .await
            .unwrap()
    }
}

async fn put_blob(connection: &mut SqliteConnection, piece: &[u8], content: &[u8]) {
    sqlx::query("UPDATE blobs SET blob = $2 WHERE piece = $1")
        .bind(piece.to_vec())
        .bind(content.to_vec())
        .execute(connection)
        .await
        .unwrap();
}

async fn count(connection: &mut SqliteConnection, piece: &[u8], more: i64) {
    sqlx::query("UPDATE pieces SET row_count = row_count + $2 WHERE piece = $1")
        .bind(piece.to_vec())
        .bind(more)
        .execute(connection)
        .await
        .unwrap();
}

/// Of how many rows.
async fn change_number(connection: &mut SqliteConnection, table: Counted, owner: usize, more: i64) -> u64 {
    let data_type = match table {
        Counted::Ledgers => "",
        Counted::Partitions(data_type) => TYPES[data_type],
    };
    sqlx::query(table.more())
        .bind(person(owner).0.as_bytes().to_vec())
        .bind(more)
        .bind(data_type)
        .execute(connection)
        .await
        .unwrap()
        .rows_affected()
}

/// All tables as they are in another file, at once.
async fn replace_tables(connection: &mut SqliteConnection, file: &Path) {
    let attach = format!("ATTACH '{}' AS earlier", file.display());
    sqlx::query(AssertSqlSafe(attach))
        .execute(&mut *connection)
        .await
        .unwrap();
    let tables = "SELECT name FROM earlier.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let tables = sqlx::query(tables).fetch_all(&mut *connection).await.unwrap();
    let mut sql = String::from("BEGIN IMMEDIATE;");
    for table in &tables {
        let name: String = table.get(0);
        let _ = write!(
            sql,
            "DELETE FROM main.{name}; INSERT INTO main.{name} SELECT * FROM earlier.{name};"
        );
    }
    sql += "COMMIT; DETACH earlier;";
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut *connection)
        .await
        .unwrap();
}
