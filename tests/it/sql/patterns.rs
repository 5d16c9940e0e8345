//! What patterns find: what they say, and nothing of null.

use serde_json::json;

use super::{SQL, rows};
use crate::harness::{person, texts};

#[tokio::test]
async fn a_backslash_in_a_regular_expression_is_what_it_says() {
    let person = person();
    for (condition, expected) in [
        (r"c ~ '\\'", vec![r"a\b"]),
        (r"c ~ '\x5c'", vec![r"a\b"]),
        (r"c ~ 'a\\b'", vec![r"a\b"]),
        (r"c ~ '^a\\'", vec![r"a\b"]),
        (r"c ~ '\\b$'", vec![r"a\b"]),
        (r"c ~ '^a\\b$'", vec![r"a\b"]),
        (r"c ~ '0|\\'", vec!["100%", r"a\b"]),
        (r"c ~ '^(a\\b|ab)$'", vec![r"a\b", "ab"]),
        (r"c !~ '\\'", vec!["100%", "ab"]),
        (r"c ~* 'A\\'", vec![r"a\b"]),
        (r"c ~* '^A\\B$'", vec![r"a\b"]),
        (r"c !~* 'A\\'", vec!["100%", "ab"]),
        (r"regexp_like(c, 'a\\b')", vec![r"a\b"]),
        (r"regexp_like(c, 'A\\B', 'i')", vec![r"a\b"]),
        (r"NOT regexp_like(c, '\\')", vec!["100%", "ab"]),
    ] {
        let text = format!(
            r"SELECT c FROM (VALUES ('a\b'), ('100%'), ('ab'), (NULL)) AS v(c) WHERE {condition} ORDER BY c"
        );
        assert_eq!(texts(&rows(&person, &text).await, "c"), expected, "{text}");
    }
}

#[tokio::test]
async fn whether_null_is_like_anything_is_unknown() {
    let person = person();
    for (condition, expected) in [
        ("c ~ '.*'", 1),
        ("NOT (c ~ '.*')", 0),
        ("(c ~ '.*') IS NULL", 1),
        ("NOT (c ~* '.*')", 0),
        ("c !~ '.*'", 0),
        ("NOT (c !~ '.*')", 1),
        ("(c !~ '.*') IS NULL", 1),
        ("NOT regexp_like(c, '.*')", 0),
        ("NOT (c ~ '')", 0),
    ] {
        let words = "(VALUES ('x'), (NULL)) AS v(c)";
        let text = format!("SELECT count(*) AS kept FROM {words} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
        // The condition says the same as a value.
        let text = format!(
            "SELECT count(*) AS kept FROM (SELECT {condition} AS holds FROM {words}) AS h WHERE holds"
        );
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
    let body = json!({
        "query": "SELECT count(*) AS kept FROM (VALUES ('x'), (NULL)) AS v(c) WHERE NOT (c ~ $1)",
        "parameters": [".*"],
    });
    assert_eq!(
        person.post(SQL, &body).await.must_be(200).rows(),
        [json!({"kept": 0})]
    );
}

#[tokio::test]
async fn what_is_similar_is_so_as_a_whole() {
    let person = person();
    for (condition, expected) in [
        ("c SIMILAR TO 'a%'", vec![r"a\b", "ab"]),
        ("c NOT SIMILAR TO 'a%'", vec!["100%"]),
        ("c SIMILAR TO 'a'", vec![]),
        ("c SIMILAR TO 'ab'", vec!["ab"]),
        ("c SIMILAR TO 'a.'", vec![]),
        ("c SIMILAR TO '%'", vec!["100%", r"a\b", "ab"]),
        ("c SIMILAR TO '(ab|10)_*%'", vec!["100%", "ab"]),
        (r"c SIMILAR TO '%\%'", vec!["100%"]),
        ("c SIMILAR TO '%#%' ESCAPE '#'", vec!["100%"]),
        (r"c SIMILAR TO 'a\\b'", vec![r"a\b"]),
        (r"c SIMILAR TO 'a\b' ESCAPE '#'", vec![r"a\b"]),
        ("c SIMILAR TO '[0-9]+%'", vec!["100%"]),
    ] {
        let text = format!(
            r"SELECT c FROM (VALUES ('a\b'), ('100%'), ('ab'), (NULL)) AS v(c) WHERE {condition} ORDER BY c"
        );
        assert_eq!(texts(&rows(&person, &text).await, "c"), expected, "{text}");
    }
    let text = "SELECT count(*) AS kept FROM (VALUES ('x'), (NULL)) AS v(c) WHERE (c SIMILAR TO '%') IS NULL";
    assert_eq!(rows(&person, text).await, [json!({"kept": 1})]);
    let body = json!({"query": "SELECT 'abc' SIMILAR TO $1 AS is_similar", "parameters": ["a%"]});
    assert_eq!(
        person.post(SQL, &body).await.must_be(200).rows(),
        [json!({"is_similar": true})]
    );
}
