//! Laws for every format (what is written reads back to the same bits), then the exact messages.

use std::fs;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

mod columnar_files;
mod mutants;
mod npy_files;

/// Values that are difficult to format as text.
const VALUES: [f64; 6] = [0.1, -1e300, 5e-324, 123456789.0, -0.0, 1.0 / 3.0];

/// Writes `bytes` to a file `name` in a new directory and reads it; the directory is removed from messages.
fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Table, String> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    let prefix = format!("{}/", directory.path().display());
    read(path.to_str().unwrap(), options).map_err(|error| error.to_string().replace(&prefix, ""))
}

fn read_csv(text: &str, options: &ReadOptions) -> Result<Table, String> {
    read_bytes("data.csv", text.as_bytes(), options)
}

fn refusal(text: &str) -> String {
    read_csv(text, &ReadOptions::default()).unwrap_err()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn no_header() -> ReadOptions {
    ReadOptions { header: false, ..Default::default() }
}

fn labelled(name: &str) -> ReadOptions {
    ReadOptions { label: Some(name.to_string()), ..Default::default() }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Writes a text table to `output` and returns it.
fn written_text<W: Write>(output: W, columns: &[&str], values: &[f64]) -> io::Result<W> {
    let columns: Vec<Column> = columns.iter().map(|name| Column::number(*name)).collect();
    let mut writer = csv::Writer::from_writer(output);
    target::write_text(&mut writer, &mut false, &columns, (values, &[]))?;
    writer.into_inner().map_err(|error| error.into_error())
}

#[test]
fn every_format_reads_back_what_was_written() {
    let directory = TempDir::new().unwrap();
    for (extension, format) in FORMATS {
        let path = directory.path().join(format!("Scores{}", extension.to_uppercase()));
        let path = path.to_str().unwrap();
        write(Some(path), &names(&["pc 1", "pc,2"]), 3, &VALUES).unwrap();
        let table = read(path, &ReadOptions::default()).unwrap();
        assert_eq!((table.rows, table.columns), (3, 2), "{extension}");
        assert_eq!(bits(&table.values), bits(&VALUES), "{extension}");
        let expected = (*format != Format::Npy).then(|| names(&["pc 1", "pc,2"]));
        assert_eq!((table.names, table.label), (expected, None), "{extension}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), FORMATS.len(), "temporary files are left");
}

#[test]
fn many_batches_keep_their_order() {
    let directory = TempDir::new().unwrap();
    let values: Vec<f64> = (0..60_000).map(f64::from).collect();
    for (extension, _) in FORMATS {
        let path = directory.path().join(format!("long{extension}"));
        write(path.to_str(), &names(&["a", "b", "c"]), 20_000, &values).unwrap();
        let table = read(path.to_str().unwrap(), &ReadOptions::default()).unwrap();
        assert!(table.values == values, "{extension}");
    }
}

#[test]
fn floats_take_their_shortest_form() {
    let text = written_text(Vec::new(), &["a", "b"], &VALUES).unwrap();
    let expected = "a,b\n0.1,-1e300\n5e-324,123456789\n-0,0.3333333333333333\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn gzip_is_recognised_by_its_bytes() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"\xef\xbb\xbfa,b\n1,2\n").unwrap();
    let packed = packed.finish().unwrap();
    let table = read_bytes("data.csv", &packed, &ReadOptions::default()).unwrap();
    assert_eq!((table.names, table.values), (Some(names(&["a", "b"])), vec![1.0, 2.0]));
    let cut = read_bytes("data.csv.gz", &packed[..packed.len() - 9], &ReadOptions::default()).unwrap_err();
    assert!(cut.starts_with("data.csv.gz: "), "{cut}");
}

#[test]
fn csv_dialects() {
    let expected = vec![1.0, 2.0, 3.0, 4.0];
    for text in [
        "a,b\n1,2\n3,4",
        "\u{feff}a,b\r\n1,2\r\n3,4\r\n",
        "a, b\n\n 1 ,2\n\n3,\"4\"\n\n",
        "a,b\r\n\r\n1,2\r\n3,4\r\n\r\n",
    ] {
        let table = read_csv(text, &ReadOptions::default()).unwrap();
        assert_eq!((table.names, table.values), (Some(names(&["a", "b"])), expected.clone()), "{text:?}");
    }
    assert_eq!(read_csv("1,2\n3,4\n", &no_header()).unwrap().values, expected);
    assert_eq!(read_bytes("a.tsv", b"a\tb\n1\t2\n3\t4\n", &ReadOptions::default()).unwrap().values, expected);
    assert_eq!(read_bytes("a.txt", b"1\t2\n3\t4\n", &no_header()).unwrap().values, expected);
}

#[test]
fn labels_and_left_out_columns() {
    let text = "id,x,kind,when\n7,1,a b,mon\n8,2,007,\n";
    let options = ReadOptions { drop: names(&["when"]), ignore: names(&["id", "none"]), ..labelled("kind") };
    let table = read_csv(text, &options).unwrap();
    assert_eq!((table.names, table.values), (Some(names(&["x"])), vec![1.0, 2.0]));
    assert_eq!(table.label, Some(names(&["a b", "007"])));

    let last = read_csv("x,kind\r\n1,a\r\n", &labelled("kind")).unwrap();
    assert_eq!(last.label, Some(names(&["a"])), "the carriage return is not part of the label");
    let numbered = read_csv("1,u\n2,v\n", &ReadOptions { header: false, ..labelled("1") }).unwrap();
    assert_eq!((numbered.names, numbered.label), (None, Some(names(&["u", "v"]))));
    let absent = read_csv("x\n1\n", &ReadOptions { label_optional: true, ..labelled("kind") }).unwrap();
    assert_eq!(absent.label, None);
}

#[test]
fn values_that_are_not_numbers() {
    assert_eq!(
        refusal("age,x\n1,2\nabc,3\n"),
        "data.csv line 3, column 'age': 'abc' is not a number; if the column holds classes use --label age, to leave it out --drop age"
    );
    assert_eq!(refusal("x,y\n1,inf\n"), "data.csv line 2, column 'y': 'inf' is not finite");
    assert_eq!(refusal("x,y\n1,-1e999\n"), "data.csv line 2, column 'y': '-1e999' is not finite");
    let unnamed = read_csv("1,2\n3,?\n", &no_header()).unwrap_err();
    assert_eq!(
        unnamed,
        "data.csv line 2, column 1 (from 0): '?' is not a number; if the column holds classes use --label 1, to leave it out --drop 1"
    );
    for word in ["", " ", "NA", "NaN", "nan", "-nan", "null", "N/A", "\"\""] {
        let expected = "data.csv line 3, column 'x': missing value (--skip-bad skips such rows; models fitted with --missing median fill them)";
        assert_eq!(refusal(&format!("x,y\n1,2\n{word},2\n")), expected, "{word:?}");
    }
    let long = refusal(&format!("x\n{}\n", "z".repeat(5000)));
    assert_eq!(
        long,
        format!(
            "data.csv line 2, column 'x': '{}…' is not a number; if the column holds classes use --label x, to leave it out --drop x",
            "z".repeat(60)
        )
    );
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    assert_eq!(
        refusal("x,y\n\n\n1,2\n\nu,3\n"),
        "data.csv line 6, column 'x': 'u' is not a number; if the column holds classes use --label x, to leave it out --drop x"
    );
    assert_eq!(
        refusal("x,y\r\n\r\n1,2\r\n\r\nu,3"),
        "data.csv line 5, column 'x': 'u' is not a number; if the column holds classes use --label x, to leave it out --drop x"
    );
    let quoted = read_csv("x,kind\n1,\"a\nb\"\n\n2,\"c\r\nd\"\nu,e", &labelled("kind")).unwrap_err();
    assert_eq!(
        quoted,
        "data.csv line 7, column 'x': 'u' is not a number; if the column holds classes use --label x, to leave it out --drop x"
    );
}

#[test]
fn a_blank_line_in_one_column_is_a_missing_value() {
    for text in ["x\n1\n\n2\n", "x\r\n1\r\n\r\n2\r\n", "x\n1\n\"\"\n"] {
        let expected = "data.csv line 3, column 'x': missing value (--skip-bad skips such rows; models fitted with --missing median fill them)";
        assert_eq!(refusal(text), expected, "{text:?}");
    }
    assert_eq!(read_csv("x\n1\n\n\n", &ReadOptions::default()).unwrap().rows, 1);
}

#[test]
fn invalid_shapes() {
    assert_eq!(refusal("a,b,c,d\n1,2,3,4\n1,2,3\n"), "data.csv line 3: 3 fields, expected 4");
    assert_eq!(refusal("a,b\n1\n"), "data.csv line 2: 1 field, expected 2");
    assert_eq!(refusal("a,b\n"), "data.csv: no rows");
    for text in ["", "\n\r\n", "\u{feff}"] {
        assert_eq!(refusal(text), "data.csv is empty", "{text:?}");
    }
    let expected = "data.csv: column 'a' appears twice, expected distinct names";
    assert_eq!(refusal("a,b,a\n1,2,3\n"), expected);
    let expected = "data.csv: first line has only numbers; if the file has no header use --no-header";
    assert_eq!(refusal("1,2.5\n3,4\n"), expected);
    let all = ReadOptions { drop: names(&["a"]), ..labelled("b") };
    let expected = "data.csv: no feature columns left, expected at least one";
    assert_eq!(read_csv("a,b\n1,2\n", &all).unwrap_err(), expected);
    let expected = "data.csv: the name of column 1 (from 0) is not UTF-8";
    assert_eq!(read_bytes("data.csv", b"a,\xff\n1,2\n", &ReadOptions::default()).unwrap_err(), expected);
    let expected = "data.csv line 2, column 'a': '\u{fffd}' is not a number; if the column holds classes use --label a, to leave it out --drop a";
    assert_eq!(read_bytes("data.csv", b"a\n\xff\n", &ReadOptions::default()).unwrap_err(), expected);
    let expected = "data.csv: line 2, column 1 (from 0): the label is not UTF-8";
    assert_eq!(read_bytes("data.csv", b"a,b\n1,\xff\n", &labelled("b")).unwrap_err(), expected);
}

#[test]
fn unknown_columns_are_answered_with_the_known_ones() {
    let drop = |name: &str| ReadOptions { drop: names(&[name]), ..Default::default() };
    assert_eq!(read_csv("a,b\n1,2\n", &drop("c")).unwrap_err(), "data.csv has no column 'c'; it has a, b");
    assert_eq!(read_csv("a,b\n1,2\n", &labelled("0")).unwrap_err(), "data.csv has no column '0'; it has a, b");
    let unnamed = read_csv("1,2\n", &ReadOptions { header: false, ..drop("2") }).unwrap_err();
    assert_eq!(unnamed, "data.csv has no column '2'; it has no names, use a number from 0 to 1");
    let many: Vec<String> = (0..25).map(|index| format!("c{index}")).collect();
    let message = read_csv(&many.join(","), &drop("z")).unwrap_err();
    assert!(message.ends_with("c18, c19 … and 5 more"), "{message}");
}

#[test]
fn files_that_cannot_be_opened_or_named() {
    let known = ".csv .csv.gz .tsv .tsv.gz .txt .txt.gz .parquet .arrow .feather .ipc .npy";
    let expected = format!("table.xlsx: unknown extension, expected one of {known}");
    assert_eq!(read("table.xlsx", &ReadOptions::default()).unwrap_err().to_string(), expected);
    assert_eq!(check_target(Some("table.xlsx")).unwrap_err().to_string(), expected);
    let absent = "/no/such/table.csv: No such file or directory (os error 2)";
    assert_eq!(read("/no/such/table.csv", &ReadOptions::default()).unwrap_err().to_string(), absent);
    assert_eq!(check_target(Some("/no/such/table.csv")).unwrap_err().to_string(), absent);
    for target in [None, Some("-"), Some("scores.csv"), Some("/tmp/scores.npy")] {
        assert!(check_target(target).is_ok(), "{target:?}");
    }
}

#[test]
fn values_must_fill_the_columns() {
    let error = write(Some("a.csv"), &names(&["a", "b"]), 2, &[1.0]).unwrap_err();
    assert_eq!(error.to_string(), "a.csv: 1 values for 2 rows x 2 columns");
}

#[test]
fn a_broken_pipe_is_a_separate_error() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = written_text(Closed, &["a"], &vec![0.5; 100_000]).err().unwrap();
    assert!(matches!(target::failed(None, error), TableError::BrokenPipe));
    assert!(matches!(target::failed(None, io::ErrorKind::StorageFull.into()), TableError::Io { .. }));
    assert!(matches!(target::failed(Some("pipe.csv"), io::ErrorKind::BrokenPipe.into()), TableError::Io { .. }));
}

/// More lines than fit into a chunk, so that some are parsed as plain lines and others by the record reader.
#[test]
fn results_do_not_depend_on_where_chunks_end() {
    let plain: String = (0..90).map(|i| format!("{i},{}.5,c{}\n", -i, i % 3)).collect();
    let expect = |text: &str, last: &[f64]| {
        let table = read_csv(text, &labelled("l")).unwrap();
        let first = (0..90).flat_map(|i| [f64::from(i), -(f64::from(i) + 0.5)]);
        let mut expected: Vec<f64> = first.collect();
        expected[1] = 0.5;
        expected.extend(last);
        assert_eq!(bits(&table.values), bits(&expected), "{text}");
        assert_eq!(table.label.unwrap()[..3], ["c0", "c1", "c2"].map(String::from));
    };
    expect(&format!("a,b,l\n{plain}"), &[]);
    expect(&format!("a,b,l\n{plain}7,8,x"), &[7.0, 8.0]);
    expect(&format!("a,b,l\r\n{}", plain.replace('\n', "\r\n")), &[]);
    expect(&format!("a,b,l\n{plain}\n7,\"8\",\"x\ny\"\n9,1,z\n"), &[7.0, 8.0, 9.0, 1.0]);
    for (wrong, line) in [("1,x,y\n", 92), ("\n\n1,\"\n\",y\n", 94), ("1,2\n", 92), ("1,2,\"y\n", 92)] {
        let message = read_csv(&format!("a,b,l\n{plain}{wrong}"), &labelled("l")).unwrap_err();
        assert!(message.contains(&format!("line {line}")) || message.contains(&format!("lines {line}")), "{message}");
    }
}

/// The remaining rows, and the errors of the others.
fn skipped(name: &str, bytes: &[u8]) -> (Vec<f64>, Vec<String>, Vec<String>) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    let options = ReadOptions { skip_bad: true, all: true, drop: names(&["l"]), ..Default::default() };
    let mut source = Source::open(path.to_str().unwrap(), &options).unwrap();
    let (mut values, mut texts, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(block) = source.next().unwrap() {
        values.extend(block.values);
        texts.extend(block.texts);
        bad.extend(block.bad.iter().map(|e| e.to_string().replace(&format!("{}/", directory.path().display()), "")));
    }
    (values, texts, bad)
}

#[test]
fn unusable_lines_are_skipped_wherever_chunks_end() {
    let plain = "1,2,x\n";
    for before in 0..60 {
        let bad = ["1,\n", "1,,y\n", "a,2,z\n", "\"1\"2,3,z\n", "1,\"3\n\"4,z\n", "1,inf,z\n"];
        let text = format!("a,b,l\n{}{}\n7,8,\"u\nv\"\n", plain.repeat(before), bad.join(plain));
        let (values, texts, said) = skipped("data.csv", text.as_bytes());
        let expected = [1.0, 2.0].repeat(before + bad.len() - 1).into_iter().chain([7.0, 8.0]).collect::<Vec<f64>>();
        assert_eq!(values, expected, "{before}");
        assert_eq!((texts.len(), texts.last().unwrap().as_str()), (before + bad.len(), "u\nv"));
        let lines: Vec<u64> = [0, 2, 4, 6, 9, 11].iter().map(|k| before as u64 + 2 + k).collect();
        assert_eq!(said.len(), bad.len(), "{said:?}");
        for (said, line) in said.iter().zip(lines) {
            assert!(said.contains(&format!("line {line}")), "{said} {line}");
        }
    }
    let (values, _, said) = skipped("one.csv", b"a,l\n1,x\n2,\"\n3,y\n");
    assert_eq!((values, said.len()), (vec![1.0], 1), "a quote that is never closed");
}

#[test]
fn semicolons_and_decimal_commas_are_read() {
    let expected = [1.5, 2.0, -0.25, 1e3];
    for text in ["a;b\n1,5;2\n-0,25;1e3\n", "a;b\n1.5;2\n-0.25;1000\n", "a\tb\n1.5\t2\n-.25\t1e3\n"] {
        assert_eq!(read_csv(text, &ReadOptions::default()).unwrap().values, expected, "{text}");
    }
    let bare = read_csv("1,5;2\n-0,25;1e3\n", &no_header()).unwrap();
    assert_eq!((bare.values.as_slice(), bare.columns), (&expected[..], 2));
    let said = ReadOptions { delimiter: Some(b'|'), decimal: Some(b','), ..Default::default() };
    assert_eq!(read_csv("a|b\n1,5|2\n-0,25|1e3\n", &said).unwrap().values, expected);
    assert_eq!(
        read_csv("a|b\n1,5|2\n", &ReadOptions { decimal: None, ..said }).unwrap_err(),
        "data.csv line 2, column 'a': '1,5' is not a number; if commas are decimal signs use --decimal ,"
    );
}
