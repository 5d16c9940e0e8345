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
    let frame = |query: &str| read(query).0.unwrap().packing().frame;
    assert_eq!(frame("output=arrow"), FrameCompression::None);
    assert_eq!(frame("output=arrow&compression=none"), FrameCompression::None);
    assert_eq!(frame("output=arrowraw&compression=lz4"), FrameCompression::Lz4);
    assert_eq!(frame("output=parquet&compression=lz4"), FrameCompression::None);
}
