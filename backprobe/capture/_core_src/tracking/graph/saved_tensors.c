/* What a node holds for backward, read without unpacking it. Twin: saved_tensors.py. */

#include "description.h"
#include "nodes.h"
#include "layout.h"
#include "reduction.h"
#include "torch_api.h"

#include <string.h>

typedef struct {
    PyObject_HEAD
    PyObject *tensors;
    bp_rows *rows;
} saved_tensors;

static const char PREFIX[] = "_raw_saved_";
static PyObject *s_data, *s_qualname, *s_nested, *s_shape, *s_dtype, *cut_name;

static const char *const DTYPES[BP_DTYPES] = {
    [BP_F32] = "float32", [BP_F64] = "float64",       [BP_F16] = "float16",  [BP_BF16] = "bfloat16", [BP_C64] = "complex64",
    [BP_C128] = "complex128", [BP_I64] = "int64",     [BP_I32] = "int32",    [BP_I16] = "int16",     [BP_I8] = "int8",
    [BP_U64] = "uint64",  [BP_U32] = "uint32",        [BP_U16] = "uint16",   [BP_U8] = "uint8",      [BP_BOOL] = "bool",
};

const char *bp_dtype_label(int dtype) { return DTYPES[dtype]; }

/* ---- which attributes a type has */

static int list_attributes(bp_kind *kind, PyTypeObject *type)
{
    PyObject *all = PyObject_Dir((PyObject *)type), *names = PyList_New(0), *labels = PyList_New(0);
    int done = all == NULL || names == NULL || labels == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyList_GET_SIZE(all); i++) {
        PyObject *name = PyList_GET_ITEM(all, i);
        Py_ssize_t length = 0;
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
        if (text == NULL) {
            PyErr_Clear();
            continue;
        }
        if (strncmp(text, PREFIX, sizeof PREFIX - 1) == 0) {
            PyObject *label = PyUnicode_FromString(text + sizeof PREFIX - 1), *interned = Py_NewRef(name);
            PyUnicode_InternInPlace(&interned);
            done = label == NULL || PyList_Append(names, interned) < 0 || PyList_Append(labels, label) < 0 ? -1 : 0;
            Py_XDECREF(label);
            Py_DECREF(interned);
        }
    }
    if (done == 0) {
        kind->labels = PyList_AsTuple(labels);
        kind->attributes = kind->labels == NULL ? NULL : PyList_AsTuple(names);
        done = kind->attributes == NULL ? -1 : 0;
        if (done == 0 && !kind->shared && kind->custom == NULL) {
            kind->places = PyMem_RawCalloc((size_t)PyList_GET_SIZE(names) + 1, sizeof *kind->places);
        }
    }
    Py_XDECREF(all);
    Py_XDECREF(names);
    Py_XDECREF(labels);
    return done;
}

/* ---- one saved tensor */

typedef struct {
    const char *name; /* torch's name for it */
    Py_ssize_t name_length;
    const char *held_by; /* NULL: a tensor is held plainly */
    Py_ssize_t held_length;
    uintptr_t address; /* 0: no storage */
    int64_t size, tensor, version;
    const int64_t *sizes;
    int ndim;
    const char *dtype;
    Py_ssize_t dtype_length;
} described;

static void put_row(bp_rows *rows, const bp_facts *facts, const described *one, int64_t storage)
{
    bp_put_uint(rows, (uint64_t)facts->number);
    bp_put_uint(rows, (uint64_t)facts->saves);
    bp_put_str(rows, one->name, one->name_length);
    if (one->held_by != NULL) {
        bp_put_str(rows, one->held_by, one->held_length);
        return; /* the rest is what a row has of itself */
    }
    bp_put_str(rows, "plain", 5);
    bp_put_id(rows, one->tensor);
    bp_put_id(rows, storage);
    bp_put_id(rows, one->address ? one->size : -1);
    bp_put_array(rows, (uint32_t)one->ndim);
    for (int i = 0; i < one->ndim; i++) {
        bp_put_int(rows, one->sizes[i]);
    }
    bp_put_str(rows, one->dtype, one->dtype_length);
    bp_put_id(rows, one->version);
    if (one->version >= 0) {
        bp_put_str(rows, "range", 5);
    } else {
        bp_put_str(rows, "unknown", 7);
    }
}

static int write_row(saved_tensors *saved, bp_facts *facts, const described *one)
{
    int64_t storage = one->address ? bp_storage_number(saved->tensors, one->address) : -1;
    if (bp_row_begin(saved->rows, one->held_by == NULL ? 11 : 4)) {
        put_row(saved->rows, facts, one, storage);
        if (bp_row_end(saved->rows) < 0) {
            return -1;
        }
    }
    facts->saves++;
    return 0;
}

