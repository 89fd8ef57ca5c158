//! Model files that are missing, damaged or hostile: an error, never a panic and never a result.

use crate::support::{Desk, NAMES, csv, normal};
use serde_json::Value;

/// A desk with `data.csv` and a small `model.skpca`.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 12, 3)));
    desk.ok("fit data.csv -o model.skpca --support 4 -q 2");
    desk
}

/// Writes `bytes` as a model that must be rejected, and returns the message.
fn complaint(desk: &Desk, verb: &str, bytes: &[u8], what: &str) -> String {
    desk.put("bad.skpca", bytes);
    let words = if verb == "inspect" { "inspect bad.skpca".to_string() } else { format!("{verb} bad.skpca data.csv") };
    let run = desk.run(&words);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{verb}, {what}: {}", run.stderr);
    let why = run.stderr.strip_prefix("error: bad.skpca: not a usable model file: ");
    why.unwrap_or_else(|| panic!("{verb}, {what}: {}", run.stderr)).trim_end().to_string()
}

/// The message, which must be the same for all commands.
fn complaint_of_all(desk: &Desk, bytes: &[u8], what: &str) -> String {
    let [first, others @ ..] = ["score", "transform", "inspect"].map(|verb| complaint(desk, verb, bytes, what));
    assert!(others.iter().all(|other| *other == first), "{what}: {first}, {others:?}");
    first
}

#[test]
fn a_missing_model_is_named() {
    let desk = desk();
    for words in ["score none.skpca data.csv", "transform none.skpca data.csv", "inspect none.skpca"] {
        desk.refuses(words, 1, "none.skpca: No such file or directory (os error 2)");
    }
}

#[test]
fn files_of_another_kind_are_no_models() {
    let desk = desk();
    let model = desk.bytes("model.skpca");
    let too_large = "its header is larger than any model's; is it a model file?";
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("an empty file", vec![], "it is too short"),
        ("seven bytes", vec![0; 7], "it is too short"),
        ("a text file", b"method landmarks, kernel rbf\n".to_vec(), too_large),
        ("a table", desk.bytes("data.csv"), too_large),
        ("an endless header", [&u64::MAX.to_le_bytes(), &model[8..]].concat(), too_large),
    ];
    for (what, bytes, message) in cases {
        assert_eq!(complaint_of_all(&desk, &bytes, what), message, "{what}");
    }
    // A valid size, but no such bytes.
    complaint_of_all(&desk, &[&(64_u64 << 20).to_le_bytes(), &model[8..]].concat(), "a header longer than the file");
}

/// Such files never end, so a failure would hang this test or fill the memory.
#[test]
fn endless_files_are_no_models() {
    let desk = desk();
    let model = desk.bytes("model.skpca");
    let empty = "/dev/zero: not a usable model file: its header is empty; is it a model file?";
    for words in ["inspect /dev/zero", "score /dev/zero data.csv", "transform /dev/zero data.csv"] {
        desk.refuses(words, 1, empty);
    }
    // A valid header, followed by more than a gigabyte.
    desk.put("head", &model[..model.len() - 1]);
    let run = desk.shell("ulimit -v 4000000; cat head /dev/zero 2> /dev/null | { true", "inspect /dev/stdin", "; }");
    assert_eq!(run.code, 1);
    assert_eq!(run.stderr, "error: /dev/stdin: not a usable model file: something follows its end\n");
    let through = desk.shell("cat model.skpca | { true", "inspect /dev/stdin", "; }");
    assert_eq!((through.code, through.stdout), (0, desk.ok("inspect model.skpca")));
}

/// A sparse file of a terabyte takes no space on disk, and must take none in memory.
#[test]
fn a_model_larger_than_the_memory_is_rejected() {
    let desk = desk();
    desk.put("huge.skpca", desk.bytes("model.skpca"));
    std::fs::OpenOptions::new().write(true).open(desk.path("huge.skpca")).unwrap().set_len(1 << 40).unwrap();
    for words in ["inspect huge.skpca", "score huge.skpca data.csv"] {
        let run = desk.run(words);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""));
        let start = "error: huge.skpca: this model needs about 3298.5 GB of memory, ";
        assert!(run.stderr.starts_with(start), "{}", run.stderr);
    }
}

#[test]
fn a_model_cut_anywhere_is_rejected() {
    let desk = desk();
    let model = desk.bytes("model.skpca");
    for length in (0..model.len()).step_by(model.len() / 250).chain([model.len() - 1]) {
        complaint(&desk, "score", &model[..length], &format!("cut to {length} bytes"));
    }
    complaint_of_all(&desk, &[&model[..], b"x"].concat(), "a byte too long");
}

#[test]
fn a_model_with_one_bit_flipped_is_rejected() {
    let desk = desk();
    let model = desk.bytes("model.skpca");
    let bits = 8 * model.len();
    // A stride coprime to 8 visits every bit position.
    for bit in (0..bits).step_by((bits / 60) | 1) {
        let mut bytes = model.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        complaint(&desk, ["score", "transform", "inspect"][bit % 3], &bytes, &format!("bit {bit}"));
    }
}

