//! Writes dictionary columns in which every row holds the same text.
//!
//! Usually one device wrote all rows of a body, and what it says about itself is the same in each. Parquet's
//! own writer would look the text up for every row; its pages are known in advance, so they are built
//! directly.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, DictionaryArray, Int32Array, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Fields, Int32Type};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, LevelHistogram, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

/// The footer would hold only the beginning of a longer text.
const LONGEST_TEXT: usize = 64;

/// For each leaf of a column, in the order of the file, the text that all its rows hold.
pub(super) fn words(column: &ArrayRef) -> Vec<Option<&str>> {
    let mut found = Vec::new();
    add_words(column, true, &mut found);
    found
}

fn add_words<'c>(column: &'c ArrayRef, is_there: bool, found: &mut Vec<Option<&'c str>>) {
    match column.as_struct_opt() {
        Some(members) => {
            let is_there = is_there && members.null_count() == 0;
            for member in members.columns() {
                add_words(member, is_there, found);
            }
        }
        None => match word(column).filter(|_| is_there) {
            Some(word) => found.push(Some(word)),
            None => found.resize(found.len() + leaves(column.data_type()), None),
        },
    }
}

fn word(column: &ArrayRef) -> Option<&str> {
    let words = column.as_dictionary_opt::<Int32Type>()?;
    let texts = words.values().as_string_opt::<i32>()?;
    let (first, others) = words.keys().values().split_first()?;
    if words.keys().null_count() > 0 || !(others.iter().all(|other| other == first) || are_alike(texts)) {
        return None;
    }
    let word = usize::try_from(*first).ok()?;
    let text = (word < texts.len() && texts.is_valid(word)).then(|| texts.value(word));
    text.filter(|text| text.len() <= LONGEST_TEXT)
}

/// Whether a dictionary has one text only, as when columns of the same word were put together.
fn are_alike(texts: &StringArray) -> bool {
    let first = texts.iter().next().flatten();
    first.is_some() && texts.iter().all(|text| text == first)
}

fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(members) => members.iter().map(|member| leaves(member.data_type())).sum(),
        DataType::List(item) => leaves(item.data_type()),
        _ => 1,
    }
}

/// `rows` rows of the word in one leaf of a column, and a field that has only this leaf.
pub(super) fn rows_of(
    field: &Field,
    leaf: usize,
    word: &str,
    rows: usize,
) -> Result<(Field, ArrayRef), ArrowError> {
    let DataType::Struct(members) = field.data_type() else {
        let word = Arc::new(StringArray::from_iter_values([word]));
        let words = DictionaryArray::<Int32Type>::try_new(Int32Array::from_value(0, rows), word)?;
        return Ok((field.clone(), Arc::new(words)));
    };
    let mut before = 0;
    for member in members {
        let after = before + leaves(member.data_type());
        if leaf < after {
            let (member, column) = rows_of(member, leaf - before, word, rows)?;
            let members = Fields::from(vec![member]);
            let field = field.clone().with_data_type(DataType::Struct(members.clone()));
            return Ok((
                field,
                Arc::new(StructArray::try_new(members, vec![column], None)?),
            ));
        }
        before = after;
    }
    let error = format!("column {} has no leaf {leaf}", field.name());
    Err(ArrowError::InvalidArgumentError(error))
}

/// The chunk of a leaf that holds the word in `rows` rows, `page_rows` of them per page, as Parquet's writer
/// would write it.
pub(super) fn chunk(
    leaf: &ColumnDescPtr,
    word: &str,
    rows: usize,
    page_rows: usize,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let dictionary = pages.write_page(dictionary(word))?;
    let (mut compressed, mut uncompressed) = (dictionary.compressed_size, dictionary.uncompressed_size);
    let mut offsets = OffsetIndexBuilder::new();
    let (mut begun, mut count) = (0, 0);
    while begun < rows {
        let in_page = page_rows.min(rows - begun);
        let page = pages.write_page(data_page(leaf, in_page))?;
        offsets.append_row_count(in_page as i64);
        offsets.append_unencoded_byte_array_data_bytes(Some((in_page * word.len()) as i64));
        offsets.append_offset_and_size(page.offset as i64, page.compressed_size as i32);
        compressed += page.compressed_size;
        uncompressed += page.uncompressed_size;
        begun += in_page;
        count += 1;
    }
    pages.close()?;
    let counted = |page_type, encoding, count| PageEncodingStats {
        page_type,
        encoding,
        count,
    };
    let metadata = ColumnChunkMetaData::builder(Arc::clone(leaf))
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(vec![
            counted(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            counted(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, count),
        ])
        .set_total_compressed_size(compressed as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_num_values(rows as i64)
        .set_dictionary_page_offset(Some(dictionary.offset as i64))
        .set_data_page_offset(dictionary.bytes_written as i64)
        .set_statistics(statistics(word))
        .set_unencoded_byte_array_data_bytes(Some((rows * word.len()) as i64))
        .set_definition_level_histogram(levels(leaf, rows))
        .build()?;
    let bytes = Bytes::from(sink.into_inner()?);
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: Some(offsets.build()),
    };
    Ok((bytes, close))
}

fn dictionary(word: &str) -> CompressedPage {
    let mut plain = (word.len() as u32).to_le_bytes().to_vec();
    plain.extend_from_slice(word.as_bytes());
    let size = plain.len();
    let page = Page::DictionaryPage {
        buf: plain.into(),
        num_values: 1,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    CompressedPage::new(page, size)
}

/// A page which says that `rows` rows have a value, the first in the dictionary. That index takes no bits.
fn data_page(leaf: &ColumnDescriptor, rows: usize) -> CompressedPage {
    let mut content = Vec::new();
    if leaf.max_def_level() > 0 {
        let mut run = run(rows);
        run.push(leaf.max_def_level() as u8);
        content.extend_from_slice(&(run.len() as u32).to_le_bytes());
        content.extend_from_slice(&run);
    }
    let bits = 0;
    content.push(bits);
    content.extend_from_slice(&run(rows));
    let size = content.len();
    let page = Page::DataPage {
        buf: content.into(),
        num_values: rows as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    CompressedPage::new(page, size)
}

/// The head of a run: its length in groups of seven bits, with a bit that marks it as a run.
fn run(rows: usize) -> Vec<u8> {
    let (mut rest, mut head) = (rows << 1, Vec::new());
    while rest >= 0x80 {
        head.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    head.push(rest as u8);
    head
}

fn statistics(word: &str) -> Statistics {
    let word = || Some(ByteArray::from(word));
    let values = ValueStatistics::new(word(), word(), None, Some(0), false);
    Statistics::ByteArray(values.with_min_is_exact(true).with_max_is_exact(true))
}

/// How many rows have which definition level: all have the highest.
fn levels(leaf: &ColumnDescriptor, rows: usize) -> Option<LevelHistogram> {
    let mut levels = LevelHistogram::try_new(leaf.max_def_level())?;
    levels.increment_by(leaf.max_def_level(), rows as i64);
    Some(levels)
}
