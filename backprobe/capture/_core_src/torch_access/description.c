/* What a Tensor row says of an object itself. Ordinary tensors are read here, whatever device they lie on; what is rare
   goes to the Python function `describe_tensor` of tensor_registry.py, which the twin uses for all. */

#include "description.h"

#include <string.h>

#include "layout.h"
#include "measured.h"
#include "torch_api.h"

typedef struct {
    PyObject *dtype, *name;
    int64_t size;
} ordinary;

int bp_inference_was_seen;

static ordinary DTYPES[24];
static int dtype_count;
static const ordinary *BY_NUMBER[BP_DTYPES]; /* the same by bp_dtype */

/* The dtypes that elements can be read of, with their names, from tensor_memory.py. */
static int learn_dtypes(void)
{
    PyObject *module = PyImport_ImportModule("backprobe.capture.torch_access.tensor_memory");
    PyObject *list = module == NULL ? NULL : PyObject_CallMethod(module, "ordinary_dtypes", NULL);
    Py_XDECREF(module);
    if (list == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && dtype_count < 24; i++) {
        ordinary *one = &DTYPES[dtype_count];
        long long size = 0;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OUL", &one->dtype, &one->name, &size)) {
            Py_DECREF(list);
            return -1;
        }
        Py_INCREF(one->dtype);
        Py_INCREF(one->name);
        one->size = size;
        dtype_count++;
        for (int dtype = 0; dtype < BP_DTYPES; dtype++) {
            if (PyUnicode_CompareWithASCIIString(one->name, bp_dtype_text(dtype)) == 0) {
                BY_NUMBER[dtype] = one;
            }
        }
    }
    Py_DECREF(list);
    return 0;
}

void bp_undescribe(bp_description *is)
{
    if (is->dims != NULL) {
        PyMem_RawFree(is->dims);
    }
    Py_CLEAR(is->dtype);
    Py_CLEAR(is->device);
    Py_CLEAR(is->layout);
    Py_CLEAR(is->special);
    Py_CLEAR(is->base);
    memset(is, 0, sizeof *is);
}

static int64_t *new_dims(int count)
{
    int64_t *dims = PyMem_RawMalloc((size_t)(count ? count : 1) * 2 * sizeof(int64_t));
    if (dims == NULL) {
        PyErr_NoMemory();
    }
    return dims;
}

