/* Where a tensor's elements lie: of a plain one by the layout that was learned, else by torch's DLPack exchange API, or by
   Python attributes where this torch has none.

   The layouts below are DLPack's, version 1, a stable interface; layout.h has the one that is learned. */

#include "tensor_memory.h"

#include "layout.h"
#include "torch_api.h"

#include <string.h>

typedef struct {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    const int64_t *shape;
    const int64_t *strides;
    uint64_t byte_offset;
} lent_tensor;

typedef struct {
    struct { uint32_t major, minor; } version;
    void *previous;
    void *allocate, *take, *give;
    int (*lend)(void *tensor, lent_tensor *out);
    void *stream;
} exchange_table;

enum { ON_CPU = 1 };
enum { CODE_INT, CODE_UINT, CODE_FLOAT, CODE_BFLOAT = 4, CODE_COMPLEX, CODE_BOOL };

static int (*lend)(void *, lent_tensor *);
static PyObject *is_copy_on_write; /* torch._C._is_cow_tensor */
static PyObject *facts_of;         /* reading.memory: what is asked where the exchange API is missing */
static PyObject *offset_of;        /* Tensor.storage_offset */
static PyCFunction is_neg, is_conj;

static const uint8_t item_sizes[BP_DTYPES] = {4, 8, 2, 2, 8, 16, 8, 4, 2, 1, 8, 4, 2, 1, 1};

int bp_item_size(bp_dtype dtype)
{
    return item_sizes[dtype];
}

static int dtype_of(int code, int bits)
{
    switch (code << 8 | bits) {
    case CODE_FLOAT << 8 | 32: return BP_F32;
    case CODE_FLOAT << 8 | 64: return BP_F64;
    case CODE_FLOAT << 8 | 16: return BP_F16;
    case CODE_BFLOAT << 8 | 16: return BP_BF16;
    case CODE_COMPLEX << 8 | 64: return BP_C64;
    case CODE_COMPLEX << 8 | 128: return BP_C128;
    case CODE_INT << 8 | 64: return BP_I64;
    case CODE_INT << 8 | 32: return BP_I32;
    case CODE_INT << 8 | 16: return BP_I16;
    case CODE_INT << 8 | 8: return BP_I8;
    case CODE_UINT << 8 | 64: return BP_U64;
    case CODE_UINT << 8 | 32: return BP_U32;
    case CODE_UINT << 8 | 16: return BP_U16;
    case CODE_UINT << 8 | 8: return BP_U8;
    case CODE_BOOL << 8 | 8: return BP_BOOL;
    default: return -1;
    }
}

/* 1, 0, or -1 with the exception cleared. */
static int truth(PyObject *answer)
{
    if (answer == NULL) {
        PyErr_Clear();
        return -1;
    }
    int is_true = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return is_true;
}

bool bp_is_contiguous(const bp_tensor_view *view)
{
    int64_t expected = 1;
    for (int i = view->ndim - 1; i >= 0; i--) {
        if (view->sizes[i] != 1 && view->strides[i] != expected) {
            return false;
        }
        expected *= view->sizes[i];
    }
    return true;
}

static int counted(bp_tensor_view *view)
{
    view->numel = 1;
    for (int i = 0; i < view->ndim; i++) {
        view->numel *= view->sizes[i];
    }
    return view->data != NULL || view->numel == 0; /* no memory but elements: a zero tensor, a fake one */
}

/* The negative and the conjugate bit. What public torch makes negative is the imaginary part of a conjugate, whose
   elements lie two apart: a contiguous tensor of several elements is not asked, which saves as much as reading it. */
static int bits_of(PyObject *tensor, bp_tensor_view *view)
{
    bool complex = view->dtype == BP_C64 || view->dtype == BP_C128;
    view->conj = view->neg = false;
    if (!complex && view->numel > 1 && bp_is_contiguous(view)) {
        return 1;
    }
    int neg = truth(is_neg(tensor, NULL));
    int conj = complex && neg >= 0 ? truth(is_conj(tensor, NULL)) : 0;
    view->neg = neg > 0;
    view->conj = conj > 0;
    return neg >= 0 && conj >= 0;
}

/* No allocator of a 64-bit system answers below it, but for programs that are not position-independent. */
static const uintptr_t LOW = (uintptr_t)1 << 32;

