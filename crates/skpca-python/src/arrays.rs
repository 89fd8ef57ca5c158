//! Array arguments: whatever numpy reads as an array of numbers. Arrays with the core's memory layout are borrowed,
//! others are copied, and inputs that numpy would misread are rejected.

use numpy::ndarray::{Dimension, Ix1, Ix2};
use numpy::{Element, PyArray, PyArrayMethods, PyReadonlyArray, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use skpca::Numbers;

/// Accepted dtypes, by numpy's kind codes: bool, signed, unsigned, float, object.
const NUMBERS: &str = "biufO";
const INTEGERS: &str = "biu";

/// Rows of numbers.
pub struct Table<'py>(PyReadonlyArray<'py, f64, Ix2>);

impl Table<'_> {
    pub fn rows(&self) -> usize {
        self.0.shape()[0]
    }

    pub fn columns(&self) -> usize {
        self.0.shape()[1]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        self.0.as_slice().expect("it is contiguous")
    }
}

impl<'py> FromPyObject<'_, 'py> for Table<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Table<'py>> {
        read(&given, NUMBERS).map(Table)
    }
}

/// Rows of numbers to evaluate a model on; float32 arrays are read without conversion.
pub enum Queries<'py> {
    Double(Table<'py>),
    Single(PyReadonlyArray<'py, f32, Ix2>),
}

impl Queries<'_> {
    pub fn shape(&self) -> (usize, usize) {
        let shape = match self {
            Queries::Double(table) => table.0.shape(),
            Queries::Single(table) => table.shape(),
        };
        (shape[0], shape[1])
    }

    /// All values, row after row.
    pub fn values(&self) -> Numbers<'_> {
        match self {
            Queries::Double(table) => table.values().into(),
            Queries::Single(table) => table.as_slice().expect("it is contiguous").into(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Queries<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Queries<'py>> {
        match given.cast::<PyArray<f32, Ix2>>() {
            Ok(_) => read(&given, NUMBERS).map(Queries::Single),
            Err(_) => read(&given, NUMBERS).map(Table).map(Queries::Double),
        }
    }
}

/// A one-dimensional array of numbers.
pub struct Vector<'py>(PyReadonlyArray<'py, f64, Ix1>);

impl Vector<'_> {
    pub fn values(&self) -> &[f64] {
        self.0.as_slice().expect("it is contiguous")
    }
}

impl<'py> FromPyObject<'_, 'py> for Vector<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Vector<'py>> {
        read(&given, NUMBERS).map(Vector)
    }
}

/// Class indices, one per row.
pub struct Classes<'py>(PyReadonlyArray<'py, i64, Ix1>);

impl Classes<'_> {
    pub fn values(&self) -> &[i64] {
        self.0.as_slice().expect("it is contiguous")
    }
}

impl<'py> FromPyObject<'_, 'py> for Classes<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Classes<'py>> {
        read(&given, INTEGERS).map(Classes)
    }
}

/// Returns the caller's `out`, which must have the right type, shape and layout, or a new array.
pub fn output<'py, T: Element, D: Dimension>(
    py: Python<'py>,
    out: Option<Bound<'py, PyAny>>,
    shape: D,
) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let Some(out) = out else { return Ok(PyArray::zeros(py, shape, false)) };
    let expected = shape.slice().to_vec();
    let out = out.cast_into::<PyArray<T, D>>().map_err(|_| {
        let kind = T::get_dtype(py);
        PyTypeError::new_err(format!("out has to be an array of {kind} in {} dimensions", expected.len()))
    })?;
    if out.shape() != expected {
        return Err(PyValueError::new_err(format!("out has the shape {:?}, expected {expected:?}", out.shape())));
    }
    if !out.is_c_contiguous() {
        return Err(PyValueError::new_err("out has to lie in memory row after row: see numpy.ascontiguousarray"));
    }
    Ok(out)
}

/// Returns an aligned array in C order, without a copy if the caller's array is one.
fn read<'py, T: Element, D: Dimension>(given: &Bound<'py, PyAny>, kinds: &str) -> PyResult<PyReadonlyArray<'py, T, D>> {
    if given.is_exact_instance_of::<PyUntypedArray>()
        && let Ok(array) = given.cast::<PyArray<T, D>>()
        && array.is_c_contiguous()
        && array.is_aligned()
    {
        return Ok(array.try_readonly()?);
    }
    let array = numbers(given, kinds)?;
    let (found, expected) = (array.ndim(), D::NDIM.expect("its number of dimensions is fixed"));
    if found != expected {
        let plural = if expected == 1 { "" } else { "s" };
        let hint = if found == 1 { ": reshape(1, -1) makes it one row, reshape(-1, 1) one column" } else { "" };
        let message = format!("expected an array of {expected} dimension{plural}, found {found}{hint}");
        return Err(PyValueError::new_err(message));
    }
    let numpy = given.py().import("numpy")?;
    let array = numpy.call_method1("require", (array, T::get_dtype(given.py()), "CA"))?;
    Ok(array.cast_into::<PyArray<T, D>>()?.try_readonly()?)
}

/// Converts `given` with numpy; rejects anything but numbers, and sparse or masked arrays.
fn numbers<'py>(given: &Bound<'py, PyAny>, kinds: &str) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = given.py().import("numpy")?;
    if given.hasattr("toarray")? {
        return Err(PyTypeError::new_err("a sparse matrix: use its toarray()"));
    }
    let masked = numpy.getattr("ma")?;
    if given.is_instance(&masked.getattr("MaskedArray")?)? && masked.call_method1("is_masked", (given,))?.is_truthy()? {
        return Err(PyValueError::new_err("values of the array are masked: fill them, or leave their rows out"));
    }
    let array = numpy.call_method1("asarray", (given,))?;
    let dtype = array.getattr("dtype")?;
    let kind = dtype.getattr("kind")?;
    if !kinds.contains(kind.cast::<PyString>()?.to_str()?) {
        let expected = if kinds == INTEGERS { "integers" } else { "real numbers" };
        return Err(PyTypeError::new_err(format!("expected {expected}, found an array of type {dtype}")));
    }
    let array = if kind.eq("O")? { unboxed(&array)? } else { array };
    Ok(array.cast_into()?)
}

/// Converts an array of objects to real numbers, via complex numbers, as numpy would silently drop imaginary parts.
fn unboxed<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let values = array.call_method1("astype", ("complex128",)).map_err(|error| {
        let message = format!("expected real numbers: {}", error.value(py));
        if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py) {
            PyValueError::new_err(message)
        } else {
            PyTypeError::new_err(message)
        }
    })?;
    // None is read as NaN + NaN i, and rejected as a NaN.
    let imaginary = py.import("numpy")?.call_method1("nan_to_num", (values.getattr("imag")?,))?;
    if imaginary.call_method0("any")?.is_truthy()? {
        Err(PyTypeError::new_err("expected real numbers, found complex ones"))
    } else {
        values.getattr("real")
    }
}
