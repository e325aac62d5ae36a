/* What a record keeps of a tensor's elements. On the CPU nothing of torch runs; the rest goes to tensor_memory.py and
   tensor_statistics.py. */

#include "measured.h"

#include <string.h>

#include "layout.h"
#include "torch_api.h"

static const char *const DTYPES[BP_DTYPES] = {
    [BP_F32] = "float32", [BP_F64] = "float64", [BP_F16] = "float16", [BP_BF16] = "bfloat16",
    [BP_C64] = "complex64", [BP_C128] = "complex128", [BP_I64] = "int64", [BP_I32] = "int32",
    [BP_I16] = "int16", [BP_I8] = "int8", [BP_U64] = "uint64", [BP_U32] = "uint32",
    [BP_U16] = "uint16", [BP_U8] = "uint8", [BP_BOOL] = "bool",
};

const char *bp_dtype_text(bp_dtype dtype) { return DTYPES[dtype]; }

/* A function of one of our Python modules, looked up once. */
static PyObject *function_of(PyObject **slot, const char *module_name, const char *name)
{
    if (*slot == NULL) {
        PyObject *module = PyImport_ImportModule(module_name);
        *slot = module == NULL ? NULL : PyObject_GetAttrString(module, name);
        Py_XDECREF(module);
    }
    return *slot;
}

/* What the view could not give, the twin is asked for: another device, a subclass. */
static int is_ordinary_cpu(PyObject *tensor)
{
    if (!bp_is_exact(tensor)) {
        return 0;
    }
    int on_cpu = bp_flag(tensor, bp_name_is_cpu);
    PyErr_Clear();
    return on_cpu == 1;
}

int bp_read_small(PyObject *tensor, int64_t most, bp_small *small)
{
    static PyObject *elements;
    bp_tensor_view view;
    small->size = -1;
    small->brought = NULL;
    small->data = NULL;
    small->place = 0;
    if (bp_view_of(tensor, &view)) {
        small->data = view.data;
        small->place = (uintptr_t)view.data;
        if (most < 0 || !bp_is_small(&view, most) || view.numel * view.item > BP_MOST_RAW) {
            return 0;
        }
        small->size = view.numel * view.item;
        small->ndim = view.ndim;
        small->dtype = view.dtype;
        memcpy(small->dims, view.sizes, (size_t)view.ndim * sizeof(int64_t));
        bp_elements(&view, (char *)small->raw);
        return 0;
    }
    uintptr_t told = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    if (told && !bp_is_plain_impl(told)) {
        small->place = bp_impl_storage(told); /* its elements come with the next transfer, if they are few */
        return 0;
    }
    if (most < 0 || is_ordinary_cpu(tensor)) {
        return 0;
    }
    PyObject *function = function_of(&elements, "backprobe.capture.torch_access.tensor_memory", "elements");
    PyObject *bytes = function == NULL ? NULL : PyObject_CallFunction(function, "OL", tensor, (long long)most);
    if (bytes == NULL) {
        return -1;
    }
    if (bytes == Py_None || PyBytes_GET_SIZE(bytes) > BP_MOST_RAW) {
        Py_DECREF(bytes);
        return 0;
    }
    small->size = PyBytes_GET_SIZE(bytes);
    memcpy(small->raw, PyBytes_AS_STRING(bytes), (size_t)small->size);
    small->brought = bytes;
    return 0;
}

/* A number of the twin's row: whether it is there. */
static bool single_of(PyObject *row, const char *name, float *value)
{
    PyObject *number = PyObject_GetAttrString(row, name);
    bool there = number != NULL && number != Py_None;
    *value = there ? (float)PyFloat_AsDouble(number) : 0;
    Py_XDECREF(number);
    return there;
}

static int64_t count_of(PyObject *row, const char *name)
{
    PyObject *number = PyObject_GetAttrString(row, name);
    int64_t value = number == NULL ? -1 : PyLong_AsLongLong(number);
    Py_XDECREF(number);
    return value;
}

int bp_measure_tensor(PyObject *tensor, const bp_limits *limits, PyObject *caps, bp_row *row)
{
    static PyObject *statistics;
    bp_tensor_view view;
    if (bp_view_of(tensor, &view)) {
        return bp_stats(&view, limits, row);
    }
    if (is_ordinary_cpu(tensor) || (bp_is_exact(tensor) && bp_told_impl_of(tensor))) {
        return 0;
    }
    PyObject *function = function_of(&statistics, "backprobe.capture.torch_access.tensor_statistics", "statistics");
    PyObject *given = function == NULL ? NULL : PyObject_CallFunctionObjArgs(function, tensor, caps, NULL);
    if (given == NULL || given == Py_None) {
        Py_XDECREF(given);
        return given == NULL ? -1 : 0;
    }
    row->has_norm = single_of(given, "norm", &row->norm);
    row->has_sum = single_of(given, "sum", &row->sum);
    single_of(given, "min", &row->min);
    single_of(given, "max", &row->max);
    row->nan = count_of(given, "nan");
    row->inf = count_of(given, "inf");
    row->zeros = count_of(given, "zeros");
    row->counted = count_of(given, "counted");
    PyObject *kind = PyObject_GetAttrString(given, "kind");
    row->sampled = kind != NULL && PyUnicode_CompareWithASCIIString(kind, "sampled") == 0;
    Py_XDECREF(kind);
    Py_DECREF(given);
    return PyErr_Occurred() ? -1 : 1;
}

static void put_single(bp_rows *rows, bool there, float value)
{
    if (there) {
        bp_put_f32(rows, value);
    } else {
        bp_put_nil(rows);
    }
}

void bp_put_measured(bp_rows *rows, int measured, const bp_row *row)
{
    if (measured != 1) {
        bp_put_nil(rows);
        return;
    }
    bp_put_array(rows, 9);
    put_single(rows, row->has_norm, row->norm);
    put_single(rows, row->has_sum, row->sum);
    put_single(rows, row->has_sum, row->min);
    put_single(rows, row->has_sum, row->max);
    bp_put_int(rows, row->nan);
    bp_put_int(rows, row->inf);
    bp_put_int(rows, row->zeros);
    bp_put_int(rows, row->counted);
    bp_put_str(rows, row->sampled ? "sampled" : "exact", row->sampled ? 7 : 5);
}
