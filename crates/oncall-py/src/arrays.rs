//! numpy arrays to slices: type of element, rank, shape, layout and owner are checked here, and every
//! message begins with the argument's name.

use crate::errors::Class;
use numpy::{
    BorrowError, Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A shape as numpy writes it.
fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        many => {
            let sizes: Vec<String> = many.iter().map(ToString::to_string).collect();
            format!("({})", sizes.join(", "))
        }
    }
}

/// `repr` of a type, for messages.
fn type_name(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The array, whatever its elements.
fn untyped<'a, 'py>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
    expected: &str,
) -> PyResult<&'a Bound<'py, PyUntypedArray>> {
    value.cast::<PyUntypedArray>().map_err(|_| {
        let found = type_name(value);
        let message = format!("{name}: found {found}, expected a numpy array of {expected}");
        Class::Dtype.err(value.py(), message)
    })
}

/// The array with elements of type `T`, or `None` if they are of another type.
fn typed<'a, 'py, T: Element>(
    array: &'a Bound<'py, PyUntypedArray>,
) -> Option<&'a Bound<'py, PyArrayDyn<T>>> {
    array.cast::<PyArrayDyn<T>>().ok()
}

fn dtype_error(name: &str, array: &Bound<'_, PyUntypedArray>, expected: &str) -> PyErr {
    let found = array.dtype().str().map_or_else(|_| "unknown".to_owned(), |text| text.to_string());
    let message = format!("{name}: dtype = {found}, expected {expected}");
    Class::Dtype.err(array.py(), message)
}

/// Checks shape and layout. With one row, the first axis may be left out.
fn check_layout(name: &str, array: &Bound<'_, PyUntypedArray>, shape: &[usize]) -> PyResult<()> {
    let py = array.py();
    let found = array.shape();
    let is_row = shape.len() > 1 && shape[0] == 1 && found == &shape[1..];
    if found != shape && !is_row {
        let message =
            format!("{name}: shape = {}, expected {}", shape_text(found), shape_text(shape));
        return Err(Class::Shape.err(py, message));
    }
    if !array.is_c_contiguous() {
        let message = format!(
            "{name}: strides = {:?}, expected a C-contiguous array; numpy.ascontiguousarray makes one",
            array.strides()
        );
        return Err(Class::Shape.err(py, message));
    }
    if !array.is_aligned() {
        return Err(Class::Shape.err(py, format!("{name}: not aligned, expected an aligned array")));
    }
    Ok(())
}

pub(crate) fn borrow_error(py: Python<'_>, name: &str, error: &BorrowError) -> PyErr {
    let message = match error {
        BorrowError::NotWriteable => format!("{name}: read-only, expected a writeable array"),
        _ => format!(
            "{name}: shares memory with another argument or with an array in use, expected memory of \
             its own"
        ),
    };
    Class::Shape.err(py, message)
}

/// The name of an element type, as numpy writes it.
pub(crate) trait Named: Element {
    const NAME: &'static str;
}

macro_rules! named {
    ($($T:ty: $name:literal,)*) => { $(impl Named for $T { const NAME: &'static str = $name; })* };
}

named! { f32: "float32", f64: "float64", i8: "int8", i32: "int32", i64: "int64", bool: "bool", u8: "uint8", }

/// An array that a call writes; no other argument of the call may share its memory.
pub(crate) fn output<'py, T: Named>(
    name: &str,
    value: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    let array = untyped(name, value, T::NAME)?;
    let typed = typed::<T>(array).ok_or_else(|| dtype_error(name, array, T::NAME))?;
    check_layout(name, array, shape)?;
    typed.try_readwrite().map_err(|error| borrow_error(value.py(), name, &error))
}

/// As [`output`], for an array that may be left out.
pub(crate) fn output_if<'py, T: Named>(
    name: &str,
    value: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
) -> PyResult<Option<PyReadwriteArrayDyn<'py, T>>> {
    value.map(|value| output(name, value, shape)).transpose()
}

/// The values of an input; its layout was checked when it was borrowed.
pub(crate) fn values<'a, T: Named>(
    py: Python<'_>,
    array: &'a PyReadonlyArrayDyn<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|error| Class::Shape.err(py, error.to_string()))
}

/// The values of an output; its layout was checked when it was borrowed.
pub(crate) fn values_mut<'a, T: Named>(
    py: Python<'_>,
    array: &'a mut PyReadwriteArrayDyn<'_, T>,
) -> PyResult<&'a mut [T]> {
    array.as_slice_mut().map_err(|error| Class::Shape.err(py, error.to_string()))
}

