use super::*;

fn text(value: &str) -> Comparand {
    Comparand::Text(value.to_owned())
}

#[test]
fn rule_5_4_splits_at_the_first_operator_only() {
    let condition = parse("note:tea: green").unwrap();
    assert_eq!(
        condition,
        Condition {
            field: "note".into(),
            operator: Comparison::Equal,
            value: text("tea: green")
        }
    );
    assert_eq!(parse("value>=4").unwrap().operator, Comparison::GreaterOrEqual);
    assert_eq!(
        parse("a!=b=c").unwrap(),
        Condition {
            field: "a".into(),
            operator: Comparison::NotEqual,
            value: text("b=c")
        }
    );
}

#[test]
fn rule_5_4_a_field_is_all_that_stands_before_the_operator() {
    assert_eq!(parse("My \"Field.x\":v").unwrap().field, "My \"Field.x\"");
    let all: Vec<_> = prefixes("a.b.c").collect();
    assert_eq!(all, [("a.b.c", None), ("a.b", Some("c")), ("a", Some("b.c"))]);
}

#[test]
fn rule_5_4_null_is_null_unless_quoted() {
    assert_eq!(parse("note:null").unwrap().value, Comparand::Null);
    assert_eq!(parse("note:\"null\"").unwrap().value, text("null"));
    assert_eq!(parse("note~null").unwrap().value, text("null"));
}

#[test]
fn rule_5_4_refuses_what_is_no_condition() {
    assert!(matches!(parse("value"), Err(FilterError::NoOperator(_))));
    assert!(matches!(parse(":x"), Err(FilterError::NoField(_))));
    assert!(matches!(parse("a!b"), Err(FilterError::NoOperator(_))));
    assert_eq!(
        parse(&format!("a:{}", "x".repeat(MAX_FILTER_BYTES))),
        Err(FilterError::TooLong)
    );
    assert_eq!(
        parse_all(&vec!["a:b".to_owned(); 21]),
        Err(FilterError::TooMany(21))
    );
}
