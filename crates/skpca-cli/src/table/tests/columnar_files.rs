//! Parquet and Arrow files with all types that other programs write, and damaged files.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch,
    StringArray, TimestampSecondArray, UInt8Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;

use super::*;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn parquet_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn arrow_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn stream_bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// The same batch as a file of each kind.
fn files(batch: &RecordBatch) -> [(&'static str, Vec<u8>); 3] {
    [("a.parquet", parquet_bytes(batch)), ("a.feather", arrow_bytes(batch)), ("a.arrow", stream_bytes(batch))]
}

fn floats(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn mixed() -> RecordBatch {
    let categories: DictionaryArray<Int8Type> = vec!["u", "v"].into_iter().collect();
    let decimals = Decimal128Array::from(vec![125, -50]).with_precision_and_scale(5, 2).unwrap();
    batch(vec![
        ("kind", Arc::new(categories) as ArrayRef),
        ("f4", Arc::new(Float32Array::from(vec![0.5, 1.5]))),
        ("i8", Arc::new(Int64Array::from(vec![-1, 2]))),
        ("when", Arc::new(TimestampSecondArray::from(vec![0, 1]))),
        ("u1", Arc::new(UInt8Array::from(vec![200, 201]))),
        ("flag", Arc::new(BooleanArray::from(vec![true, false]))),
        ("price", Arc::new(decimals)),
        ("note", Arc::new(StringArray::from(vec![Some("x"), None]))),
    ])
}

#[test]
fn numbers_of_every_type() {
    let options = ReadOptions { drop: names(&["when"]), ignore: names(&["note"]), ..labelled("kind") };
    for (name, bytes) in files(&mixed()) {
        let table = read_bytes(name, &bytes, &options).unwrap();
        assert_eq!(table.names, Some(names(&["f4", "i8", "u1", "flag", "price"])), "{name}");
        assert_eq!(table.values, [0.5, -1.0, 200.0, 1.0, 1.25, 1.5, 2.0, 201.0, 0.0, -0.5], "{name}");
        assert_eq!(table.label, Some(names(&["u", "v"])), "{name}");
    }
}

#[test]
fn a_dictionary_of_numbers_is_numbers() {
    let keys = arrow_array::Int8Array::from(vec![0, 1, 0]);
    let coded = DictionaryArray::new(keys, Arc::new(Int64Array::from(vec![10, 20])));
    for (name, bytes) in files(&batch(vec![("x", Arc::new(coded) as ArrayRef)])) {
        assert_eq!(read_bytes(name, &bytes, &ReadOptions::default()).unwrap().values, [10., 20., 10.], "{name}");
    }
}

#[test]
fn a_null_label_is_empty_text() {
    let options = ReadOptions { drop: names(&["when", "kind"]), ..labelled("note") };
    for (name, bytes) in files(&mixed()) {
        assert_eq!(read_bytes(name, &bytes, &options).unwrap().label, Some(names(&["x", ""])), "{name}");
    }
}

#[test]
fn other_types_are_named() {
    let options = ReadOptions { drop: names(&["kind"]), ..Default::default() };
    for (name, bytes) in files(&mixed()) {
        let message = read_bytes(name, &bytes, &options).unwrap_err();
        let start = format!("{name}: column 'when' has type Timestamp(");
        assert!(message.starts_with(&start), "{message}");
        let advice = "), expected numbers; if it holds classes use --label when, to leave it out --drop when";
        assert!(message.ends_with(advice), "{message}");
    }
    let spaced =
        batch(vec![("it's a", Arc::new(StringArray::from(vec!["x"])) as ArrayRef), ("b", floats(&[Some(1.0)]))]);
    let message = read_bytes("a.parquet", &parquet_bytes(&spaced), &ReadOptions::default()).unwrap_err();
    let expected = r"a.parquet: column 'it's a' has type Utf8, expected numbers; if it holds classes use --label 'it'\''s a', to leave it out --drop 'it'\''s a'";
    assert_eq!(message, expected);
}

#[test]
fn missing_and_infinite_values_have_a_row() {
    let column = |bad| floats(&[vec![Some(1.0); 12], vec![bad]].concat());
    for (bad, what) in [
        (None, "missing value (--skip-bad skips such rows; models fitted with --missing median fill them)"),
        (Some(f64::NAN), "missing value (--skip-bad skips such rows; models fitted with --missing median fill them)"),
        (Some(f64::INFINITY), "'inf' is not finite"),
    ] {
        for (name, bytes) in files(&batch(vec![("x", column(bad))])) {
            let message = read_bytes(name, &bytes, &ReadOptions::default()).unwrap_err();
            assert_eq!(message, format!("{name} row 12 (from 0), column 'x': {what}"));
        }
    }
}

#[test]
fn tables_without_rows_or_names_of_their_own() {
    for (name, bytes) in files(&batch(vec![("x", floats(&[]))])) {
        assert_eq!(read_bytes(name, &bytes, &ReadOptions::default()).unwrap_err(), format!("{name}: no rows"));
        assert_eq!(read_bytes(name, &[], &ReadOptions::default()).unwrap_err(), format!("{name} is empty"));
        let absent = read_bytes(name, &bytes, &labelled("y")).unwrap_err();
        assert_eq!(absent, format!("{name} has no column 'y'; it has x"));
    }
    let twice = batch(vec![("x", floats(&[Some(1.0)])), ("x", floats(&[Some(2.0)]))]);
    let message = read_bytes("a.arrow", &arrow_bytes(&twice), &ReadOptions::default()).unwrap_err();
    assert_eq!(message, "a.arrow: column 'x' appears twice, expected distinct names");
}

#[test]
fn truncated_files_are_rejected() {
    let whole = batch(vec![("x", floats(&[Some(1.0), Some(2.0)]))]);
    for (name, bytes) in [("a.parquet", parquet_bytes(&whole)), ("a.feather", arrow_bytes(&whole))] {
        for cut in 1..bytes.len() {
            let message = read_bytes(name, &bytes[..cut], &ReadOptions::default()).unwrap_err();
            assert!(message.starts_with(&format!("{name}: not a valid ")), "{cut}: {message}");
        }
    }
    let old = read_bytes("a.feather", b"FEA1....FEA1", &ReadOptions::default()).unwrap_err();
    assert_eq!(old, "a.feather: not a valid Arrow file: it is Feather version 1, expected version 2");
}

#[test]
fn a_dictionary_that_claims_more_values_than_it_has() {
    let values = (0..300).map(f64::from).map(Some).collect::<Vec<_>>();
    let mut bytes = parquet_bytes(&batch(vec![("x", floats(&values))]));
    // The number of values, a zigzag-encoded i32, and the encoding PLAIN. The number is set to the maximum of two
    // bytes.
    let at = bytes.windows(5).position(|window| window == [0x15, 0xd8, 0x04, 0x15, 0x00]).unwrap();
    bytes[at + 2] = 0x7f;
    let message = read_bytes("a.parquet", &bytes, &ReadOptions::default()).unwrap_err();
    assert!(message.ends_with("a dictionary with fewer values than it claims"), "{message}");
}

#[test]
fn damaged_bytes_never_panic() {
    let whole = batch(vec![("x", floats(&[None, Some(2.0)]))]);
    for (name, bytes) in files(&whole) {
        for position in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[position] = 0xff;
            // Either result is fine: some bytes are padding, some are values.
            let _ = read_bytes(name, &bytes, &ReadOptions::default());
        }
    }
}

#[test]
fn a_panic_of_a_decoder_is_an_error() {
    let error = columnar::contain_panic::<Table>("a.arrow", "Arrow", || panic!("a bug in a library")).unwrap_err();
    assert_eq!(error.to_string(), "a.arrow: not a valid Arrow file: inconsistent contents");
}