/* The storage of a zero tensor and of a wrapper without one begins at address 0: a view that begins later in it has an
   address all the same, which is the offset in bytes. */
static int lies_nowhere(PyObject *tensor, const lent_tensor *dl, bp_dtype dtype)
{
    if ((uintptr_t)dl->data >= LOW) {
        return 0;
    }
    PyObject *offset = PyObject_CallOneArg(offset_of, tensor);
    long long elements = offset == NULL ? 0 : PyLong_AsLongLong(offset);
    Py_XDECREF(offset);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 1;
    }
    return (uintptr_t)dl->data == (uintptr_t)elements * item_sizes[dtype];
}

static int lent(PyObject *tensor, bp_tensor_view *view)
{
    if (truth(PyObject_CallOneArg(is_copy_on_write, tensor)) != 0) {
        return -1; /* asking for its address would make it real */
    }
    lent_tensor dl;
    if (lend(tensor, &dl) != 0) {
        PyErr_Clear();
        return 0;
    }
    int dtype = dl.dtype.lanes == 1 ? dtype_of(dl.dtype.code, dl.dtype.bits) : -1;
    if (dl.device.type != ON_CPU || dtype < 0 || dl.ndim > BP_MOST_DIMENSIONS || (dl.ndim > 0 && !dl.strides)) {
        return 0;
    }
    if (dl.data != NULL && lies_nowhere(tensor, &dl, (bp_dtype)dtype)) {
        return 0;
    }
    view->data = dl.data == NULL ? NULL : (const char *)dl.data + dl.byte_offset;
    view->sizes = dl.shape;
    view->strides = dl.strides;
    view->ndim = dl.ndim;
    view->dtype = (bp_dtype)dtype;
    return 1;
}

/* reading.memory(tensor) -> (address, code, bits, sizes, strides), None where it cannot be read in place. */
static int asked(PyObject *tensor, bp_tensor_view *view)
{
    PyObject *facts = facts_of == NULL ? NULL : PyObject_CallOneArg(facts_of, tensor);
    if (facts == NULL || facts == Py_None) {
        PyErr_Clear();
        Py_XDECREF(facts);
        return 0;
    }
    int code, bits, dtype, done = 0;
    unsigned long long address;
    PyObject *sizes, *strides;
    if (PyArg_ParseTuple(facts, "KiiO!O!", &address, &code, &bits, &PyTuple_Type, &sizes, &PyTuple_Type, &strides)
        && (dtype = dtype_of(code, bits)) >= 0 && PyTuple_GET_SIZE(sizes) <= BP_MOST_DIMENSIONS
        && PyTuple_GET_SIZE(sizes) == PyTuple_GET_SIZE(strides)) {
        view->data = (const char *)(uintptr_t)address;
        view->ndim = (int32_t)PyTuple_GET_SIZE(sizes);
        view->dtype = (bp_dtype)dtype;
        view->sizes = view->room;
        view->strides = view->room + BP_MOST_DIMENSIONS;
        for (int i = 0; i < view->ndim; i++) {
            view->room[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
            view->room[BP_MOST_DIMENSIONS + i] = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, i));
        }
        done = 1;
    }
    if (PyErr_Occurred()) {
        PyErr_Clear();
        done = 0;
    }
    Py_DECREF(facts);
    return done;
}

int bp_shape_of(PyObject *tensor, bp_tensor_view *view)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    int dtype = impl ? bp_impl_dtype(impl) : -1;
    if (dtype < 0) {
        return bp_view_of(tensor, view);
    }
    view->data = NULL;
    view->sizes = bp_impl_sizes(impl);
    view->strides = bp_impl_strides(impl);
    view->ndim = bp_impl_ndim(impl);
    view->dtype = (bp_dtype)dtype;
    view->item = item_sizes[dtype];
    view->conj = view->neg = false;
    view->numel = 1;
    for (int i = 0; i < view->ndim; i++) {
        view->numel *= view->sizes[i];
    }
    return 1;
}

int bp_is_away(PyObject *tensor)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    return impl && !bp_is_plain_impl(impl);
}

