//! What a request may say about the form of its answer, parameter by parameter.

use super::*;

fn read(query: &str) -> (Option<AnswerForm>, Vec<String>) {
    let mut params = Params::parse(query);
    let form = AnswerForm::of_records(&mut params);
    let places = params
        .into_faults()
        .into_iter()
        .map(|fault| format!("{:?}", fault.loc));
    (form, places.collect())
}

fn packed(query: &str, accept: &str) -> BufferCompression {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept.parse().unwrap());
    read(query).0.unwrap().packing(&headers).buffers
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
fn arrow_is_compressed_inside_for_those_who_ask() {
    let buffers_of = |query: &str| packed(query, "*/*");
    assert_eq!(buffers_of("output=arrow"), BufferCompression::None);
    assert_eq!(
        buffers_of("output=arrow&compression=none"),
        BufferCompression::None
    );
    assert_eq!(
        buffers_of("output=arrowraw&compression=lz4"),
        BufferCompression::Lz4
    );
    assert_eq!(
        buffers_of("output=parquet&compression=lz4"),
        BufferCompression::None
    );
}

#[test]
fn arrow_is_compressed_inside_for_those_who_say_that_their_reader_undoes_it() {
    const FILE: &str = "application/vnd.apache.arrow.file";
    for (accept, compression) in [
        (FILE.to_owned(), BufferCompression::None),
        (format!("{FILE}; codecs=zstd"), BufferCompression::Zstd),
        (format!("{FILE};codecs=\"lz4, zstd\""), BufferCompression::Lz4),
        (
            format!("text/csv, {FILE}; q=0.9; codecs=\"snappy,ZSTD\""),
            BufferCompression::Zstd,
        ),
        (format!("{FILE}; codecs=\"snappy\""), BufferCompression::None),
        (
            "application/vnd.apache.arrow.stream; codecs=zstd".to_owned(),
            BufferCompression::None,
        ),
        // No weight is the greatest, none at all refuses, and what is no weight asks for nothing.
        (format!("{FILE};codecs=\"lz4\";q=0"), BufferCompression::None),
        (
            format!("{FILE}; q=1, {FILE}; codecs=zstd; q=0.000"),
            BufferCompression::None,
        ),
        (
            format!("{FILE}; codecs=zstd; q=0, {FILE}; codecs=lz4; q=0.001"),
            BufferCompression::Lz4,
        ),
        (
            format!("{FILE}; codecs=zstd; q=0.1, {FILE}; codecs=lz4; q=1"),
            BufferCompression::Lz4,
        ),
        (
            format!("{FILE}; codecs=zstd; Q=0.9, {FILE}; codecs=lz4"),
            BufferCompression::Lz4,
        ),
        (
            format!("{FILE}; codecs=zstd; q=0.5, {FILE}; codecs=lz4; q=0.5"),
            BufferCompression::Zstd,
        ),
        (format!("{FILE}; codecs=zstd; q=much"), BufferCompression::None),
        (format!("{FILE}; codecs=zstd; q=2"), BufferCompression::None),
        (format!("{FILE}; codecs=zstd; q=NaN"), BufferCompression::None),
    ] {
        assert_eq!(packed("output=arrow", &accept), compression, "{accept}");
    }
    let asked = format!("{FILE}; codecs=zstd");
    assert_eq!(
        packed("output=arrow&compression=none", &asked),
        BufferCompression::None
    );
    assert_eq!(
        packed("output=csv", "text/csv; codecs=zstd"),
        BufferCompression::None
    );
}
