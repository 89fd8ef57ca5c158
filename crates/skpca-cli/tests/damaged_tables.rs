//! Tables that are truncated, claim impossible sizes or are too large: an error with exit code 1, never fewer rows,
//! never an abort.

use std::io::Write;
use std::sync::Arc;

use crate::support::{Desk, NAMES, csv, normal, npy};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;

const ROWS: usize = 200;
/// Number of positions at which a file is truncated.
const CUTS: usize = 12;

/// 200 rows of numbers and a text, in two batches.
fn batches() -> Vec<RecordBatch> {
    let rows = normal(1, ROWS, 2);
    rows.chunks(ROWS / 2)
        .map(|part| {
            let column = |k: usize| Arc::new(Float64Array::from_iter_values(part.iter().map(|row| row[k]))) as ArrayRef;
            let note: ArrayRef = Arc::new(StringArray::from(vec!["of no use"; part.len()]));
            RecordBatch::try_from_iter([("a", column(0)), ("b", column(1)), ("note", note)]).unwrap()
        })
        .collect()
}

fn stream(batches: &[RecordBatch], compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn parquet(batches: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batches[0].schema(), None).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    bytes
}

fn fit(table: &str) -> String {
    format!("fit {table} --drop note -o model.skpca --support 4")
}

/// Fits a table that must be rejected, and returns the message.
fn complaint(desk: &Desk, table: &str, bytes: &[u8]) -> String {
    desk.put(table, bytes);
    let run = desk.run(&fit(table));
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{table}, {} bytes: {}", bytes.len(), run.stderr);
    let start = format!("error: {table}");
    run.stderr.strip_prefix(&start).unwrap_or_else(|| panic!("{}", run.stderr)).trim_end().to_string()
}

#[test]
fn a_quote_that_never_closes_is_an_error_where_it_opens() {
    let desk = Desk::new();
    let mut text = "a,b,note\n".to_string();
    for (i, row) in normal(1, ROWS, 2).iter().enumerate() {
        let quote = if i == 5 { "\"" } else { "" };
        text += &format!("{},{},{quote}text\n", row[0], row[1]);
    }
    let open = " line 7: the quote that opens here is never closed";
    assert_eq!(complaint(&desk, "open.csv", text.as_bytes()), open);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    assert_eq!(complaint(&desk, "open.csv.gz", &packed.finish().unwrap()), open);
    let run = desk.feed("fit - --drop note -o model.skpca", text.as_bytes());
    assert_eq!((run.code, run.stderr), (1, format!("error: stdin{open}\n")));
}

/// Two misplaced quotes turn many rows into one, which must not make rows vanish.
#[test]
fn a_quote_closed_by_another_stray_one_is_an_error_too() {
    let desk = Desk::new();
    let text = |first: &str, second: &str| {
        let row = |i: usize| match i {
            5 => format!("1,2,{first}\n"),
            50 => format!("1,2,{second}\n"),
            _ => format!("{i},2,text\n"),
        };
        "a,b,note\n".to_string() + &(0..ROWS).map(row).collect::<String>()
    };
    let stray =
        " line 52: text follows a closing quote; the quote was opened on line 7: is one missing, or not written twice?";
    assert_eq!(complaint(&desk, "stray.csv", text("\"text", "\"text").as_bytes()), stray);
    assert_eq!(complaint(&desk, "stray.csv", text("\"text", "\"text\"").as_bytes()), stray);
    let ragged = " line 7: 4 fields, expected 3; a quoted cell makes one row of lines 7 to 52: is a quote missing?";
    assert_eq!(complaint(&desk, "stray.csv", text("\"text", "\",x").as_bytes()), ragged);
}

#[test]
fn quoted_cells_may_have_many_lines() {
    let desk = Desk::new();
    let row = |i: usize| format!("{i},{},\"one\r\ntwo, \"\"three\"\"\n\n\"\n", i * i);
    desk.put("long.csv", "a,b,note\n".to_string() + &(0..ROWS).map(row).collect::<String>());
    assert!(desk.ok(&fit("long.csv")).contains("trained on   200 rows"));
}

#[test]
fn a_stream_without_its_end_is_an_error() {
    let desk = Desk::new();
    for compression in [None, Some(CompressionType::ZSTD)] {
        let whole = stream(&batches(), compression);
        desk.put("whole.arrow", &whole);
        assert!(desk.ok(&fit("whole.arrow")).contains("trained on   200 rows"));
        // Between messages, where the stream reader itself accepts the end.
        let first = stream(&batches()[..1], compression).len() - 8;
        for cut in [first, whole.len() - 8] {
            let why = complaint(&desk, "cut.arrow", &whole[..cut]);
            assert_eq!(why, ": not a valid Arrow file: it has no end marker; the file seems to be cut short", "{cut}");
        }
        let twice = [whole.clone(), whole].concat();
        let why = complaint(&desk, "twice.arrow", &twice);
        assert!(why.starts_with(": not a valid Arrow file: ") && why.contains("after the end"), "{why}");
    }
    let whole = file(&batches());
    let why = complaint(&desk, "twice.feather", &[whole.clone(), whole].concat());
    assert!(why.starts_with(": not a valid Arrow file: ") && why.contains("after the end"), "{why}");
}