int bp_place_away(PyObject *tensor, bp_measured_at *place)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    bp_tensor_view view;
    int64_t last = 0;
    place->data = NULL;
    if (!impl || bp_is_plain_impl(impl) || !bp_shape_of(tensor, &view) || view.numel < 1) {
        return 0;
    }
    for (int i = 0; i < view.ndim; i++) {
        if (view.sizes[i] > 1 && view.strides[i] <= 0) {
            return 0;
        }
        last += view.sizes[i] > 1 ? (view.sizes[i] - 1) * view.strides[i] : 0;
    }
    int64_t version = bp_impl_version(impl);
    if (last + 1 != view.numel || version < 0) {
        return 0;
    }
    *place = (bp_measured_at){(const char *)bp_impl_storage(impl), view.numel, version, (uint64_t)bp_impl_offset(impl), view.dtype};
    return 1;
}

int bp_view_of(PyObject *tensor, bp_tensor_view *view)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    if (impl && !bp_is_plain_impl(impl)) {
        return 0; /* it lies on another device */
    }
    if (impl && bp_impl_view(impl, view)) {
        view->item = item_sizes[view->dtype];
        view->conj = view->neg = false;
        return 1;
    }
    int done = lend == NULL ? -1 : lent(tensor, view);
    if (done < 0) {
        done = asked(tensor, view);
    }
    if (done <= 0 || !counted(view)) {
        return 0;
    }
    view->item = item_sizes[view->dtype];
    return bits_of(tensor, view);
}

/* The function behind a method of a type, to be called without looking it up; NULL with an exception set. */
static PyCFunction method_of(PyObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    PyCFunction function = NULL;
    if (found != NULL && Py_IS_TYPE(found, &PyMethodDescr_Type)) {
        PyMethodDef *definition = ((PyMethodDescrObject *)found)->d_method;
        function = definition->ml_flags & METH_NOARGS ? definition->ml_meth : NULL;
    }
    Py_XDECREF(found); /* the type keeps it */
    if (function == NULL && !PyErr_Occurred()) {
        PyErr_Format(PyExc_ImportError, "torch's Tensor.%s is not what it was", name);
    }
    return function;
}

int bp_use_exchange(bool on)
{
    lend = NULL;
    PyObject *torch = PyImport_ImportModule("torch");
    PyObject *type = torch == NULL ? NULL : PyObject_GetAttrString(torch, "Tensor");
    PyObject *capsule = type == NULL || !on ? NULL : PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    if (capsule != NULL) {
        exchange_table *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        while (table != NULL && table->version.major > 1) {
            table = table->previous;
        }
        lend = table == NULL || table->version.major != 1 ? NULL : table->lend;
    }
    int failed = type == NULL;
    if (!failed) {
        PyErr_Clear(); /* an older torch has no such table */
    }
    Py_XDECREF(capsule);
    Py_XDECREF(type);
    Py_XDECREF(torch);
    return failed ? -1 : lend != NULL;
}

static PyObject *use_exchange(PyObject *Py_UNUSED(module), PyObject *on)
{
    int used = bp_use_exchange(PyObject_IsTrue(on) > 0);
    return used < 0 ? NULL : PyBool_FromLong(used);
}

static PyObject *use_facts(PyObject *Py_UNUSED(module), PyObject *function)
{
    Py_XSETREF(facts_of, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"use_exchange", use_exchange, METH_O, "Read by the DLPack exchange API or without it; whether it is used now."},
    {"use_facts", use_facts, METH_O, "The function that tells where a tensor lies if the exchange API may not be asked."},
    {NULL, NULL, 0, NULL},
};

int bp_add_reader(PyObject *module)
{
    PyObject *torch = PyImport_ImportModule("torch._C");
    PyObject *base = torch == NULL ? NULL : PyObject_GetAttrString(torch, "TensorBase");
    is_copy_on_write = base == NULL ? NULL : PyObject_GetAttrString(torch, "_is_cow_tensor");
    is_neg = is_copy_on_write == NULL ? NULL : method_of(base, "is_neg");
    is_conj = is_neg == NULL ? NULL : method_of(base, "is_conj");
    offset_of = is_conj == NULL ? NULL : PyObject_GetAttrString(base, "storage_offset");
    Py_XDECREF(base);
    Py_XDECREF(torch);
    if (offset_of == NULL || bp_use_exchange(true) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
