/* Learns where torch keeps what the core reads of a plain tensor. torch has no stable header for it, so nothing is
   assumed: every offset is the first one at which all of many tensors, made to differ, hold what their attributes say,
   and none is used if one is missing (native_layout.py makes the tensors).

   While it is learned, memory is read through a pipe: an address that is none is an error there and no crash. */

#include "layout.h"

#include <stddef.h>
#include <string.h>

#include "measured.h"
#include "torch_api.h"

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

bp_layout bp_torch_layout;

#define MOST_PROBES 64
#define SURE_OF_KEYS 3    /* tensors of a device that have to agree */
#define IMPL_BYTES 176    /* of a tensor, at the most */
#define STORAGE_BYTES 64
#define COUNTER_BYTES 32

/* A tensor, and what its attributes say. */
typedef struct {
    PyObject *tensor;
    uint8_t impl[IMPL_BYTES], storage[STORAGE_BYTES], counter[COUNTER_BYTES];
    uintptr_t cdata, storage_cdata, data;
    int64_t bytes, version, offset, sizes[BP_INLINE_DIMENSIONS], strides[BP_INLINE_DIMENSIONS];
    int ndim, dtype, known; /* known: to autograd */
} probe;

/* ---- reading memory that may not be there */

static int ends[2] = {-1, -1};

/* 1: copied. */
static int copy(uintptr_t from, void *to, size_t size)
{
#ifdef _WIN32
    (void)from, (void)to, (void)size;
    return 0;
#else
    return from && write(ends[1], (const void *)from, size) == (ssize_t)size && read(ends[0], to, size) == (ssize_t)size;
#endif
}