/* The class of a hook's object, or of a wrapped tensor. */
static int write_object(saved_tensors *saved, bp_facts *facts, described *one, PyObject *content)
{
    PyObject *name = PyObject_GetAttr((PyObject *)Py_TYPE(content), s_qualname);
    PyObject *cut = name == NULL ? NULL : PyObject_CallOneArg(cut_name, name);
    Py_XDECREF(name);
    one->held_by = cut == NULL ? NULL : PyUnicode_AsUTF8AndSize(cut, &one->held_length);
    int done = one->held_by == NULL ? -1 : write_row(saved, facts, one);
    Py_XDECREF(cut);
    return done;
}

static int note_storage(bp_facts *facts, const described *one)
{
    for (int32_t i = 0; i < facts->storage_count; i++) {
        if (facts->storages[i].address == one->address) {
            return 0;
        }
    }
    if ((facts->storage_count & 3) == 0) {
        bp_held_storage *more = PyMem_RawRealloc(facts->storages, ((size_t)facts->storage_count + 4) * sizeof *more);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        facts->storages = more;
    }
    facts->storages[facts->storage_count++] = (bp_held_storage){one->address, one->size};
    facts->saved_bytes += (uint64_t)one->size;
    return 0;
}

/* Shape and dtype by attributes, where the memory cannot be read in place. `dtype` keeps the text alive. */
static int read_slowly(PyObject *content, described *one, int64_t *sizes, PyObject **dtype)
{
    PyObject *flag = PyObject_GetAttr(content, s_nested);
    int nested = flag == NULL ? -1 : PyObject_IsTrue(flag);
    Py_XDECREF(flag);
    PyObject *shape = nested ? NULL : PyObject_GetAttr(content, s_shape);
    one->ndim = 0;
    one->sizes = sizes;
    if (nested < 0 || (!nested && shape == NULL)) {
        return -1;
    }
    for (Py_ssize_t i = 0; shape != NULL && i < PySequence_Length(shape) && i < BP_MOST_DIMENSIONS; i++) {
        PyObject *item = PySequence_GetItem(shape, i), *size = item == NULL ? NULL : PyNumber_Long(item);
        sizes[one->ndim++] = size == NULL ? -1 : PyLong_AsLongLong(size);
        Py_XDECREF(item);
        Py_XDECREF(size);
    }
    Py_XDECREF(shape);
    PyObject *type = PyErr_Occurred() ? NULL : PyObject_GetAttr(content, s_dtype);
    *dtype = type == NULL ? NULL : PyObject_Str(type);
    Py_XDECREF(type);
    const char *text = *dtype == NULL ? NULL : PyUnicode_AsUTF8AndSize(*dtype, &one->dtype_length);
    if (text == NULL) {
        return -1;
    }
    one->dtype = text + 6; /* behind "torch." */
    one->dtype_length -= 6;
    return 0;
}

