use super::*;
use crate::model::faults::{Fault, LocPart};

fn read(query: &str) -> (Option<AnswerForm>, Vec<String>) {
    let mut params = Params::parse(query);
    let form = AnswerForm::of_records(&mut params);
    let place = |fault: &Fault| {
        let parts = fault.loc.iter().map(|part| match part {
            LocPart::Name(name) => name.clone(),
            LocPart::Index(index) => index.to_string(),
        });
        parts.collect::<Vec<_>>().join(".")
    };
    (form, params.into_faults().iter().map(place).collect())
}

fn packed(query: &str, accepts: &str) -> Packing {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, accepts.parse().unwrap());
    read(query).0.unwrap().packing(&headers)
}

#[test]
fn output_stands_in_for_format_and_never_against_it() {
    assert_eq!(read("").0.unwrap().method, OutputMethod::Jstable);
    assert_eq!(read("format=csv").0.unwrap().method, OutputMethod::Csv);
    assert_eq!(read("output=parquet").0.unwrap().method, OutputMethod::Parquet);
    assert_eq!(read("output=csv&format=csv").1, Vec::<String>::new());
    assert_eq!(read("output=ndjson&format=csv").1.len(), 1);
}

#[test]
fn columns_are_named_once() {
    assert!(read("columns=a,b").0.unwrap().columns.is_some());
    assert!(read("").0.unwrap().columns.is_none());
    assert_eq!(read("columns=a&columns=b,a").1.len(), 1);
}

#[test]
fn arrow_is_compressed_on_the_way_for_those_who_undo_it_and_inside_for_those_who_ask() {
    let frame = |packing: Packing| (packing.frame, packing.whole);
    let none = FrameCompression::None;
    assert_eq!(frame(packed("output=arrow", "gzip")), (none, false));
    assert_eq!(frame(packed("output=arrow", "gzip, zstd;q=0.5")), (none, true));
    assert_eq!(frame(packed("output=arrow", "zstd;q=0")), (none, false));
    assert_eq!(
        frame(packed("output=arrow&compression=none", "zstd")),
        (none, false)
    );
    let lz4 = packed("output=arrowraw&compression=lz4", "zstd");
    assert_eq!(frame(lz4), (FrameCompression::Lz4, false));
    assert_eq!(
        frame(packed("output=parquet&compression=lz4", "zstd")),
        (none, false)
    );
}