static int open_pipe(void)
{
#ifdef _WIN32
    return 0;
#else
    if (pipe(ends) != 0) {
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return 1;
#endif
}

static void close_pipe(void)
{
#ifndef _WIN32
    close(ends[0]);
    close(ends[1]);
#endif
}

/* ---- what attributes say */

static int64_t number_of(PyObject *answer)
{
    int64_t value = answer == NULL ? -1 : (int64_t)PyLong_AsUnsignedLongLong(answer);
    Py_XDECREF(answer);
    return value;
}

static int take_numbers(PyObject *given, int64_t *to, int *count)
{
    PyObject *items = given == NULL ? NULL : PySequence_Tuple(given);
    Py_XDECREF(given);
    *count = items == NULL ? 0 : (int)PyTuple_GET_SIZE(items);
    for (int i = 0; items != NULL && i < *count && i < BP_INLINE_DIMENSIONS; i++) {
        to[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(items, i));
    }
    Py_XDECREF(items);
    return PyErr_Occurred() || *count > BP_INLINE_DIMENSIONS ? -1 : 0;
}

/* What a tensor says of itself: 1; 0 where it is no probe, -1 with an exception. */
static int ask(probe *one, PyObject *tensor, int dtype)
{
    int strides = 0;
    one->tensor = tensor;
    one->dtype = dtype;
    one->cdata = (uintptr_t)number_of(PyObject_GetAttr(tensor, bp_name__cdata));
    PyObject *storage = PyErr_Occurred() ? NULL : bp_method(tensor, bp_name_untyped_storage);
    if (storage != NULL) {
        one->storage_cdata = (uintptr_t)number_of(PyObject_GetAttr(storage, bp_name__cdata));
        one->data = (uintptr_t)number_of(PyObject_CallMethod(storage, "data_ptr", NULL));
        one->bytes = number_of(bp_method(storage, bp_name_nbytes));
        Py_DECREF(storage);
    }
    if (PyErr_Occurred() || take_numbers(PyObject_GetAttr(tensor, bp_name_shape), one->sizes, &one->ndim) < 0 ||
        take_numbers(bp_method(tensor, bp_name_stride), one->strides, &strides) < 0) {
        return -1;
    }
    one->offset = number_of(bp_method(tensor, bp_name_storage_offset));
    one->version = number_of(PyObject_GetAttr(tensor, bp_name__version));
    PyObject *view = bp_method(tensor, bp_name__is_view);
    one->known = view == Py_True || bp_flag(tensor, bp_name_requires_grad) == 1;
    Py_XDECREF(view);
    return PyErr_Occurred() ? -1
                            : copy(one->cdata, one->impl, IMPL_BYTES) && copy(one->storage_cdata, one->storage, STORAGE_BYTES);
}

/* ---- finding */

static uintptr_t at(const uint8_t *bytes, int offset)
{
    uintptr_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

/* The first offset at which every probe has its own number; -1: none. `in` and `what` are places in a probe. */
static int find(const probe *all, int count, size_t in, int size, size_t what)
{
    for (int offset = 8; offset + 8 <= size; offset += 8) {
        int good = 0;
        while (good < count) {
            const uint8_t *one = (const uint8_t *)&all[good];
            if (at(one + in, offset) != at(one, (int)what)) {
                break;
            }
            good++;
        }
        if (good == count) {
            return offset;
        }
    }
    return -1;
}

#define FIND(in, size, what) find(all, count, offsetof(probe, in), size, offsetof(probe, what))

static int find_dims(const probe *all, int count)
{
    const int room = (2 * BP_INLINE_DIMENSIONS + 1) * 8;
    for (int offset = 8; offset + room <= IMPL_BYTES; offset += 8) {
        int good = 0;
        while (good < count) {
            const probe *one = &all[good];
            size_t bytes = (size_t)one->ndim * 8;
            if (at(one->impl, offset) != (uintptr_t)one->ndim || memcmp(one->impl + offset + 8, one->sizes, bytes) != 0 ||
                memcmp(one->impl + offset + 8 + 8 * BP_INLINE_DIMENSIONS, one->strides, bytes) != 0) {
                break;
            }
            good++;
        }
        if (good == count) {
            return offset;
        }
    }
    return -1;
}

static int find_dtype(const probe *all, int count, int8_t *dtypes)
{
    for (int offset = 8; offset + 2 <= IMPL_BYTES; offset += 2) {
        int good = 0;
        memset(dtypes, -1, 256);
        while (good < count) {
            uint16_t number;
            memcpy(&number, all[good].impl + offset, 2);
            if (number >= 256 || (dtypes[number] >= 0 && dtypes[number] != all[good].dtype)) {
                break;
            }
            for (int i = 0; i < 256; i++) {
                if (i != number && dtypes[i] == all[good].dtype) {
                    number = 256; /* one dtype has one number */
                }
            }
            if (number == 256) {
                break;
            }
            dtypes[number] = (int8_t)all[good++].dtype;
        }
        if (good == count) {
            return offset;
        }
    }
    return -1;
}

/* The word that all plain tensors share, and that each of the others which begin like them has otherwise. */
static int find_keys(const probe *all, int count, uint8_t (*others)[IMPL_BYTES], int other_count, uintptr_t table)
{
    for (int offset = 8; offset + 8 <= IMPL_BYTES; offset += 8) {
        int good = 1, alike = 0;
        while (good < count && at(all[good].impl, offset) == at(all[0].impl, offset)) {
            good++;
        }
        for (int i = 0; i < other_count; i++) {
            alike += at(others[i], 0) == table && at(others[i], offset) == at(all[0].impl, offset);
        }
        if (good == count && !alike && at(all[0].impl, offset)) {
            return offset;
        }
    }
    return -1;
}

static int find_autograd(const probe *all, int count)
{
    for (int offset = 8; offset + 8 <= IMPL_BYTES; offset += 8) {
        int good = 0;
        while (good < count && (at(all[good].impl, offset) != 0) == (all[good].known != 0)) {
            good++;
        }
        if (good == count) {
            return offset;
        }
    }
    return -1;
}

/* Where the home of the version is, and where the version is in it. */
static int find_version(probe *all, int count, int *version)
{
    for (int offset = 8; offset + 8 <= IMPL_BYTES; offset += 8) {
        int good = 0;
        while (good < count && copy(at(all[good].impl, offset), all[good].counter, COUNTER_BYTES)) {
            good++;
        }
        for (int inside = 8; good == count && inside + 4 <= COUNTER_BYTES; inside += 4) {
            int right = 0;
            while (right < count) {
                uint32_t number;
                memcpy(&number, all[right].counter + inside, 4);
                if (number != (uint32_t)all[right].version) {
                    break;
                }
                right++;
            }
            if (right == count) {
                *version = inside;
                return offset;
            }
        }
    }
    return -1;
}

static int find_impl(const probe *all, int count)
{
    for (int offset = sizeof(PyObject); offset < (int)sizeof(PyObject) + 32; offset += 8) {
        int good = 0;
        uintptr_t word;
        while (good < count && copy((uintptr_t)all[good].tensor + (uintptr_t)offset, &word, 8) && word == all[good].cdata) {
            good++;
        }
        if (good == count) {
            return offset;
        }
    }
    return -1;
}

/* What is missing, NULL: nothing is. The first of the others is an inference tensor. */
static const char *learn(probe *all, int count, uint8_t (*others)[IMPL_BYTES], int other_count, bp_layout *found)
{
    found->table = at(all[0].impl, 0);
    for (int i = 1; i < count; i++) {
        if (at(all[i].impl, 0) != found->table) {
            return "one kind of tensor";
        }
    }
    const struct {
        const char *name;
        int *to, offset;
    } parts[] = {
        {"its address", &found->impl, find_impl(all, count)},
        {"storage", &found->storage, FIND(impl, IMPL_BYTES, storage_cdata)},
        {"storage offset", &found->offset, FIND(impl, IMPL_BYTES, offset)},
        {"Python object", &found->object, FIND(impl, IMPL_BYTES, tensor)},
        {"data", &found->data, FIND(storage, STORAGE_BYTES, data)},
        {"bytes", &found->bytes, FIND(storage, STORAGE_BYTES, bytes)},
        {"sizes and strides", &found->dims, find_dims(all, count)},
        {"dtype", &found->dtype, find_dtype(all, count, found->dtypes)},
        {"keys", &found->keys, find_keys(all, count, others, other_count, found->table)},
        {"autograd", &found->autograd, find_autograd(all, count)},
        {"version", &found->counter, find_version(all, count, &found->version)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].offset < 0) {
            return parts[i].name;
        }
        *parts[i].to = parts[i].offset;
    }
    found->plain_keys = at(all[0].impl, found->keys);
    found->autograd_keys = found->plain_keys & ~(other_count ? at(others[0], found->keys) : 0);
    found->used = 1;
    return NULL;
}

/* ---- other devices */

typedef struct {
    uint64_t keys;
    int agreed; /* tensors that hold what they say; -1: one did not */
} device_keys;

static device_keys met_keys[BP_MOST_KEYS];
static int met_count;

static int agrees(PyObject *tensor, uintptr_t impl, const bp_asked *asked)
{
    size_t bytes = (size_t)asked->ndim * sizeof(int64_t);
    int dtype = bp_impl_dtype(impl);
    return bp_word(impl + bp_torch_layout.object) == (uintptr_t)tensor && bp_impl_storage(impl) == asked->storage &&
           bp_impl_ndim(impl) == asked->ndim && !memcmp(bp_impl_sizes(impl), asked->sizes, bytes) &&
           !memcmp(bp_impl_strides(impl), asked->strides, bytes) && bp_impl_offset(impl) == asked->offset &&
           dtype >= 0 && !strcmp(bp_dtype_text(dtype), asked->dtype) && bp_storage_bytes(asked->storage) == asked->bytes &&
           bp_impl_version(impl) == asked->version && (!asked->known || !bp_impl_is_bare(impl));
}

void bp_learn_keys(PyObject *tensor, const bp_asked *asked)
{
    uintptr_t impl = bp_torch_layout.used ? bp_impl_at(tensor) : 0;
    if (!impl || asked->ndim > BP_INLINE_DIMENSIONS || bp_word(impl + bp_torch_layout.dims) > BP_INLINE_DIMENSIONS) {
        return;
    }
    uint64_t keys = bp_impl_keys(impl);
    device_keys *one = met_keys;
    while (one < met_keys + met_count && one->keys != keys) {
        one++;
    }
    if (!keys || keys == bp_torch_layout.plain_keys || one == met_keys + BP_MOST_KEYS) {
        return;
    }
    if (one == met_keys + met_count) {
        *one = (device_keys){keys, 0};
        met_count++;
    }
    if (one->agreed < 0 || one->agreed >= SURE_OF_KEYS) {
        return;
    }
    one->agreed = agrees(tensor, impl, asked) ? one->agreed + 1 : -1;
    if (one->agreed == SURE_OF_KEYS) {
        bp_torch_layout.told_keys[bp_torch_layout.told_count++] = keys;
    }
}

/* learn_layout(plain, others): plain is a list of (tensor, dtype's name). What was not found, "" if all was. */
static PyObject *learn_layout(PyObject *Py_UNUSED(module), PyObject *args)
{
    static probe all[MOST_PROBES];
    static uint8_t others[MOST_PROBES][IMPL_BYTES];
    PyObject *plain, *rest;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &plain, &PyList_Type, &rest) || bp_torch_ready() < 0) {
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(plain), other_count = PyList_GET_SIZE(rest);
    bp_torch_layout.used = bp_torch_layout.told_count = met_count = 0;
    if (!count || count > MOST_PROBES || other_count > MOST_PROBES || !open_pipe()) {
        return PyUnicode_FromString("a pipe");
    }
    int done = 1;
    for (Py_ssize_t i = 0; done > 0 && i < count; i++) {
        PyObject *tensor;
        const char *name;
        int dtype = 0;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(plain, i), "Os", &tensor, &name)) {
            done = -1;
            break;
        }
        while (dtype < BP_DTYPES && strcmp(bp_dtype_text(dtype), name) != 0) {
            dtype++;
        }
        done = ask(&all[i], tensor, dtype);
    }
    for (Py_ssize_t i = 0; done > 0 && i < other_count; i++) {
        uintptr_t impl = (uintptr_t)number_of(PyObject_GetAttr(PyList_GET_ITEM(rest, i), bp_name__cdata));
        done = PyErr_Occurred() ? -1 : copy(impl, others[i], IMPL_BYTES);
    }
    bp_layout found;
    memset(&found, 0, sizeof found);
    const char *missing = done > 0 ? learn(all, (int)count, others, (int)other_count, &found) : "its memory";
    close_pipe();
    if (done < 0) {
        return NULL;
    }
    if (missing == NULL) {
        bp_torch_layout = found;
    }
    return PyUnicode_FromString(missing == NULL ? "" : missing);
}

