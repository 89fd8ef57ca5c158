//! Exports of mutated models: every ONNX file must be a valid graph.

use std::collections::HashSet;

use prost::Message;
use skpca::format;
use skpca_export::{Format, Options, export};

use crate::proto::{Graph, Model};

pub fn run(bytes: &[u8]) {
    let Ok(model) = format::read(bytes) else { return };
    for double in [true, false] {
        let options = Options { double, ..Options::default() };
        if let Ok(bytes) = export(&model, Format::Onnx, &options) {
            let read = Model::decode(&bytes[..]).expect("what was written is read");
            assert_eq!(read.encode_to_vec(), bytes, "written once more");
            check(read.graph.as_ref().expect("a graph"), &HashSet::new());
        }
        for format in [Format::C, Format::Sql] {
            if let Ok(text) = export(&model, format, &options) {
                let text = String::from_utf8(text).expect("text");
                assert!(!text.contains('\0'), "a zero byte in {format:?}");
            }
        }
    }
}

/// Checks that every name is defined once, before it is used, and that tensors have as many bytes as their shape says.
fn check(graph: &Graph, outside: &HashSet<&str>) {
    let mut known = outside.clone();
    for tensor in &graph.initializer {
        let size = match tensor.data_type {
            1 | 6 => 4,
            7 | 11 => 8,
            9 => 1,
            other => panic!("a tensor of type {other}"),
        };
        let count: i64 = tensor.dims.iter().product();
        assert_eq!(tensor.raw_data.len() as i64, count * size, "{}: shape and bytes", tensor.name);
        assert!(known.insert(&tensor.name), "{} is defined twice", tensor.name);
    }
    for input in &graph.input {
        assert!(known.insert(&input.name), "{} is defined twice", input.name);
    }
    for node in &graph.node {
        for input in node.input.iter().filter(|name| !name.is_empty()) {
            assert!(known.contains(input.as_str()), "{} uses {input}, which is not there yet", node.op_type);
        }
        for inner in node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()) {
            check(inner, &known);
        }
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            assert!(known.insert(output), "{output} is defined twice");
        }
    }
    for output in &graph.output {
        assert!(known.contains(output.name.as_str()), "nothing computes {}", output.name);
    }
}
