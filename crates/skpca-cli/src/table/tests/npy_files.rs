//! Arrays as NumPy writes them, and invalid headers.

use super::*;

fn npy(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

fn read_npy(descr: &str, fortran: &str, shape: &str, elements: &[u8]) -> Result<Table, String> {
    read_bytes("data.npy", &npy(1, &header(descr, fortran, shape), elements), &ReadOptions::default())
}

#[test]
fn every_element_type() {
    let cases: [(&str, &[u8], f64); 11] = [
        ("'<f4'", &1.5f32.to_le_bytes(), 1.5),
        ("'<f8'", &0.1f64.to_le_bytes(), 0.1),
        ("'|i1'", &(-3i8).to_le_bytes(), -3.0),
        ("'<i2'", &(-300i16).to_le_bytes(), -300.0),
        ("'<i4'", &(-70_000i32).to_le_bytes(), -70_000.0),
        ("'<i8'", &i64::MIN.to_le_bytes(), i64::MIN as f64),
        ("'|u1'", &[255], 255.0),
        ("'<u2'", &65_535u16.to_le_bytes(), 65_535.0),
        ("'<u4'", &u32::MAX.to_le_bytes(), 4_294_967_295.0),
        ("\"<u8\"", &u64::MAX.to_le_bytes(), u64::MAX as f64),
        ("'|b1'", &[1], 1.0),
    ];
    for (descr, element, value) in cases {
        assert_eq!(read_npy(descr, "False", "(1, 1)", element).unwrap().values, [value], "{descr}");
    }
}

#[test]
fn orders_versions_and_dimensions() {
    let elements = [1, 2, 3, 4, 5, 6];
    assert_eq!(read_npy("'|u1'", "False", "(2, 3)", &elements).unwrap().values, [1., 2., 3., 4., 5., 6.]);
    assert_eq!(read_npy("'|u1'", "True", "(2, 3)", &elements).unwrap().values, [1., 3., 5., 2., 4., 6.]);
    let column = read_npy("'|u1'", "False", "(6,)", &elements).unwrap();
    assert_eq!((column.rows, column.columns, column.names), (6, 1, None));
    for version in [2, 3] {
        let bytes = npy(version, &header("'|u1'", "False", "(3, 2)"), &elements);
        assert_eq!(read_bytes("data.npy", &bytes, &ReadOptions::default()).unwrap().rows, 3, "{version}");
    }
}

#[test]
fn labels_keep_long_integers() {
    let elements: Vec<u8> = [1u64, u64::MAX, 2, 7].iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes = npy(1, &header("'<u8'", "False", "(2, 2)"), &elements);
    let table = read_bytes("data.npy", &bytes, &labelled("1")).unwrap();
    assert_eq!((table.values, table.label), (vec![1.0, 2.0], Some(names(&["18446744073709551615", "7"]))));
}

#[test]
fn values_that_are_not_finite() {
    let elements: Vec<u8> = [1.0, f64::NAN, f64::NEG_INFINITY, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let missing = read_npy("'<f8'", "False", "(2, 2)", &elements).unwrap_err();
    assert_eq!(
        missing,
        "data.npy row 0 (from 0), column 1 (from 0): missing value (--skip-bad skips such rows; models fitted with --missing median fill them)"
    );
    let infinite = read_npy("'<f8'", "False", "(1, 2)", &elements[16..]).unwrap_err();
    assert_eq!(infinite, "data.npy row 0 (from 0), column 0 (from 0): '-inf' is not finite");
}

#[test]
fn unsupported_element_types() {
    let expected = "expected little-endian f4, f8, i1 to i8, u1 to u8 or bool";
    let cases = [
        ("'>f8'", "big-endian elements '>f8'"),
        ("'|O'", "Python objects"),
        ("[('a', '<f8')]", "a structured array"),
        ("'<c16'", "elements of type '<c16'"),
        ("'<f2'", "elements of type '<f2'"),
        ("é", "a structured array"),
    ];
    for (descr, what) in cases {
        let message = read_npy(descr, "False", "(1, 1)", &[0; 8]).unwrap_err();
        assert_eq!(message, format!("data.npy: {what}, {expected}"));
    }
}

#[test]
fn hostile_shapes() {
    let cases = [
        ("(2, 2)", "2 rows x 2 columns need 32 bytes after the header, the file has 8"),
        ("(0, 2)", "0 rows x 2 columns need 0 bytes after the header, the file has 8"),
        ("(4294967296, 4294967296)", "4294967296 rows x 4294967296 columns are more than any file can hold"),
        ("(99999999999999999999, 1)", "shape (99999999999999999999, 1) in the .npy header, expected sizes"),
        ("(-1, 1)", "shape (-1, 1) in the .npy header, expected sizes"),
        ("()", "an array of 0 dimensions, expected rows and columns"),
        ("(1, 1, 1)", "an array of 3 dimensions, expected rows and columns"),
        ("(1, 1", "'shape' in the .npy header is not a tuple"),
        ("1", "'shape' in the .npy header is not a tuple"),
    ];
    for (shape, expected) in cases {
        assert_eq!(read_npy("'<f8'", "False", shape, &[0; 8]).unwrap_err(), format!("data.npy: {expected}"));
    }
    for order in ["False", "True"] {
        assert_eq!(read_npy("'<f8'", order, "(0, 2)", &[]).unwrap_err(), "data.npy: no rows");
        let nothing = read_npy("'<f8'", order, "(18446744073709551615, 0)", &[]).unwrap_err();
        assert_eq!(nothing, "data.npy: no feature columns left, expected at least one");
    }
}

#[test]
fn hostile_headers() {
    let good = npy(1, &header("'|u1'", "False", "(1, 1)"), &[7]);
    for cut in 1..good.len() {
        assert!(read_bytes("data.npy", &good[..cut], &ReadOptions::default()).is_err(), "{cut}");
    }
    let huge = [b"\x93NUMPY\x02\x00".as_slice(), &u32::MAX.to_le_bytes()].concat();
    let cases: [(Vec<u8>, &str); 7] = [
        (b"PK\x03\x04 zipped".to_vec(), "not a .npy file (it does not begin with \\x93NUMPY)"),
        (npy(9, "", &[]), ".npy version 9.0, expected 1.0, 2.0 or 3.0"),
        (huge, "a .npy header of 4294967295 bytes, expected at most 65536"),
        (good[..30].to_vec(), "the file ends inside its .npy header"),
        (npy(1, "{'descr': '<f8'}", &[]), "the .npy header has no 'fortran_order'"),
        (
            npy(1, &header("'<f8'", "None", "(1, 1)"), &[]),
            "'fortran_order' in the .npy header is neither True nor False",
        ),
        ([&npy(1, "", &[])[..8], &[1, 0, 0xff]].concat(), "the .npy header is not text"),
    ];
    for (bytes, expected) in cases {
        let message = read_bytes("data.npy", &bytes, &ReadOptions::default()).unwrap_err();
        assert_eq!(message, format!("data.npy: {expected}"));
    }
    assert_eq!(read_bytes("data.npy", &[], &ReadOptions::default()).unwrap_err(), "data.npy is empty");
}
