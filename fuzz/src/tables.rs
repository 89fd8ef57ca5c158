//! Tables: two bytes choose the format and the options, the rest is the file.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Packing, ZstdLevel};
use parquet::file::properties::WriterProperties;
use skpca::Random;

use crate::choices::{self, odd, one_in};
use crate::table::{self, ReadOptions, Source, Survey};

const EXTENSIONS: [&str; 8] = ["csv", "tsv", "csv.gz", "txt.gz", "parquet", "arrow", "feather", "npy"];
/// Number of rows after which reading stops, since a few bytes can decode to very many rows.
const ENOUGH: usize = 200_000;

fn options(choice: u8) -> ReadOptions {
    let bit = |k: u8| choice >> k & 1 == 1;
    ReadOptions {
        header: !bit(0),
        gaps: bit(1),
        skip_bad: bit(2),
        survey: if bit(3) {
            Survey::LeaveOut
        } else if bit(4) {
            Survey::Refuse
        } else {
            Survey::Not
        },
        label: bit(5).then(|| "b".to_string()),
        label_optional: true,
        all: bit(6),
        categories: if bit(7) { vec!["c".to_string()] } else { Vec::new() },
        ignore: vec!["note".to_string()],
        decimal: (choice == 0x5a).then_some(b','),
        ..ReadOptions::default()
    }
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// The path of the table, in a memory file system if there is one.
fn place(extension: &str) -> PathBuf {
    let folder = FOLDER.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = root.join(format!("skpca-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder of our own");
        folder
    });
    folder.join(format!("table.{extension}"))
}

/// Removes the files of this process.
pub fn clean() {
    if let Some(folder) = FOLDER.get() {
        let _ = fs::remove_dir_all(folder);
    }
}

pub fn run(bytes: &[u8]) {
    let [format, choice, content @ ..] = bytes else { return };
    let file = place(EXTENSIONS[usize::from(*format) % EXTENSIONS.len()]);
    fs::write(&file, content).expect("room for a small file");
    let path = file.to_str().expect("an ASCII path");
    let options = options(*choice);
    if let Ok(mut source) = Source::open(path, &options) {
        let (numbers, texts) = source.widths();
        assert!(numbers > 0, "a table without numbers");
        let _ = (source.names(), source.layout(), source.inputs(), source.label_and_time(), source.share());
        let mut rows = 0;
        while let Ok(Some(block)) = source.next() {
            assert!(block.values.len().is_multiple_of(numbers), "a row was cut");
            let count = block.values.len() / numbers;
            assert_eq!(block.texts.len(), count * texts, "rows and texts");
            let sound = |v: &f64| v.is_finite() || (options.gaps && v.is_nan());
            assert!(block.values.iter().all(sound), "not finite");
            rows += count;
            if rows > ENOUGH {
                return;
            }
        }
        if let Ok(table) = table::read(path, &options) {
            assert!(!table.values.is_empty() && table.values.len() == table.rows * table.columns);
        }
    }
    let _ = table::lies_by_rows(path);
}

fn batch() -> RecordBatch {
    let n = 6;
    let number = |i: usize| (i as f64 * 1.7).sin() * 10.0;
    let columns: [(&str, ArrayRef); 6] = [
        ("a", Arc::new(Float64Array::from_iter_values((0..n).map(number)))),
        ("b", Arc::new(StringArray::from_iter_values((0..n).map(|i| ["u", "v"][i % 2])))),
        ("i", Arc::new(Int32Array::from_iter_values((0..n).map(|i| i as i32 - 2)))),
        ("f", Arc::new(Float32Array::from_iter((0..n).map(|i| (i != 2).then_some(i as f32))))),
        ("t", Arc::new(BooleanArray::from_iter((0..n).map(|i| Some(i % 3 == 0))))),
        ("c", Arc::new(StringArray::from_iter((0..n).map(|i| (i != 3).then_some(["x", "y", "z"][i % 3]))))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).expect("a batch")
}

fn with(format: u8, choice: u8, content: &[u8]) -> Vec<u8> {
    [&[format, choice], content].concat()
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text).expect("memory");
    packer.finish().expect("memory")
}

