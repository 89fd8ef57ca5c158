//! A builder of ONNX graphs.

use crate::formula::Matrix;
use crate::proto::{Attribute, Dimension, Extent, Graph, Node, Shape, Tensor, TensorType, Type, Value};

/// ONNX element types.
pub(super) const FLOAT: i32 = 1;
const INT64: i32 = 7;
pub(super) const STRING: i32 = 8;
pub(super) const BOOL: i32 = 9;
pub(super) const DOUBLE: i32 = 11;
/// ONNX attribute types.
const ATTRIBUTE_INT: i32 = 2;
const ATTRIBUTE_GRAPH: i32 = 5;
const ATTRIBUTE_INTS: i32 = 7;

/// Name of the first dimension, whose length the caller chooses.
const ROWS: &str = "rows";

pub(super) struct Builder {
    pub graph: Graph,
    /// The type of constants, FLOAT or DOUBLE.
    pub number: i32,
    /// Prefix of the names of results, which must be unique across nested graphs.
    prefix: &'static str,
}

pub(super) fn int(name: &str, i: i64) -> Attribute {
    Attribute { name: name.into(), i: Some(i), kind: ATTRIBUTE_INT, ..Attribute::default() }
}

pub(super) fn ints(name: &str, ints: &[i64]) -> Attribute {
    Attribute { name: name.into(), ints: ints.to_vec(), kind: ATTRIBUTE_INTS, ..Attribute::default() }
}

pub(super) fn body(name: &str, graph: Graph) -> Attribute {
    Attribute { name: name.into(), g: Some(graph), kind: ATTRIBUTE_GRAPH, ..Attribute::default() }
}

/// An input or output of the graph; a vector if there are no columns.
pub(super) fn value(name: &str, number: i32, columns: Option<usize>, about: &str) -> Value {
    let extent = |extent| Dimension { extent: Some(extent) };
    let rows = extent(Extent::Name(ROWS.into()));
    let dim = std::iter::once(rows).chain(columns.map(|columns| extent(Extent::Value(columns as i64)))).collect();
    let tensor = TensorType { elem_type: number, shape: Some(Shape { dim }) };
    Value { name: name.into(), r#type: Some(Type { tensor_type: Some(tensor) }), doc_string: about.into() }
}

/// An input or output of a nested graph, optionally with rows and with columns.
pub(super) fn inner(name: &str, number: i32, rows: bool, columns: Option<usize>) -> Value {
    let any = rows.then(Dimension::default);
    let columns = columns.map(|columns| Dimension { extent: Some(Extent::Value(columns as i64)) });
    let tensor = TensorType { elem_type: number, shape: Some(Shape { dim: any.into_iter().chain(columns).collect() }) };
    Value { name: name.into(), r#type: Some(Type { tensor_type: Some(tensor) }), doc_string: String::new() }
}

impl Builder {
    pub fn new(number: i32) -> Builder {
        Builder { graph: Graph { name: "skpca".into(), ..Graph::default() }, number, prefix: "" }
    }

    /// A nested graph, run once per column.
    pub fn of_column(number: i32) -> Builder {
        Builder { graph: Graph { name: "column".into(), ..Graph::default() }, number, prefix: "c" }
    }

    /// Adds an operation and returns the name of its result.
    pub fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.op_with(op, inputs, Vec::new())
    }

    pub fn op_with(&mut self, op: &str, inputs: &[&str], attributes: Vec<Attribute>) -> String {
        let name = format!("{}{}", self.prefix, self.graph.node.len());
        self.named(op, inputs, attributes, &name);
        name
    }

    /// Splits a table into its first and last columns.
    pub fn split(&mut self, input: &str, columns: [usize; 2]) -> [String; 2] {
        let sizes = self.integers(&format!("first_{}", columns[0]), &[2], &columns.map(|columns| columns as i64));
        let name = self.op_with("Split", &[input, &sizes], vec![int("axis", 1)]);
        let rest = format!("{name}_rest");
        self.graph.node.last_mut().expect("it was added").output.push(rest.clone());
        [name, rest]
    }

    /// Renames a result.
    pub fn rename(&mut self, from: &str, to: &str) {
        let names = self.graph.node.iter_mut().flat_map(|node| node.input.iter_mut().chain(&mut node.output));
        names.filter(|name| *name == from).for_each(|name| *name = to.into());
    }

    /// Adds an operation with the given name for its result.
    pub fn named(&mut self, op: &str, inputs: &[&str], attributes: Vec<Attribute>, name: &str) {
        self.graph.node.push(Node {
            input: inputs.iter().map(|input| input.to_string()).collect(),
            output: vec![name.into()],
            op_type: op.into(),
            attribute: attributes,
        });
    }

    pub fn cast(&mut self, input: &str, to: i32) -> String {
        self.op_with("Cast", &[input], vec![int("to", to.into())])
    }

    /// A constant matrix.
    pub fn matrix(&mut self, name: &str, matrix: &Matrix) -> String {
        self.constant(name, &[matrix.n(), matrix.columns], &matrix.values)
    }

    pub fn vector(&mut self, name: &str, values: &[f64]) -> String {
        self.constant(name, &[values.len()], values)
    }

    /// A constant column to multiply rows by. Not a vector, with which onnxruntime is twenty times slower.
    pub fn column(&mut self, name: &str, values: &[f64]) -> String {
        self.constant(name, &[values.len(), 1], values)
    }

    pub fn scalar(&mut self, name: &str, value: f64) -> String {
        self.constant(name, &[], &[value])
    }

    fn constant(&mut self, name: &str, dims: &[usize], values: &[f64]) -> String {
        let raw_data = if self.number == DOUBLE {
            values.iter().flat_map(|v| v.to_le_bytes()).collect()
        } else {
            values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect()
        };
        self.initializer(name, dims, self.number, raw_data)
    }

    pub fn integers(&mut self, name: &str, dims: &[usize], values: &[i64]) -> String {
        self.initializer(name, dims, INT64, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn texts(&mut self, name: &str, texts: &[&str]) -> String {
        let added = self.initializer(name, &[texts.len()], STRING, Vec::new());
        let tensor = self.graph.initializer.iter_mut().find(|tensor| tensor.name == name);
        let texts = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        tensor.expect("it was added").string_data = texts;
        added
    }

    pub fn flags(&mut self, name: &str, flags: &[bool]) -> String {
        self.initializer(name, &[flags.len()], BOOL, flags.iter().map(|flag| u8::from(*flag)).collect())
    }

    /// Adds a constant unless one of this name, which must be the same, exists.
    fn initializer(&mut self, name: &str, dims: &[usize], data_type: i32, raw_data: Vec<u8>) -> String {
        if !self.graph.initializer.iter().any(|tensor| tensor.name == name) {
            let dims = dims.iter().map(|dim| *dim as i64).collect();
            self.graph.initializer.push(Tensor { dims, data_type, name: name.into(), raw_data, ..Tensor::default() });
        }
        name.into()
    }

    /// The axis of columns, as an input of operators.
    pub fn last_axis(&mut self) -> String {
        self.integers("last_axis", &[1], &[1])
    }

    /// The sum of each row, as a column.
    pub fn row_sums(&mut self, input: &str) -> String {
        let axis = self.last_axis();
        self.op_with("ReduceSum", &[input, &axis], vec![int("keepdims", 1)])
    }

    /// `‖row‖²`, as a column.
    pub fn squares(&mut self, input: &str) -> String {
        let squares = self.op("Mul", &[input, input]);
        self.row_sums(&squares)
    }
}
