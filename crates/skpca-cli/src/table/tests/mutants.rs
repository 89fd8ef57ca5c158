//! Thousands of damaged files of every kind: an error or a table, never an uncaught panic, never an abort.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::*;

const MUTANTS: usize = 700;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}

/// Sizes that often cause errors.
const HOSTILE: [u64; 8] = [0, 1, 0x7f, 0x7fff_ffff, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX];

/// Makes a few changes: flips a bit, sets a byte or a hostile number, removes, repeats or truncates a piece.
fn mutant(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + random.below(3) {
        if bytes.len() < 2 {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(8) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 | 4 => {
                let width = [1, 2, 4, 8][random.below(4)].min(bytes.len() - at);
                let number = HOSTILE[random.below(HOSTILE.len())].to_le_bytes();
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            5 => drop(bytes.drain(at..(at + 1 + random.below(16)).min(bytes.len()))),
            6 => {
                let piece = bytes[at..(at + 1 + random.below(16)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn batch() -> RecordBatch {
    let kind: DictionaryArray<Int8Type> = (0..300).map(|i| ["u", "v", "w"][i % 3]).collect();
    let gaps = (0..300).map(|i| (i % 7 > 0).then_some("a text of some length"));
    RecordBatch::try_from_iter_with_nullable([
        ("x", Arc::new(Float64Array::from_iter_values((0..300).map(|i| f64::from(i % 10)))) as ArrayRef, true),
        ("n", Arc::new(Int64Array::from_iter_values(0..300)) as ArrayRef, false),
        ("kind", Arc::new(kind) as ArrayRef, true),
        ("note", Arc::new(StringArray::from_iter(gaps)) as ArrayRef, true),
    ])
    .unwrap()
}

fn stream(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch().schema(), options).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn file() -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    bytes
}

/// One file of each kind that readers distinguish.
fn wholes() -> Vec<(&'static str, Vec<u8>)> {
    let directory = TempDir::new().unwrap();
    let array = directory.path().join("a.npy");
    write(array.to_str(), &names(&["x", "n", "kind", "note"]), 3, &[0.5; 12]).unwrap();
    let packed = Codec::ZSTD(ZstdLevel::default());
    let delta = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_dictionary_enabled(false)
        .set_column_encoding("n".into(), Encoding::DELTA_BINARY_PACKED);
    vec![
        ("a.arrow", stream(None)),
        ("b.arrow", stream(Some(CompressionType::LZ4_FRAME))),
        ("c.arrow", stream(Some(CompressionType::ZSTD))),
        ("a.feather", file()),
        ("a.parquet", parquet(WriterProperties::default())),
        ("b.parquet", parquet(WriterProperties::builder().set_compression(packed).build())),
        ("c.parquet", parquet(delta.build())),
        ("a.npy", fs::read(array).unwrap()),
        ("a.csv", b"x,n,kind,note\n1,2,\"u\",\"a\nb\"\n3,4,v,\"c\"\"d\"\n".to_vec()),
    ]
}

#[test]
fn mutants_of_every_format() {
    let label = ReadOptions { drop: names(&["kind"]), ..labelled("note") };
    let dropped = ReadOptions { drop: names(&["note"]), ..labelled("kind") };
    let numbered = ReadOptions { label: Some("3".to_string()), ..Default::default() };
    let directory = TempDir::new().unwrap();
    for (seed, (name, whole)) in wholes().into_iter().enumerate() {
        let options = if name.ends_with("npy") { [&numbered, &numbered] } else { [&label, &dropped] };
        for options in options {
            read_bytes(name, &whole, options).unwrap();
        }
        let mut random = Random(seed as u64);
        for number in 0..MUTANTS {
            // A new file each time, since some systems flush a file to disk before they overwrite it.
            let path = directory.path().join(format!("{number}-{name}"));
            let bytes = mutant(&whole, &mut random);
            fs::write(&path, bytes).unwrap();
            if let Ok(table) = read(path.to_str().unwrap(), options[random.below(2)]) {
                assert_eq!(table.values.len(), table.rows * table.columns, "{name}");
                assert!(table.values.iter().all(|value| value.is_finite()), "{name}");
            }
        }
    }
}
