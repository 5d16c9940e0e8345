//! Damage is told, and what a crash, an undone write or an earlier round leaves is taken.

mod rounds;

use rusqlite::Connection;

use super::*;

/// A database with a log of `transactions` transactions, as a crash leaves it.
fn crashed(transactions: usize) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let open = Connection::open(directory.path().join("open.db")).unwrap();
    open.execute_batch("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a)")
        .unwrap();
    for number in 1..transactions {
        open.execute("INSERT INTO t VALUES (?1)", [number.to_string().repeat(2_000)])
            .unwrap();
    }
    let database = directory.path().join("crashed.db");
    std::fs::copy(directory.path().join("open.db"), &database).unwrap();
    std::fs::copy(directory.path().join("open.db-wal"), beside(&database, SUFFIX)).unwrap();
    (directory, database)
}

fn flip(database: &Path, place: usize) {
    let log = beside(database, SUFFIX);
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[place] ^= 4;
    std::fs::write(&log, bytes).unwrap();
}

#[test]
fn a_log_as_it_was_written_is_taken_wherever_a_crash_broke_it_off() {
    let (_directory, database) = crashed(20);
    refuse_damaged(&database).unwrap();
    let log = beside(&database, SUFFIX);
    let bytes = std::fs::read(&log).unwrap();
    for length in [0, 10, HEADER, HEADER + 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&log, &bytes[..length]).unwrap();
        refuse_damaged(&database).unwrap();
    }
    std::fs::remove_file(&log).unwrap();
    refuse_damaged(&database).unwrap();
}

#[test]
fn a_log_whose_database_is_missing_or_empty_is_refused_and_stays() {
    let (_directory, database) = crashed(20);
    refuse_left_alone(&database).unwrap();
    let log = beside(&database, SUFFIX);
    let bytes = std::fs::read(&log).unwrap();
    let refuses = || {
        let refused = refuse_left_alone(&database).unwrap_err().to_string();
        assert!(refused.contains(&log.display().to_string()), "{refused}");
        assert_eq!(std::fs::read(&log).unwrap(), bytes);
    };
    std::fs::write(&database, "").unwrap();
    refuses();
    std::fs::remove_file(&database).unwrap();
    refuses();
    assert!(!database.exists());
    // There is nothing in it yet.
    std::fs::write(&log, &bytes[..HEADER]).unwrap();
    refuse_left_alone(&database).unwrap();
    std::fs::remove_file(&log).unwrap();
    refuse_left_alone(&database).unwrap();
}

/// A closed database with this number, and what a crash would have left of it before: file and log.
fn numbered(directory: &Path, number: u32) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let database = directory.join(format!("{number}.db"));
    let open = Connection::open(&database).unwrap();
    open.execute_batch(&format!(
        "PRAGMA journal_mode = wal; BEGIN; PRAGMA application_id = {number}; CREATE TABLE t (a); COMMIT; \
         INSERT INTO t VALUES (1)"
    ))
    .unwrap();
    let log = std::fs::read(beside(&database, SUFFIX)).unwrap();
    let file = std::fs::read(&database).unwrap();
    open.close().unwrap();
    (database, file, log)
}

#[test]
fn the_log_of_another_database_is_refused_if_both_have_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let (one, begun, its_log) = numbered(directory.path(), 7);
    let (old, _, old_log) = numbered(directory.path(), 0);
    let (other, _, other_log) = numbered(directory.path(), 8);
    let beside_it = |database: &Path, log: &[u8]| {
        std::fs::write(beside(database, SUFFIX), log).unwrap();
        refuse_damaged(database)
    };
    beside_it(&one, &its_log).unwrap();
    // One that had been there before there were numbers is not told from others.
    beside_it(&old, &its_log).unwrap();
    for (database, log) in [(&one, &other_log), (&other, &its_log), (&one, &old_log)] {
        let refused = beside_it(database, log).unwrap_err();
        assert!(matches!(refused, CatalogError::LogOfAnother { .. }), "{refused}");
        assert_eq!(&std::fs::read(beside(database, SUFFIX)).unwrap(), log);
    }
    // As after a crash right after it was made: the number is only in the log.
    std::fs::write(&one, begun).unwrap();
    assert_eq!(FirstPage::of(&one).unwrap(), FirstPage::default());
    beside_it(&one, &its_log).unwrap();
}