/* The items of a tuple of ints. */
static int take_dims(PyObject *tuple, int64_t *to, int count)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count) {
        PyErr_SetString(PyExc_TypeError, "sizes and strides are tuples of one length");
        return -1;
    }
    for (int i = 0; i < count; i++) {
        to[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (to[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static int64_t int_of(PyObject *answer)
{
    if (answer == NULL) {
        return -1;
    }
    int64_t value = PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    return value;
}

uintptr_t bp_storage_of(PyObject *tensor, int64_t *bytes)
{
    static PyObject *asked;
    if (asked == NULL) {
        PyObject *module = PyImport_ImportModule("backprobe.capture.torch_access.torch_internals");
        asked = module == NULL ? NULL : PyObject_GetAttrString(module, "storage_of");
        Py_XDECREF(module);
    }
    PyObject *told = asked == NULL ? NULL : PyObject_CallOneArg(asked, tensor);
    uintptr_t address = 0;
    if (told != NULL && told != Py_None) {
        address = (uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(told, 0));
        *bytes = PyLong_AsLongLong(PyTuple_GET_ITEM(told, 1));
    }
    Py_XDECREF(told);
    return PyErr_Occurred() ? 0 : address;
}

/* The tensor that one is a view of, for the record; 0, or -1 with an exception. */
static int take_base(PyObject *tensor, bp_description *is)
{
    PyObject *view = bp_method(tensor, bp_name__is_view);
    if (view == Py_True) {
        is->base = PyObject_GetAttr(tensor, bp_name__base);
        if (is->base == Py_None || is->base == tensor) {
            Py_CLEAR(is->base);
        }
    }
    Py_XDECREF(view);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *bp_device_text(PyObject *tensor)
{
    static PyObject *texts; /* device -> its name: a few */
    PyObject *device = PyObject_GetAttr(tensor, bp_name_device), *text = NULL;
    if (texts == NULL) {
        texts = PyDict_New();
    }
    if (device != NULL && texts != NULL) {
        text = Py_XNewRef(PyDict_GetItemWithError(texts, device));
        if (text == NULL && !PyErr_Occurred()) {
            text = PyObject_Str(device);
            if (text != NULL && PyDict_SetItem(texts, device, text) < 0) {
                Py_CLEAR(text);
            }
        }
    }
    Py_XDECREF(device);
    return text;
}

/* The same by what was learned of plain tensors: 1, 0 where that does not tell it. */
static int describe_plain(PyObject *tensor, bp_description *is)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    int dtype = impl ? bp_impl_dtype(impl) : -1;
    if (dtype < 0 || BY_NUMBER[dtype] == NULL) {
        return 0;
    }
    is->ndim = bp_impl_ndim(impl);
    is->dims = new_dims(is->ndim);
    if (is->dims == NULL) {
        return 0;
    }
    size_t bytes = (size_t)is->ndim * sizeof(int64_t);
    memcpy(is->dims, bp_impl_sizes(impl), bytes);
    memcpy(is->dims + is->ndim, bp_impl_strides(impl), bytes);
    is->numel = 1;
    for (int i = 0; i < is->ndim; i++) {
        is->numel *= is->dims[i];
    }
    is->offset = bp_impl_offset(impl);
    is->address = bp_impl_storage(impl);
    is->storage_bytes = bp_storage_bytes(is->address);
    is->has_stride = is->has_offset = is->exact = 1;
    is->size_bytes = is->numel * BY_NUMBER[dtype]->size;
    is->dtype = Py_NewRef(BY_NUMBER[dtype]->name);
    is->device = bp_is_plain_impl(impl) ? Py_NewRef(bp_torch.cpu) : bp_device_text(tensor);
    is->layout = Py_NewRef(bp_torch.strided_text);
    return is->device != NULL && (bp_impl_is_bare(impl) || take_base(tensor, is) == 0);
}

/* 1 where a method says false, 0 where it says true, -1 with an exception. */
static int denies(PyObject *tensor, PyObject *method)
{
    PyObject *answer = bp_method(tensor, method);
    int denied = answer == NULL ? -1 : answer == Py_False;
    Py_XDECREF(answer);
    return denied;
}

/* An ordinary tensor of another device was asked: from such ones is learned how its like are read. -1: an exception. */
static int teach(PyObject *tensor, const bp_description *is)
{
    int lazy = is->special != NULL || denies(tensor, bp_name_is_conj) != 1 || denies(tensor, bp_name_is_neg) != 1 ||
               denies(tensor, bp_name__is_zerotensor) != 1;
    int tracked = is->base != NULL ? 1 : lazy ? 0 : bp_flag(tensor, bp_name_requires_grad);
    int64_t version = lazy || PyErr_Occurred() ? -1 : bp_integer(tensor, bp_name__version, -1);
    if (lazy || PyErr_Occurred()) {
        return PyErr_Occurred() ? -1 : 0;
    }
    bp_asked asked = {is->ndim, tracked, is->dims, is->dims + is->ndim, is->offset, is->storage_bytes, version,
                      is->address, PyUnicode_AsUTF8(is->dtype)};
    if (asked.dtype == NULL) {
        return -1;
    }
    bp_learn_keys(tensor, &asked);
    return 0;
}

/* 1: described; 0: not an ordinary one (an exception may be set); -1: no memory. */
static int describe_ordinary(PyObject *tensor, bp_description *is)
{
    if (!bp_is_exact(tensor)) {
        return 0;
    }
    PyObject *layout = PyObject_GetAttr(tensor, bp_name_layout);
    Py_XDECREF(layout); /* the layouts are immortal for as long as torch is */
    if (layout != bp_torch.strided || bp_flag(tensor, bp_name_is_nested) != 0 ||
        bp_flag(tensor, bp_name_is_quantized) != 0 || bp_flag(tensor, bp_name_is_meta) != 0) {
        return 0;
    }
    int on_cpu = bp_flag(tensor, bp_name_is_cpu);
    PyObject *dtype = PyObject_GetAttr(tensor, bp_name_dtype);
    Py_XDECREF(dtype);
    const ordinary *kind = NULL;
    for (int i = 0; i < dtype_count && kind == NULL; i++) {
        kind = DTYPES[i].dtype == dtype ? &DTYPES[i] : NULL;
    }
    is->address = kind == NULL || on_cpu < 0 ? 0 : bp_storage_of(tensor, &is->storage_bytes);
    if (!is->address) {
        return 0; /* a functorch wrapper, among others */
    }
    PyObject *shape = PyObject_GetAttr(tensor, bp_name_shape), *stride = NULL;
    if (shape != NULL && PyTuple_Check(shape)) {
        is->ndim = (int)PyTuple_GET_SIZE(shape);
        is->dims = new_dims(is->ndim);
        stride = bp_method(tensor, bp_name_stride);
    }
    int good = stride != NULL && is->dims != NULL && take_dims(shape, is->dims, is->ndim) == 0 &&
               take_dims(stride, is->dims + is->ndim, is->ndim) == 0;
    Py_XDECREF(shape);
    Py_XDECREF(stride);
    is->offset = good ? int_of(bp_method(tensor, bp_name_storage_offset)) : -1;
    PyObject *inference = good ? bp_method(tensor, bp_name_is_inference) : NULL;
    if (inference == NULL || PyErr_Occurred()) {
        Py_XDECREF(inference);
        return 0;
    }
    bp_inference_was_seen |= inference == Py_True;
    is->special = inference == Py_True ? Py_NewRef(bp_torch.inference) : NULL;
    Py_DECREF(inference);
    is->has_stride = is->has_offset = is->exact = 1;
    is->numel = 1;
    for (int i = 0; i < is->ndim; i++) {
        is->numel *= is->dims[i];
    }
    is->size_bytes = is->numel * kind->size;
    is->dtype = Py_NewRef(kind->name);
    is->device = on_cpu ? Py_NewRef(bp_torch.cpu) : bp_device_text(tensor);
    is->layout = Py_NewRef(bp_torch.strided_text);
    if (is->device == NULL || take_base(tensor, is) < 0) {
        return 0;
    }
    return on_cpu || teach(tensor, is) == 0;
}

/* What `describe_tensor` gave: (shape, dtype, device, layout, numel, bytes, stride, offset, address, storage bytes, special,
   base). */
static int take_description(PyObject *given, bp_description *is)
{
    PyObject *shape, *stride, *offset, *address, *storage_bytes, *special, *base;
    long long numel, bytes;
    if (!PyArg_ParseTuple(given, "OUUULLOOOOOO", &shape, &is->dtype, &is->device, &is->layout, &numel, &bytes, &stride,
                          &offset, &address, &storage_bytes, &special, &base)) {
        is->dtype = is->device = is->layout = NULL;
        return -1;
    }
    Py_INCREF(is->dtype);
    Py_INCREF(is->device);
    Py_INCREF(is->layout);
    is->numel = numel;
    is->size_bytes = bytes;
    is->special = special == Py_None ? NULL : Py_NewRef(special);
    is->base = base == Py_None ? NULL : Py_NewRef(base);
    is->ndim = shape == Py_None ? -1 : (int)PyTuple_GET_SIZE(shape);
    is->has_stride = stride != Py_None;
    is->has_offset = offset != Py_None;
    is->address = address == Py_None ? 0 : (uintptr_t)PyLong_AsUnsignedLongLong(address);
    is->storage_bytes = storage_bytes == Py_None ? -1 : PyLong_AsLongLong(storage_bytes);
    is->offset = is->has_offset ? PyLong_AsLongLong(offset) : 0;
    if (is->ndim >= 0) {
        is->dims = new_dims(is->ndim);
        if (is->dims == NULL || take_dims(shape, is->dims, is->ndim) < 0) {
            return -1;
        }
    }
    if (is->has_stride && (is->ndim < 0 || take_dims(stride, is->dims + is->ndim, is->ndim) < 0)) {
        return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

int bp_describe(PyObject *tensor, bp_description *is)
{
    memset(is, 0, sizeof *is);
    is->storage_bytes = -1;
    if (describe_plain(tensor, is) == 1) {
        return 0;
    }
    PyErr_Clear();
    bp_undescribe(is);
    is->storage_bytes = -1;
    if (describe_ordinary(tensor, is) == 1) {
        return 0;
    }
    PyErr_Clear();
    bp_undescribe(is);
    is->storage_bytes = -1;
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.tensor_registry");
    PyObject *given = module == NULL ? NULL : PyObject_CallMethod(module, "describe_tensor", "O", tensor);
    Py_XDECREF(module);
    int done = given == NULL ? -1 : take_description(given, is);
    Py_XDECREF(given);
    if (done < 0) {
        bp_undescribe(is);
    }
    return done;
}

int bp_describe_ready(void)
{
    return dtype_count ? 0 : learn_dtypes();
}
