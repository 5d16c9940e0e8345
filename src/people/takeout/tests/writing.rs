//! How the content of an archive is written, whatever happens meanwhile.

use super::orders::Bench;
use crate::people::takeout::format::{ACCESS_LOG, DATA_TYPES, FILES, SHARES, SOURCES};
use crate::people::takeout::zip::LOCAL_HEADER;

/// The version of ZIP in which lengths have 64 bits.
const WIDE_VERSION: u16 = 45;

#[tokio::test]
async fn every_list_has_room_for_more_than_four_gigabytes() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let path = bench.directory.path().join("archive.zip");
    bench.exports.save(bench.person, &path, &|_, _| {}).await.unwrap();
    let archive = std::fs::read(&path).unwrap();
    for name in [FILES, ACCESS_LOG, DATA_TYPES, SHARES, SOURCES] {
        let mut places = archive.windows(name.len());
        let place = places.position(|bytes| bytes == name.as_bytes()).unwrap();
        let head = &archive[place - 30..];
        assert_eq!(head[..4], LOCAL_HEADER.to_le_bytes(), "{name}");
        assert_eq!(head[4..6], WIDE_VERSION.to_le_bytes(), "{name}");
    }
}
