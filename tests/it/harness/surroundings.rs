//! What the surroundings of the tests may lack.

/// Says that the caller goes on without what is `missing` here. Where nothing may be skipped, it fails.
#[track_caller]
pub(crate) fn skip_without(missing: &str) {
    let all_are_required = std::env::var("ALMANAC_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(
        !all_are_required,
        "ALMANAC_TEST_REQUIRE_ALL lets nothing be skipped: {missing}"
    );
    println!("skipped: {missing}");
}