fn npy(kind: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub fn seeds() -> Vec<Vec<u8>> {
    let csv = b"a,b,i,c\n1.5,u,2,x\n-3e2,v,,y\n\"4\",\"u \"\"q\"\"\",5,\n0,v,1,\"x\ny\"\n";
    let german = b"a;b;i\n1,5;u;2\n-3,25;v;7\n";
    let tsv = b"a\tb\ti\n1\tu\t2\n2\tv\tNA\n";
    let mut all = vec![
        with(0, 2, csv),
        with(0, 0x28, csv),
        with(0, 0, german),
        with(0, 0, b"a,b\n1,2\n3,4\r\n5,6"),
        with(0, 1, b"1,2\n3,4\n"),
        with(1, 0x20, tsv),
        with(2, 8, &packed(csv)),
        with(3, 0x20, &packed(tsv)),
    ];
    let data: Vec<u8> = (0..12).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    for (kind, order, shape, length) in [
        ("<f8", "False", "4, 3", 96),
        ("<f8", "True", "4, 3", 96),
        ("<f4", "False", "8, 3", 96),
        ("|u1", "False", "96,", 96),
        (">i2", "False", "6, 8", 96),
    ] {
        all.push(with(7, 0, &npy(kind, order, shape, &data[..length])));
    }
    let batch = batch();
    for packing in [Packing::UNCOMPRESSED, Packing::SNAPPY, Packing::ZSTD(ZstdLevel::default()), Packing::LZ4_RAW] {
        let mut bytes = Vec::new();
        let properties = WriterProperties::builder().set_compression(packing).build();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
        writer.write(&batch).expect("memory");
        writer.close().expect("memory");
        all.push(with(4, 0x80, &bytes));
        all.push(with(4, 0x4a, &bytes));
    }
    for packing in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let options = IpcWriteOptions::default().try_with_compression(packing).expect("it is built in");
        let mut writer =
            StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options.clone()).expect("a writer");
        (0..2).for_each(|_| writer.write(&batch).expect("memory"));
        all.push(with(5, 0x2a, &writer.into_inner().expect("memory")));
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).expect("a writer");
        writer.write(&batch).expect("memory");
        all.push(with(6, 0x8a, &writer.into_inner().expect("memory")));
    }
    all
}

pub fn make(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    let is_text = |bytes: &[u8]| bytes[0] % 8 < 2;
    let mut options = bytes[1];
    if one_in(random, 3) {
        options = random.below(256) as u8;
    }
    let format = if one_in(random, 40) { random.below(8) as u8 } else { bytes[0] };
    let mut content = bytes.split_off(2);
    match random.below(6) {
        _ if format % 8 == 2 || format % 8 == 3 => {
            // Mutate the contents more often than the compressed bytes.
            if one_in(random, 4) {
                choices::mutate(random, &mut content);
            } else {
                let mut text = text(random);
                if one_in(random, 3) {
                    choices::mutate(random, &mut text);
                }
                content = packed(&text);
            }
        }
        0..3 if is_text(&[format]) => content = text(random),
        3 if format % 8 == 7 => content = array(random),
        _ => choices::mutate(random, &mut content),
    }
    with(format, options, &content)
}

/// A text table with odd cells.
fn text(random: &mut Random) -> Vec<u8> {
    const CELLS: [&str; 40] = [
        "",
        " ",
        "NA",
        "nan",
        "inf",
        "-inf",
        "null",
        "\"\"",
        "\"",
        "\"a",
        "a\"",
        "\"x,y\"",
        "\"x\ny\"",
        "1e400",
        "-1e-400",
        "0x10",
        "1,5",
        "1.000,5",
        "1 000",
        "+3",
        "-",
        ".",
        "1.",
        ".5",
        "1e",
        "1e5",
        "\u{feff}",
        "\u{0}",
        "é",
        "\u{2028}",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "12:30",
        "true",
        "yes",
        "99999999999999999999",
        "0.1",
        "7",
        "'",
        "=1+1",
    ];
    let separator = [",", ";", "\t", "|", " "][[0, 0, 0, 1, 2, 2, 3, 4][random.below(8)]];
    let end = ["\n", "\r\n", "\r", "\n\n"][[0, 0, 0, 0, 1, 1, 2, 3][random.below(8)]];
    let (rows, columns) = (random.below(12), 1 + random.below(5));
    let mut out = String::new();
    if one_in(random, 20) {
        out.push('\u{feff}');
    }
    if !one_in(random, 5) {
        let names = ["a", "b", "c", "note", "a b", "\"q\"", "", "1"];
        let header: Vec<&str> =
            (0..columns).map(|k| if one_in(random, 6) { names[random.below(8)] } else { names[k] }).collect();
        out += &header.join(separator);
        out += end;
    }
    for _ in 0..rows {
        let width = if one_in(random, 30) { random.below(7) } else { columns };
        let cells: Vec<String> = (0..width)
            .map(|_| match random.below(12) {
                0 => CELLS[random.below(CELLS.len())].to_string(),
                1 => odd(random).to_string(),
                2 => format!("{:e}", odd(random)),
                _ => (random.below(200) as f64 / 8.0 - 5.0).to_string(),
            })
            .collect();
        out += &cells.join(separator);
        out += end;
    }
    if one_in(random, 4) {
        out.truncate(out.trim_end().len());
    }
    out.into_bytes()
}

/// An array with an arbitrary header.
fn array(random: &mut Random) -> Vec<u8> {
    let kinds =
        ["<f8", ">f8", "<f4", ">f4", "<f2", "|u1", "|b1", "<i8", ">i4", "<u2", "<c16", "|O", "<U8", "=f8", "<f16", ""];
    let sizes =
        ["0", "1", "2", "3", "12", "96", "4611686018427387904", "18446744073709551615", "-1", "1e3", "99999999999"];
    let dimensions = random.below(4);
    let shape: String = (0..dimensions).map(|_| format!("{}, ", sizes[random.below(sizes.len())])).collect();
    let length = random.below(200);
    let data: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    npy(kinds[random.below(kinds.len())], ["True", "False", "0"][random.below(3)], &shape, &data)
}