#[test]
fn the_last_write_may_have_broken_off_anywhere() {
    let (_directory, database) = crashed(20);
    let length = std::fs::metadata(beside(&database, SUFFIX)).unwrap().len();
    flip(&database, length as usize - 100);
    refuse_damaged(&database).unwrap();
}

#[test]
fn what_an_earlier_round_left_behind_the_end_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("open.db");
    let open = Connection::open(&database).unwrap();
    open.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)")
        .unwrap();
    for number in 0..100 {
        if number == 90 {
            let checkpoint = "PRAGMA wal_checkpoint(RESTART)";
            open.query_row(checkpoint, [], |row| row.get::<_, i64>(0))
                .unwrap();
        }
        open.execute("INSERT INTO t VALUES (?1)", [number.to_string().repeat(2_000)])
            .unwrap();
    }
    refuse_damaged(&database).unwrap();
}

#[test]
fn a_bit_that_turned_over_before_other_transactions_is_told_and_can_be_cut_off() {
    let length = {
        let (_directory, database) = crashed(20);
        std::fs::metadata(beside(&database, SUFFIX)).unwrap().len() as usize
    };
    for place in [2, 10, 20, HEADER + 2, HEADER + 9, HEADER + 500, length / 2] {
        let (_directory, database) = crashed(20);
        flip(&database, place);
        let refused = refuse_damaged(&database).unwrap_err();
        assert!(
            matches!(refused, CatalogError::Corrupt { .. }),
            "{place}: {refused}"
        );
        let told = cut_damaged(&database).unwrap().unwrap();
        assert!(told.contains("given up"), "{told}");
        assert!(beside(&database, SET_ASIDE).exists());
        refuse_damaged(&database).unwrap();
        let open = Connection::open(&database).unwrap();
        open.query_row("PRAGMA quick_check", [], |row| row.get::<_, String>(0))
            .unwrap();
    }
}

/// Opens a database with two tables, whose log stays as it is written.
fn opened(database: &Path) -> Connection {
    let open = Connection::open(database).unwrap();
    open.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 0; \
         PRAGMA cache_size = 10; CREATE TABLE IF NOT EXISTS t (a); CREATE TABLE IF NOT EXISTS u (a)",
    )
    .unwrap();
    open
}

/// The file and the log of a database into which values of these lengths were written one by one.
fn written(lengths: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("open.db");
    let open = opened(&database);
    for length in lengths {
        open.execute("INSERT INTO t VALUES (?1)", ["x".repeat(*length)])
            .unwrap();
    }
    let log = std::fs::read(beside(&database, SUFFIX)).unwrap();
    (std::fs::read(&database).unwrap(), log)
}

/// The places of the frames of each transaction.
fn transactions(log: &[u8]) -> Vec<Vec<usize>> {
    let (mut whole, mut frames) = (Vec::new(), Vec::new());
    for at in (HEADER..log.len()).step_by(FRAME) {
        frames.push(at);
        if word(log, at + 4) != 0 {
            whole.push(std::mem::take(&mut frames));
        }
    }
    whole
}

fn damage(log: &[u8]) -> Option<Damage> {
    scanned(log, log.first_chunk().unwrap()).unwrap().damage
}

/// The same log after a bit turned over.
fn turned(log: &[u8], bit: usize) -> Vec<u8> {
    let mut log = log.to_vec();
    log[bit / 8] ^= 1 << (bit % 8);
    log
}

/// All bits of a frame's header, and some of its page.
fn bits_of(frame: usize) -> impl Iterator<Item = usize> {
    let chosen = |bit: &usize| *bit < FRAME_HEADER * 8 || bit.is_multiple_of(97);
    (0..FRAME * 8).filter(chosen).map(move |bit| frame * 8 + bit)
}