/* Its sizes are for a transform, or for the program's class, to say; -1 with an exception. */
static int is_wrapped(PyObject *content)
{
    PyObject *answer = PyObject_CallOneArg(bp_torch.functorch_wrapped, content);
    int wrapped = answer == NULL ? -1 : answer == Py_True;
    Py_XDECREF(answer);
    if (wrapped || bp_is_exact(content)) {
        return wrapped;
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.torch_access.torch_internals");
    answer = module == NULL ? NULL : PyObject_CallMethod(module, "is_answered_by_user", "O", content);
    Py_XDECREF(module);
    wrapped = answer == NULL ? -1 : answer == Py_True;
    Py_XDECREF(answer);
    return wrapped;
}

static int write_tensor(saved_tensors *saved, bp_facts *facts, described *one, PyObject *content)
{
    bp_tensor_view view;
    int64_t sizes[BP_MOST_DIMENSIONS];
    PyObject *dtype = NULL;
    one->address = bp_storage_of(content, &one->size);
    int done = PyErr_Occurred() ? -1 : 0;
    if (done == 0) {
        one->tensor = bp_find_held(saved->tensors, content, one->address);
        one->version = one->tensor < 0 || facts->leaf ? -1 : bp_version_at(saved->tensors, one->tensor, facts->seq);
        if (bp_shape_of(content, &view)) {
            one->sizes = view.sizes;
            one->ndim = view.ndim;
            one->dtype = DTYPES[view.dtype];
            one->dtype_length = (Py_ssize_t)strlen(one->dtype);
        } else {
            done = read_slowly(content, one, sizes, &dtype);
        }
    }
    if (done == 0 && !PyErr_Occurred()) {
        done = write_row(saved, facts, one);
    }
    if (done == 0 && one->address) {
        done = note_storage(facts, one);
    }
    Py_XDECREF(dtype);
    return PyErr_Occurred() ? -1 : done;
}

/* ---- reading it where it lies

   `_raw_saved_X` is an object that points into its node, and begins there with the address of the tensor that is held,
   or of none at all where a hook's object is held or the tensor is freed. That place is the same in every node of a kind:
   it is learned from the first ones, and from then on a plain tensor is read without making the object. */

#define SURE 2            /* nodes that have to agree */
#define NODE_BYTES 16384  /* of a node, at the most */

static PyTypeObject *holder_type; /* torch's SavedTensor */

/* Compare the place of what was read of an attribute with that in other nodes. */
static void learn_place(bp_place *place, PyObject *node, PyObject *held)
{
    if (!bp_torch_layout.used || place->offset < 0 || place->seen >= SURE || Py_TYPE(held) != holder_type) {
        return;
    }
    PyObject *content = PyObject_GetAttr(held, s_data);
    uintptr_t impl = content != NULL && bp_is_exact(content) ? bp_told_impl_of(content) : 0;
    Py_XDECREF(content);
    PyErr_Clear();
    if (!impl) {
        return; /* what is not plain tells nothing of the place */
    }
    uintptr_t from = bp_word((uintptr_t)node + sizeof(PyObject)), at = bp_word((uintptr_t)held + sizeof(PyObject));
    bool inside = from && at > from && at - from < NODE_BYTES && (at & 7) == 0;
    if (inside && !bp_is_told_impl(bp_word(at))) {
        return; /* a hook's object is held, though it be a tensor */
    }
    inside = inside && bp_word(at) == impl;
    int32_t offset = inside ? (int32_t)(at - from) : -1;
    place->offset = offset < 0 || (place->seen && place->offset != offset) ? -1 : offset;
    place->seen++;
}

/* The plain tensor that an attribute holds, 0 where it has to be asked. */
static uintptr_t impl_at(const bp_place *place, PyObject *node)
{
    if (!bp_torch_layout.used || place->offset <= 0 || place->seen < SURE) {
        return 0;
    }
    uintptr_t impl = bp_word(bp_word((uintptr_t)node + sizeof(PyObject)) + (uintptr_t)place->offset);
    return bp_is_told_impl(impl) && bp_impl_dtype(impl) >= 0 ? impl : 0;
}

static int write_impl(saved_tensors *saved, bp_facts *facts, described *one, uintptr_t impl)
{
    one->address = bp_impl_storage(impl);
    one->size = bp_storage_bytes(one->address);
    one->tensor = bp_find_held_impl(saved->tensors, impl);
    one->version = one->tensor < 0 || facts->leaf ? -1 : bp_version_at(saved->tensors, one->tensor, facts->seq);
    one->sizes = bp_impl_sizes(impl);
    one->ndim = bp_impl_ndim(impl);
    one->dtype = DTYPES[bp_impl_dtype(impl)];
    one->dtype_length = (Py_ssize_t)strlen(one->dtype);
    return write_row(saved, facts, one) < 0 ? -1 : note_storage(facts, one);
}

static int write_held(saved_tensors *saved, bp_facts *facts, described *one, PyObject *held)
{
    PyObject *content = PyObject_GetAttr(held, s_data);
    if (content == NULL) {
        return -1;
    }
    one->tensor = one->version = -1;
    int done = 0;
    if (content != Py_None) {
        int wrapped = bp_is_tensor(content) ? is_wrapped(content) : 1;
        done = wrapped < 0 ? -1 : wrapped ? write_object(saved, facts, one, content) : write_tensor(saved, facts, one, content);
    }
    Py_DECREF(content);
    return done;
}

/* ---- a node */

/* What an attribute holds: NULL without an exception for a custom function's saved tensors that were freed. */
static PyObject *read_attribute(PyObject *node, PyObject *name)
{
    PyObject *held = PyObject_GetAttr(node, name);
    if (held == NULL && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
    }
    return held;
}

static int write_sequence(saved_tensors *saved, bp_facts *facts, const described *label, PyObject *held)
{
    PyObject *items = PySequence_Fast(held, "saved tensors");
    int done = items == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (item == Py_None) {
            continue;
        }
        char text[600];
        described one = {.name = text};
        one.name_length = snprintf(text, sizeof text, "%.500s[%zd]", label->name, i);
        one.name_length = one.name_length > 512 ? 512 : one.name_length;
        done = write_held(saved, facts, &one, item);
    }
    Py_XDECREF(items);
    return done;
}