/// As [`values_mut`], for an array that may be left out.
pub(crate) fn values_mut_if<'a, T: Named>(
    py: Python<'_>,
    array: Option<&'a mut PyReadwriteArrayDyn<'_, T>>,
) -> PyResult<Option<&'a mut [T]>> {
    array.map(|array| values_mut(py, array)).transpose()
}

/// An array that a call reads, if its elements are of type `T`.
pub(crate) fn input_of<'py, T: Named>(
    name: &str,
    value: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Option<PyReadonlyArrayDyn<'py, T>>> {
    let Ok(array) = value.cast::<PyUntypedArray>() else { return Ok(None) };
    let Some(typed) = typed::<T>(array) else { return Ok(None) };
    check_layout(name, array, shape)?;
    typed.try_readonly().map(Some).map_err(|error| borrow_error(value.py(), name, &error))
}

/// The values of an array that a call reads, if its elements are of type `T`. To copy a few of them
/// takes less than to borrow them, and then it does not matter whose memory they are in.
pub(crate) fn copy_of<T: Named>(
    name: &str,
    value: &Bound<'_, PyAny>,
    shape: &[usize],
) -> PyResult<Option<Vec<T>>> {
    let Ok(array) = value.cast::<PyUntypedArray>() else { return Ok(None) };
    let Some(typed) = typed::<T>(array) else { return Ok(None) };
    check_layout(name, array, shape)?;
    typed.to_vec().map(Some).map_err(|error| Class::Shape.err(value.py(), error.to_string()))
}

/// An array that a call reads.
pub(crate) fn input<'py, T: Named>(
    name: &str,
    value: &Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    match input_of(name, value, shape)? {
        Some(array) => Ok(array),
        None => Err(wrong_dtype(name, value, T::NAME)),
    }
}

/// The error for something that is no array, or one of other elements than those expected.
pub(crate) fn wrong_dtype(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    match untyped(name, value, expected) {
        Ok(array) => dtype_error(name, array, expected),
        Err(error) => error,
    }
}

/// A mask of `rows` flags. Read byte by byte, since a `bool` array may hold other bytes than 0 and 1.
pub(crate) fn mask(name: &str, value: &Bound<'_, PyAny>, rows: usize) -> PyResult<Vec<bool>> {
    drop(input::<bool>(name, value, &[rows])?);
    let bytes = value.call_method1("view", ("uint8",))?;
    let bytes = input::<u8>(name, &bytes, &[rows])?;
    let bytes = bytes.as_slice().map_err(|e| Class::Shape.err(value.py(), e.to_string()))?;
    let mask: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
    if mask.contains(&true) {
        return Ok(mask);
    }
    let message = format!("{name}: no row is True, expected at least one");
    Err(Class::Option.err(value.py(), message))
}

/// Numbers of any real type, one for each row; with one row, a bare number will do.
pub(crate) fn numbers(name: &str, value: &Bound<'_, PyAny>, rows: usize) -> PyResult<Vec<f64>> {
    const EXPECTED: &str = "real numbers";
    let py = value.py();
    let Ok(array) = value.cast::<PyUntypedArray>() else {
        let number = value
            .extract::<f64>()
            .ok()
            .filter(|_| rows == 1 && !value.is_instance_of::<PyString>());
        return number.map(|number| vec![number]).ok_or_else(|| wrong_dtype(name, value, EXPECTED));
    };
    if !matches!(array.dtype().kind(), b'f' | b'i' | b'u' | b'b') {
        return Err(dtype_error(name, array, EXPECTED));
    }
    let shape = array.shape();
    if shape != [rows] && !(rows == 1 && shape.is_empty()) {
        let message = format!("{name}: shape = {}, expected ({rows},)", shape_text(shape));
        return Err(Class::Shape.err(py, message));
    }
    let array = value.call_method1("astype", ("float64",))?;
    let array = array.cast::<PyArrayDyn<f64>>()?;
    array.to_vec().map_err(|error| Class::Shape.err(py, error.to_string()))
}

/// An argument of a plain type, such as a whole number or a list of them.
pub(crate) fn plain<T>(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    value.extract::<T>().map_err(|_| {
        let found = value.repr().map_or_else(|_| type_name(value), |text| text.to_string());
        Class::Option.err(value.py(), format!("{name} = {found}: expected {expected}"))
    })
}