const FRAME: usize = FRAME_HEADER + 4_096;
/// One frame each, and several; the database grows or does not; its size is a power of two or is not.
const LENGTHS: [&[usize]; 6] = [
    &[100, 100, 100],
    &[5_000, 100, 100],
    &[5_000, 20_000, 100],
    &[5_000, 100, 20_000],
    &[5_000, 20_000, 20_000],
    &[30_000, 30_000, 9_000],
];

#[test]
fn any_bit_of_the_last_transaction_but_one_is_told() {
    for lengths in LENGTHS {
        let (_, log) = written(lengths);
        let transactions = transactions(&log);
        for frame in &transactions[transactions.len() - 2] {
            for bit in bits_of(*frame) {
                let told = damage(&turned(&log, bit));
                assert!(
                    told.is_some(),
                    "{lengths:?}, frame {frame}, bit {}",
                    bit - frame * 8
                );
            }
        }
    }
}

#[test]
fn a_bit_of_the_last_transaction_looks_like_a_crash_unless_it_makes_an_end() {
    for lengths in LENGTHS {
        let (_, log) = written(lengths);
        let last = transactions(&log).pop().unwrap();
        for frame in &last {
            let size = (frame + 4) * 8..(frame + 8) * 8;
            for bit in bits_of(*frame) {
                // A crash leaves no end of a transaction behind which the same transaction goes on.
                let makes_an_end = size.contains(&bit) && last.last() != Some(frame);
                let told = damage(&turned(&log, bit));
                let place = bit - frame * 8;
                assert_eq!(
                    told.is_some(),
                    makes_an_end,
                    "{lengths:?}, frame {frame}, bit {place}"
                );
            }
        }
    }
}

#[test]
fn a_bit_of_the_last_transaction_loses_nothing_else() {
    for lengths in LENGTHS {
        let (file, log) = written(lengths);
        for frame in transactions(&log).pop().unwrap() {
            for byte in [0, 9, 17, 21, FRAME_HEADER + 2_000, FRAME - 1] {
                let directory = tempfile::tempdir().unwrap();
                let database = directory.path().join("damaged.db");
                std::fs::write(&database, &file).unwrap();
                let damaged = turned(&log, (frame + byte) * 8);
                std::fs::write(beside(&database, SUFFIX), damaged).unwrap();
                refuse_damaged(&database).unwrap();
                let rows = Connection::open(&database)
                    .unwrap()
                    .query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))
                    .unwrap();
                assert_eq!(
                    rows,
                    lengths.len() as i64 - 1,
                    "{lengths:?}, frame {frame}, byte {byte}"
                );
            }
        }
    }
}

#[test]
fn more_than_a_bit_of_the_last_transaction_but_one_is_told() {
    for lengths in LENGTHS {
        let (_, log) = written(lengths);
        let transactions = transactions(&log);
        for frame in &transactions[transactions.len() - 2] {
            let mut damaged = log.clone();
            damaged[frame + FRAME_HEADER + 1_000..][..2_000].fill(0xa5);
            assert!(damage(&damaged).is_some(), "{lengths:?}, frame {frame}");
        }
    }
}

#[test]
fn any_bit_of_the_beginning_of_the_log_is_told() {
    let (_, log) = written(&[100, 100]);
    for bit in 0..HEADER * 8 {
        assert!(damage(&turned(&log, bit)).is_some(), "{bit}");
    }
}

#[test]
fn any_bit_of_an_end_whose_header_lies_in_two_sectors_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("open.db");
    let open = opened(&database);
    open.execute_batch("INSERT INTO t VALUES (0); INSERT INTO u VALUES (0)")
        .unwrap();
    let log = || std::fs::read(beside(&database, SUFFIX)).unwrap();
    // Counted from 0, the headers of these frames do.
    for end in [41, 62] {
        assert!((HEADER + end * FRAME) % SECTOR as usize + FRAME_HEADER > SECTOR as usize);
        while (log().len() - HEADER) / FRAME < end - 1 {
            open.execute_batch("UPDATE t SET a = a + 1").unwrap();
        }
        open.execute_batch("BEGIN; UPDATE t SET a = a + 1; UPDATE u SET a = a + 1; COMMIT")
            .unwrap();
        open.execute_batch("UPDATE t SET a = a + 1").unwrap();
        let log = log();
        let transactions = transactions(&log);
        let frames = &transactions[transactions.len() - 2];
        assert_eq!(frames[..], [end - 1, end].map(|frame| HEADER + frame * FRAME));
        for bit in frames.iter().flat_map(|frame| bits_of(*frame)) {
            assert!(damage(&turned(&log, bit)).is_some(), "{end}: {bit}");
        }
    }
}