/// Every format, truncated at many positions.
#[test]
fn no_truncated_table_is_read() {
    let desk = Desk::new();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(csv(&["a", "b", "note"], &normal(1, ROWS, 3)).as_bytes()).unwrap();
    let tables = [
        ("cut.arrow", stream(&batches(), None)),
        ("cut.feather", file(&batches())),
        ("cut.parquet", parquet(&batches())),
        ("cut.csv.gz", packed.finish().unwrap()),
    ];
    for (name, bytes) in tables {
        for cut in (10..bytes.len()).step_by(bytes.len() / CUTS).chain([bytes.len() - 1]) {
            complaint(&desk, name, &bytes[..cut]);
        }
    }
    let bytes = npy(&normal(1, ROWS, 2));
    for cut in (10..bytes.len()).step_by(bytes.len() / CUTS).chain([bytes.len() - 1]) {
        desk.put("cut.npy", &bytes[..cut]);
        let run = desk.run("fit cut.npy -o model.skpca --support 4");
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{cut}: {}", run.stderr);
    }
}

#[test]
fn an_array_of_no_rows_and_any_number_of_columns() {
    let desk = Desk::new();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904), }";
    let bytes = [b"\x93NUMPY\x01\x00", &118_u16.to_le_bytes()[..], format!("{header:<117}\n").as_bytes()].concat();
    assert_eq!(complaint(&desk, "wide.npy", &bytes), ": no rows");
}

/// The length in front of a compressed buffer is checked before allocating.
#[test]
fn a_compressed_buffer_that_claims_petabytes_is_an_error() {
    let desk = Desk::new();
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 4096]));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let prefix = (8 * 4096_i64).to_le_bytes();
    for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let bytes = stream(std::slice::from_ref(&batch), Some(compression));
        let at = bytes.windows(8).position(|window| window == prefix).unwrap();
        for claim in [1_i64 << 40, 1 << 50, 1 << 62, i64::MAX] {
            let mut bytes = bytes.clone();
            bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            desk.put("claims.arrow", &bytes);
            let run = desk.run("fit claims.arrow -o model.skpca");
            assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{claim}");
            assert!(run.stderr.starts_with("error: claims.arrow: "), "{}", run.stderr);
        }
    }
}

/// A process limited to 70 MB, half of which it needs to start, reads tables of 60 MB for a method that needs them in
/// memory.
#[test]
fn a_table_larger_than_the_memory_is_an_error() {
    const COLUMNS: usize = 25;
    const MANY: usize = 300_000;
    let desk = Desk::new();
    let header: Vec<String> = (0..COLUMNS).map(|k| format!("c{k}")).collect();
    desk.put("large.csv", header.join(",") + "\n" + &("1,".repeat(COLUMNS - 1) + "1\n").repeat(MANY));
    let shape = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({MANY}, {COLUMNS}), }}");
    let head = [b"\x93NUMPY\x01\x00", &118_u16.to_le_bytes()[..], format!("{shape:<117}\n").as_bytes()].concat();
    desk.put("large.npy", [head, vec![1; MANY * COLUMNS]].concat());
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0; MANY]));
    let batch = RecordBatch::try_from_iter(header.iter().map(|name| (name, column.clone()))).unwrap();
    desk.put("large.parquet", parquet(std::slice::from_ref(&batch)));
    desk.put("large.arrow", stream(std::slice::from_ref(&batch), Some(CompressionType::ZSTD)));
    desk.put("large.feather", file(std::slice::from_ref(&batch)));
    for table in ["large.csv", "large.npy", "large.parquet", "large.arrow", "large.feather"] {
        let words = format!("fit {table} -o model.skpca --method exact --threads 1");
        let run = desk.shell("ulimit -v 70000", &words, "");
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{table}: {}", run.stderr);
        assert!(run.stderr.starts_with(&format!("error: {table}: ")), "{}", run.stderr);
        assert!(run.stderr.contains("of memory"), "{}", run.stderr);
    }
}

/// An endless line must not be read until the memory is full.
#[test]
fn a_line_larger_than_the_memory_is_an_error() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 40, 3)));
    let run =
        desk.shell("ulimit -v 150000; cat data.csv /dev/zero | { true", "fit - -o model.skpca --threads 1", "; }");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    assert!(run.stderr.starts_with("error: stdin: "), "{}", run.stderr);
}
