//! Names that several things have.

use serde_json::{Value, json};

use super::rows;
use crate::harness::{Person, heart_rate, id, person};

/// Three moments on two days.
async fn beating(person: &Person) {
    let beat = |n: u32, day: u32, value: f64| heart_rate(id(n), &format!("2024-05-0{day}T10:00:00Z"), value);
    let beats = [beat(1, 1, 60.5), beat(2, 1, 60.5), beat(3, 2, 70.25)];
    person.records("HeartRate", &beats).await;
}

fn days(of: [(&str, u32); 2]) -> Vec<Value> {
    let row = |(day, n)| json!({"day": day, "start_date": format!("{day}T10:00:00Z"), "n": n});
    of.map(row).to_vec()
}

#[tokio::test]
async fn keys_of_groups_may_be_converted_from_one_column() {
    let person = person();
    beating(&person).await;
    let expected = days([("2024-05-01", 2), ("2024-05-02", 1)]);
    for text in [
        "SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate GROUP BY 1, 2 \
         ORDER BY 1",
        "SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY day, start_date ORDER BY day",
        "SELECT start_date::date AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY start_date::date, start_date ORDER BY start_date::date",
        "SELECT (start_date::date) AS day, start_date, count(*) AS n FROM heart_rate GROUP BY ALL ORDER BY day",
        "SELECT * FROM (SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY 1, 2) AS t ORDER BY day",
        "WITH t AS (SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY 1, 2) SELECT day, start_date, n FROM t ORDER BY day",
    ] {
        assert_eq!(rows(&person, text).await, expected, "{text}");
    }
    let several = "SELECT CAST(value AS BIGINT) AS whole, CAST(value AS TEXT) AS text, value, count(*) AS n \
                   FROM heart_rate WHERE CAST(value AS BIGINT) > 60 GROUP BY 1, 2, 3 \
                   HAVING CAST(value AS BIGINT) < 100";
    let expected = [json!({"whole": 70, "text": "70.25", "value": 70.25, "n": 1})];
    assert_eq!(rows(&person, several).await, expected);
    let zones = "SELECT start_date AT TIME ZONE 'Europe/Berlin' AS there, start_date, count(*) AS n \
                 FROM heart_rate GROUP BY 1, 2 ORDER BY 2";
    let found = rows(&person, zones).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0]["there"], json!("2024-05-01T12:00:00+02:00"));
}

/// The columns that are computed have the names that they have without such keys.
#[tokio::test]
async fn keys_of_one_column_do_not_change_the_names_of_columns() {
    let person = person();
    beating(&person).await;
    let names = async |text: &str| -> Vec<String> {
        let found = rows(&person, text).await;
        found[0].as_object().unwrap().keys().cloned().collect()
    };
    let plain =
        "SELECT CAST(start_date AS DATE), max(CAST(start_date AS DATE)), count(*) FROM heart_rate GROUP BY 1";
    let plain = names(plain).await;
    let both = "SELECT CAST(start_date AS DATE), max(CAST(start_date AS DATE)), count(*), start_date \
                FROM heart_rate GROUP BY 1, 4";
    let both = names(both).await;
    assert_eq!(both[..3], plain[..]);
    assert_eq!(both[3], "start_date");
}