int bp_saved_describe(PyObject *self, bp_facts *facts, PyObject *node)
{
    if (Py_TYPE(self) != &bp_saved_type) {
        PyErr_SetString(PyExc_TypeError, "nodes.saved is not a compiled SavedTensors");
        return -1;
    }
    saved_tensors *saved = (saved_tensors *)self;
    bp_kind *kind = facts->kind;
    if (kind->attributes == NULL && list_attributes(kind, Py_TYPE(node)) < 0) {
        return -1;
    }
    PyObject *attributes = kind->attributes, *labels = kind->labels;
    int done = 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_GET_SIZE(attributes); i++) {
        uintptr_t impl = kind->places == NULL ? 0 : impl_at(&kind->places[i], node);
        if (impl) {
            described one = {0};
            one.name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(labels, i), &one.name_length);
            done = one.name == NULL ? -1 : write_impl(saved, facts, &one, impl);
            continue;
        }
        PyObject *held = read_attribute(node, PyTuple_GET_ITEM(attributes, i));
        if (held == NULL && PyErr_Occurred()) {
            return -1;
        }
        if (held != NULL && held != Py_None) {
            described one = {0};
            one.name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(labels, i), &one.name_length);
            if (one.name == NULL) {
                done = -1;
            } else if (PyTuple_Check(held) || PyList_Check(held)) {
                done = write_sequence(saved, facts, &one, held);
            } else {
                if (kind->places != NULL) {
                    learn_place(&kind->places[i], node, held);
                }
                done = write_held(saved, facts, &one, held);
            }
        }
        Py_XDECREF(held);
    }
    return done;
}

/* ---- SavedTensors as Python sees it */

static PyObject *saved_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *writer, *tensors;
    if (!PyArg_ParseTuple(args, "OO", &writer, &tensors)) {
        return NULL;
    }
    bp_rows *rows = bp_rows_of(writer, BP_SAVED);
    saved_tensors *saved = rows == NULL ? NULL : (saved_tensors *)type->tp_alloc(type, 0);
    if (saved != NULL) {
        saved->tensors = Py_NewRef(tensors);
        saved->rows = rows;
    }
    return (PyObject *)saved;
}

static int saved_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((saved_tensors *)self)->tensors);
    return 0;
}

static int saved_clear(PyObject *self)
{
    Py_CLEAR(((saved_tensors *)self)->tensors);
    return 0;
}

static void saved_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    saved_clear(self);
    Py_TYPE(self)->tp_free(self);
}

/* 1: what an attribute holds, or one of several, is there; 0: freed; -1 with an exception. */
static int is_there(PyObject *held)
{
    if (held == Py_None) {
        return 0;
    }
    if (PyTuple_Check(held) || PyList_Check(held)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(held); i++) {
            int there = is_there(PySequence_Fast_GET_ITEM(held, i));
            if (there != 0) {
                return there;
            }
        }
        return 0;
    }
    PyObject *content = PyObject_GetAttr(held, s_data);
    int there = content == NULL ? -1 : content != Py_None;
    Py_XDECREF(content);
    return there;
}

static PyObject *saved_holds(PyObject *Py_UNUSED(self), PyObject *node)
{
    PyObject *all = PyObject_Dir((PyObject *)Py_TYPE(node));
    int found = all == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; found == 0 && i < PyList_GET_SIZE(all); i++) {
        PyObject *name = PyList_GET_ITEM(all, i);
        const char *text = PyUnicode_AsUTF8(name);
        if (text == NULL || strncmp(text, PREFIX, sizeof PREFIX - 1) != 0) {
            PyErr_Clear();
            continue;
        }
        PyObject *held = read_attribute(node, name);
        if (held != NULL) {
            found = is_there(held);
            Py_DECREF(held);
        } else if (PyErr_Occurred()) {
            found = -1;
        }
    }
    Py_XDECREF(all);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

static PyMethodDef saved_methods[] = {
    {"holds", saved_holds, METH_O, "A node holds a saved tensor now."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject bp_saved_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.SavedTensors",
    .tp_doc = "Writes down what nodes hold.",
    .tp_basicsize = sizeof(saved_tensors),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = saved_new,
    .tp_dealloc = saved_dealloc,
    .tp_traverse = saved_traverse,
    .tp_clear = saved_clear,
    .tp_methods = saved_methods,
};

int bp_add_saved(PyObject *module)
{
    const struct {
        PyObject **to;
        const char *text;
    } names[] = {
        {&s_data, "data"},   {&s_qualname, "__qualname__"}, {&s_nested, "is_nested"},
        {&s_shape, "shape"}, {&s_dtype, "dtype"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *names[i].to = PyUnicode_InternFromString(names[i].text);
        if (*names[i].to == NULL) {
            return -1;
        }
    }
    PyObject *text = PyImport_ImportModule("backprobe.capture.output.text");
    cut_name = text == NULL ? NULL : PyObject_GetAttrString(text, "name");
    Py_XDECREF(text);
    PyObject *engine = PyImport_ImportModule("torch._C._autograd");
    holder_type = engine == NULL ? NULL : (PyTypeObject *)PyObject_GetAttrString(engine, "SavedTensor");
    Py_XDECREF(engine);
    PyErr_Clear(); /* another torch: nothing is learned */
    return cut_name == NULL ? -1 : PyModule_AddType(module, &bp_saved_type);
}