#[test]
fn a_model_of_another_version_is_rejected_by_number() {
    let desk = desk();
    for version in [0, 5] {
        let mut file = Container::of(&desk.bytes("model.skpca"));
        file.set("version", Value::from(version));
        let found = complaint_of_all(&desk, &file.bytes(), "version");
        assert_eq!(found, format!("it has format version {version}, this program reads 1 to 4"));
    }
}

#[test]
fn a_model_with_numbers_that_are_not_finite_is_rejected() {
    let desk = desk();
    let sound = Container::of(&desk.bytes("model.skpca"));
    let tensors = ["beta", "coefficients", "mu", "scale", "scores", "shift", "support", "variances"];
    for name in tensors {
        for value in [f64::NAN, f64::INFINITY] {
            let mut file = sound.clone();
            file.tensor(name).chunks_exact_mut(8).for_each(|cell| cell.copy_from_slice(&value.to_le_bytes()));
            let unsigned = complaint_of_all(&desk, &file.bytes(), name);
            assert_eq!(unsigned, "its checksum is wrong: the file is damaged");
            file.sign();
            complaint_of_all(&desk, &file.bytes(), &format!("{name} of {value}"));
        }
    }
}

#[test]
fn a_model_whose_entries_make_no_sense_is_rejected() {
    let desk = desk();
    let sound = Container::of(&desk.bytes("model.skpca"));
    let cases = [
        ("kernel", r#"{"name": "gauss"}"#),
        ("kernel", r#"{"name": "rbf", "gamma": -1}"#),
        ("kernel", r#"{"name": "rbf", "gamma": "median"}"#),
        ("kernel", "7"),
        ("method", "[]"),
        ("names", r#"["a", "b"]"#),
        ("names", r#"["a", "b", 3]"#),
        ("scaling", r#""log""#),
        ("n", "0"),
        ("n", "-1"),
        ("n", "1e300"),
        ("center", "1"),
        ("fidelity", "null"),
        ("threshold", r#""high""#),
        ("scored", "0"),
        ("scored", "18446744073709551615"),
        ("report", "{}"),
    ];
    for (name, value) in cases {
        let mut file = sound.clone();
        file.set(name, serde_json::from_str(value).unwrap());
        file.sign();
        complaint_of_all(&desk, &file.bytes(), &format!("{name} = {value}"));
    }
}

/// Otherwise the tests above would only test wrong checksums.
#[test]
fn a_model_rebuilt_with_a_new_checksum_is_valid() {
    let desk = desk();
    let mut file = Container::of(&desk.bytes("model.skpca"));
    file.set("seed", Value::from(7));
    file.sign();
    desk.put("again.skpca", file.bytes());
    assert_eq!(desk.ok("score again.skpca data.csv"), desk.ok("score model.skpca data.csv"));
    assert_eq!(desk.json("inspect again.skpca --json")["seed"], 7);
}

/// A model file taken apart: length, JSON header, data.
#[derive(Clone)]
struct Container {
    header: Value,
    data: Vec<u8>,
}

impl Container {
    fn of(bytes: &[u8]) -> Container {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Container { header, data: bytes[8 + length..].to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let header = self.header.to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &self.data].concat()
    }

    fn tensor(&mut self, name: &str) -> &mut [u8] {
        let range: Vec<usize> = serde_json::from_value(self.header[name]["data_offsets"].clone()).unwrap();
        &mut self.data[range[0]..range[1]]
    }

    /// Replaces one field of the metadata entry, which invalidates the checksum in front of it.
    fn set(&mut self, name: &str, value: Value) {
        let entry = self.header["__metadata__"]["skpca"].as_str().unwrap().to_string();
        let mut fields: Value = serde_json::from_str(&entry[8..]).unwrap();
        assert!(fields.get(name).is_some(), "{name}");
        fields[name] = value;
        self.header["__metadata__"]["skpca"] = Value::from(format!("{}{fields}", &entry[..8]));
    }

    /// Recomputes the checksum, as an attacker would.
    fn sign(&mut self) {
        let text = self.header["__metadata__"]["skpca"].as_str().unwrap()[8..].to_string();
        let names: Vec<String> = self.header.as_object().unwrap().keys().cloned().collect();
        let mut signed = text.clone().into_bytes();
        for name in names.iter().filter(|name| *name != "__metadata__") {
            let shape: Vec<usize> = serde_json::from_value(self.header[name]["shape"].clone()).unwrap();
            signed.extend(format!("{name}{shape:?}").bytes());
            signed.extend_from_slice(self.tensor(name));
        }
        self.header["__metadata__"]["skpca"] = Value::from(format!("{:08x}{text}", crc32(&signed)));
    }
}

/// CRC-32 as in zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    let add = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(!0, add)
}
