//! The objects of a body that is refused at the commit are gone with it.

use crate::harness::{Setup, heart_rate, id, instant};

#[tokio::test]
async fn a_large_body_that_is_refused_leaves_no_objects() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let body = |value: u32| -> Vec<_> {
        (0..10_000)
            .map(|n| heart_rate(id(n), &instant(n), value))
            .collect()
    };
    let sent = |value: u32| {
        person
            .lines("HeartRate", &body(value))
            .header("idempotency-key", "once")
    };
    sent(1).await.must_be(201);
    let objects = server.objects();
    assert!(!objects.is_empty());
    for value in 2..5 {
        // The key came with another request before, which only the commit finds.
        sent(value).await.must_be(422);
        assert_eq!(server.objects(), objects);
    }
    // A repetition is answered and stores nothing.
    sent(1).await.must_be(201);
    assert_eq!(server.objects(), objects);
}
