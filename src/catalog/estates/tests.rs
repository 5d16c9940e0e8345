//! No page of a person's rows costs more than the first one.

use std::sync::Arc;

use super::pages::{TABLES, order_of, page_of};
use super::reader::PAGE_OF_BLOBS;
use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::test_databases::address_in;
use crate::model::clock::ManualClock;
use crate::model::time::Instant;

/// How SQLite finds the rows of a statement with so many values.
async fn plan(session: &mut Session, sql: &str, values: usize) -> Vec<String> {
    let values = vec![Value::Text(String::new()); values];
    let rows = session.fetch(format!("EXPLAIN QUERY PLAN {sql}"), values).await;
    rows.unwrap().iter().map(|row| row.text(3).unwrap()).collect()
}

#[tokio::test]
async fn no_page_walks_past_the_rows_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let address = address_in(directory.path());
    let clock = Arc::new(ManualClock::at(Instant::from_micros(0)));
    let catalog = Catalog::open(&address, clock).await.unwrap();
    let mut session = catalog.database.write().await.unwrap();
    for table in TABLES {
        let order = order_of(table);
        let reaches = match order.as_slice() {
            [] => {
                assert_eq!(table.key, 1, "{}: a person has one row", table.name);
                continue;
            }
            [column] => format!("(person=? AND {column}>?)"),
            columns => {
                let marks = vec!["?"; columns.len()].join(",");
                format!("(person=? AND ({})>({marks}))", columns.join(","))
            }
        };
        let sql = table.select(&page_of(table, false));
        let found = plan(&mut session, &sql, 2 + order.len()).await;
        assert!(
            matches!(found.as_slice(), [way] if way.starts_with("SEARCH") && way.ends_with(&reaches)),
            "{}: {found:?}",
            table.name
        );
    }
    let found = plan(&mut session, PAGE_OF_BLOBS, 4).await;
    assert!(
        matches!(
            found.as_slice(),
            [pieces, blobs] if pieces.ends_with("(person=? AND (data_type,piece)>(?,?))")
                && blobs.ends_with("(piece=?)")
        ),
        "{found:?}"
    );
    session.rollback().await.unwrap();
}
