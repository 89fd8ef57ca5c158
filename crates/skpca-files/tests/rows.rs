//! Rows in files: every number is read back exactly, and a modified file is detected.

use std::fs;
use std::io::Write;

use skpca::Source;
use skpca_files::{Element, FileRows, Spool};

fn spooled(blocks: &[&[f64]], d: usize) -> FileRows {
    let directory = tempfile::tempdir().unwrap();
    let mut spool = Spool::begin(directory.path(), d).unwrap();
    blocks.iter().for_each(|block| spool.add(block).unwrap());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    spool.finish().unwrap()
}

fn all(rows: &FileRows) -> Vec<f64> {
    let mut room = vec![7.0; 1000];
    rows.read(0..rows.n(), &mut room).unwrap();
    room
}

#[test]
fn numbers_are_stored_in_32_bits_if_that_is_exact() {
    let single = [1.0, -0.0, 0.1f32.into(), 1e30f32.into(), 65_535.0, f64::from(f32::MIN_POSITIVE)];
    let rows = spooled(&[&single[..2], &[], &single[2..]], 2);
    assert_eq!((rows.n(), rows.d(), rows.bytes()), (3, 2, 24));
    assert_eq!(all(&rows).map_bits(), single.to_vec().map_bits());
    // The first number that needs 64 bits comes late.
    for needs in [0.1, 1e300, 1.0 + f64::EPSILON, 5e-324] {
        let rows = spooled(&[&single, &[2.0, needs], &single], 2);
        assert_eq!((rows.n(), rows.bytes()), (7, 7 * 16), "{needs}");
        let expected = [&single[..], &[2.0, needs], &single].concat();
        assert_eq!(all(&rows).map_bits(), expected.map_bits());
    }
}

trait Bits {
    fn map_bits(self) -> Vec<u64>;
}

impl Bits for Vec<f64> {
    fn map_bits(self) -> Vec<u64> {
        self.into_iter().map(f64::to_bits).collect()
    }
}

#[test]
fn more_than_a_buffer_is_widened_and_gathered_in_the_requested_order() {
    let d = 3;
    let mut values: Vec<f64> = (0..300_000 * d).map(|i| (i % 1000) as f64).collect();
    let (before, after) = values.split_at_mut(250_000 * d);
    after[0] = 0.1;
    let rows = spooled(&[before, after], d);
    assert!(all(&rows) == values);
    let numbers = [299_999, 0, 250_000, 0, 17];
    let expected: Vec<f64> = numbers.iter().flat_map(|&i| &values[i * d..(i + 1) * d]).copied().collect();
    assert_eq!(rows.gather(&numbers).unwrap(), expected);
    let mut room = Vec::new();
    rows.read(5..8, &mut room).unwrap();
    assert_eq!(room, values[15..24]);
}

#[test]
fn a_modified_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    let bytes: Vec<u8> = (0..20).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    fs::write(&path, [b"head", &bytes[..]].concat()).unwrap();
    let rows = FileRows::open(&path, 4, (5, 4), Element::Double).unwrap();
    assert_eq!(all(&rows), (0..20).map(f64::from).collect::<Vec<_>>());
    assert_eq!(rows.unless_changed(Ok(1)), Ok(1));
    let name = path.display();
    for (n, start) in [(6, 4), (5, 5), (usize::MAX, 0)] {
        let error = FileRows::open(&path, start, (n, 4), Element::Double).err().unwrap().to_string();
        assert_eq!(error, format!("{n} rows x 4 columns from byte {start} are more than its 164 bytes"));
    }
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"more").unwrap();
    let error = rows.unless_changed(Ok(())).unwrap_err().to_string();
    let changed = format!("{name}: the file changed while it was read; fit again once it is complete");
    assert_eq!(error, format!("the rows cannot be read: {changed}"));
    file.set_len(100).unwrap();
    let error = rows.unless_changed(rows.read(3..5, &mut Vec::new())).unwrap_err().to_string();
    let expected = format!("the rows cannot be read: {name} ends before row 5 of 5: it was truncated while being read");
    assert_eq!(error, expected);
}