/// A long transaction, which does not fit into the cache.
const LONG: &str = "
    INSERT INTO t
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
    SELECT printf('%05000d', i) FROM n";

/// Writes short transactions over what a long one left, and looks at each as if it had broken off anywhere.
fn look_at_short_ones(open: &Connection, log: &Path) {
    let mut earlier = None;
    for number in 0..70 {
        let before = std::fs::read(log).unwrap();
        open.execute_batch(match number % 3 {
            0 => "BEGIN; UPDATE t SET a = a + 1; UPDATE u SET a = a + 1; COMMIT",
            _ => "UPDATE t SET a = a + 1",
        })
        .unwrap();
        let after = std::fs::read(log).unwrap();
        assert_eq!(after.len(), before.len(), "it goes beyond what was left");
        let differs = |at: &usize| before[*at..*at + FRAME] != after[*at..*at + FRAME];
        let frames: Vec<usize> = (HEADER..after.len()).step_by(FRAME).filter(differs).collect();
        assert_eq!(frames.len(), if number % 3 == 0 { 2 } else { 1 });
        assert_eq!(damage(&after), None, "{number}");
        for frame in &frames {
            for cut in *frame..=frame + FRAME {
                // Either what a disk writes at once, or what SQLite does.
                if cut.is_multiple_of(SECTOR as usize) || cut == frame + FRAME_HEADER {
                    let begun = [&after[..cut], &before[cut..]].concat();
                    let out_of_order = [&before[..cut], &after[cut..]].concat();
                    assert_eq!(damage(&begun), None, "{number}: {cut}");
                    assert_eq!(damage(&out_of_order), None, "{number}: {cut}");
                }
            }
        }
        if let Some(end) = earlier.filter(|end| end % SECTOR as usize + FRAME_HEADER <= SECTOR as usize) {
            for byte in [17, FRAME_HEADER + 2_000] {
                let damaged = turned(&after, (end + byte) * 8);
                assert!(damage(&damaged).is_some(), "{number}: {byte}");
            }
        }
        earlier = frames.last().copied();
    }
}

#[test]
fn short_writes_over_one_that_was_undone_may_break_off_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("open.db");
    let open = opened(&database);
    open.execute_batch("INSERT INTO t VALUES (0); INSERT INTO u VALUES (0)")
        .unwrap();
    open.execute_batch(&format!("BEGIN; {LONG}; ROLLBACK")).unwrap();
    let log = beside(&database, SUFFIX);
    assert_eq!(damage(&std::fs::read(&log).unwrap()), None);
    look_at_short_ones(&open, &log);
}

#[test]
fn short_writes_over_one_that_broke_off_may_break_off_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole.db", "broken.db"].map(|name| directory.path().join(name));
    let open = opened(&whole);
    open.execute_batch("INSERT INTO t VALUES (0); INSERT INTO u VALUES (0)")
        .unwrap();
    open.execute_batch(LONG).unwrap();
    std::fs::copy(&whole, &broken).unwrap();
    // All of it is on the disk, its end too, but its beginning.
    let mut log = std::fs::read(beside(&whole, SUFFIX)).unwrap();
    let first = transactions(&log).pop().unwrap()[0];
    log[first..first + FRAME].fill(0);
    std::fs::write(beside(&broken, SUFFIX), &log).unwrap();
    refuse_damaged(&broken).unwrap();
    look_at_short_ones(&opened(&broken), &beside(&broken, SUFFIX));
}