static PyObject *use_layout(PyObject *Py_UNUSED(module), PyObject *on)
{
    int was = bp_torch_layout.used;
    bp_torch_layout.used = bp_torch_layout.table && PyObject_IsTrue(on) > 0;
    return PyBool_FromLong(was);
}

int bp_impl_view(uintptr_t impl, bp_tensor_view *view)
{
    uintptr_t storage = bp_impl_storage(impl);
    int dtype = bp_impl_dtype(impl), ndim = bp_impl_ndim(impl);
    if (dtype < 0) {
        return 0;
    }
    view->sizes = bp_impl_sizes(impl);
    view->strides = bp_impl_strides(impl);
    view->ndim = ndim;
    view->dtype = (bp_dtype)dtype;
    view->numel = 1;
    int64_t last = bp_impl_offset(impl);
    for (int i = 0; i < ndim; i++) {
        view->numel *= view->sizes[i];
        last += (view->sizes[i] - 1) * view->strides[i];
    }
    int item = bp_item_size(view->dtype);
    view->data = (const char *)bp_word(storage + bp_torch_layout.data);
    if (view->numel == 0) {
        return 1;
    }
    if (view->data == NULL || (last + 1) * item > bp_storage_bytes(storage)) {
        return 0;
    }
    view->data += bp_impl_offset(impl) * item;
    return 1;
}

/* Whether everything but the elements of a tensor is read where it lies: it is an ordinary one. */
static PyObject *is_told(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    if (bp_torch_ready() < 0) {
        return NULL;
    }
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    return PyBool_FromLong(impl && bp_impl_dtype(impl) >= 0);
}

static PyMethodDef methods[] = {
    {"learn_layout", learn_layout, METH_VARARGS,
     "learn_layout([(tensor, dtype), ...], [inference tensor, ...]): which part was not found, \"\" if all were; then it is used."},
    {"is_told", is_told, METH_O, "Whether everything but the elements of a tensor is read by what was learned."},
    {"use_layout", use_layout, METH_O, "Read plain tensors by what was learned, or by attributes; whether it was so."},
    {NULL, NULL, 0, NULL},
};

int bp_add_layout(PyObject *module) { return PyModule_AddFunctions(module, methods); }
