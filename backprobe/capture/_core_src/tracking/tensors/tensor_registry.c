/* The tensors that were seen, and their rows. The Python twin is tensor_registry.py, which says what each thing means. */

#include "tensor_registry.h"

#include <structmember.h>
#include <string.h>

#include "description.h"
#include "layout.h"
#include "reduction.h"
#include "torch_api.h"

static const char *const CREATED_BY[] = {"op", "user", "library", "unknown"};
static const char *const PROOFS[] = {"seen", "range", "source", "unknown"};
static const char *const ROLES[] = {NULL, "parameter", "buffer", "optimizer-only", "gradient"};

/* ---- a known tensor */

static void known_dealloc(PyObject *self)
{
    bp_known *known = (bp_known *)self;
    bp_undescribe(&known->is);
    PyMem_RawFree(known->raw.bytes);
    PyMem_RawFree(known->grad_raw.bytes);
    PyMem_RawFree(known->versions);
    PyMem_RawFree(known->arrival);
    Py_XDECREF(known->ref);
    Py_XDECREF(known->grad);
    Py_XDECREF(known->cls);
    Py_XDECREF(known->created_how);
    Py_XDECREF(known->fqn);
    Py_XDECREF(known->state.grad_fn);
    Py_XDECREF(known->grad_fn);
    Py_XDECREF(known->name);
    PyObject_Free(self);
}

static bp_known *new_known(bp_ref *ref, int64_t site)
{
    bp_known *known = PyObject_New(bp_known, &bp_known_type);
    if (known == NULL) {
        return NULL;
    }
    memset((char *)known + sizeof(PyObject), 0, sizeof(bp_known) - sizeof(PyObject));
    known->ref = (bp_ref *)Py_NewRef(ref);
    known->number = ref->number;
    known->site = site;
    known->is_new = known->readable = known->grad_fn_read = 1;
    known->storage = known->view_of = known->died = known->version = known->node = known->grad_version = -1;
    known->raw.length = known->grad_raw.length = -1;
    return known;
}

static PyObject *or_none(int64_t number)
{
    return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(number);
}

static PyObject *tuple_of(const int64_t *dims, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (size == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, size);
    }
    return tuple;
}

static PyObject *text_or_none(PyObject *text) { return Py_NewRef(text == NULL ? Py_None : text); }

/* Its row as the record's type, made on demand: cold code reads it. */
static PyObject *known_row(PyObject *self, void *Py_UNUSED(closure))
{
    bp_known *known = (bp_known *)self;
    const bp_description *is = &known->is;
    PyObject *module = PyImport_ImportModule("backprobe.record");
    PyObject *type = module == NULL ? NULL : PyObject_GetAttrString(module, "Tensor");
    Py_XDECREF(module);
    PyObject *empty = PyTuple_New(0);
    PyObject *values = Py_BuildValue(
        "{s:L,s:N,s:O,s:O,s:O,s:O,s:L,s:L,s:L,s:N,s:N,s:N,s:N,s:N,s:N,s:s,s:N,s:s,s:N,s:N,s:N,s:z}", "tensor",
        (long long)known->number, "shape", is->ndim < 0 ? Py_NewRef(Py_None) : tuple_of(is->dims, is->ndim), "dtype",
        is->dtype, "device", is->device, "layout", is->layout, "cls", known->cls, "numel", (long long)is->numel,
        "size_bytes", (long long)is->size_bytes, "moment", (long long)known->moment, "stride",
        is->has_stride ? tuple_of(is->dims + is->ndim, is->ndim) : Py_NewRef(Py_None), "storage_offset",
        is->has_offset ? PyLong_FromLongLong(is->offset) : Py_NewRef(Py_None), "storage", or_none(known->storage),
        "storage_bytes", or_none(is->storage_bytes), "view_of", or_none(known->view_of), "special",
        text_or_none(is->special), "created_by", CREATED_BY[(int)known->created_by], "created_how",
        known->created_how == NULL ? PyUnicode_FromString("") : Py_NewRef(known->created_how), "proof",
        PROOFS[(int)known->proof], "site", or_none(known->site), "died", or_none(known->died), "fqn",
        text_or_none(known->fqn), "role", ROLES[(int)known->role]);
    PyObject *row = type == NULL || empty == NULL || values == NULL ? NULL : PyObject_Call(type, empty, values);
    Py_XDECREF(type);
    Py_XDECREF(empty);
    Py_XDECREF(values);
    return row;
}

static PyObject *known_state(PyObject *self, void *Py_UNUSED(closure))
{
    const bp_state *state = &((bp_known *)self)->state;
    static const char *const GRADS[] = {"none", "present", "not-read"};
    if (!state->known) {
        return PyTuple_New(0);
    }
    return Py_BuildValue("(NsNNN)", bp_flags_tuple(state), GRADS[(int)state->grad], text_or_none(state->grad_fn),
                         PyBool_FromLong(state->grad_fn_read), or_none(state->version));
}

static PyObject *known_version(PyObject *self, void *Py_UNUSED(closure)) { return or_none(((bp_known *)self)->version); }
static PyObject *known_grad_version(PyObject *self, void *Py_UNUSED(closure))
{
    return or_none(((bp_known *)self)->grad_version);
}
static PyObject *known_node(PyObject *self, void *Py_UNUSED(closure)) { return or_none(((bp_known *)self)->node); }
static PyObject *known_site(PyObject *self, void *Py_UNUSED(closure)) { return or_none(((bp_known *)self)->site); }

static PyObject *known_versions(PyObject *self, void *Py_UNUSED(closure))
{
    bp_known *known = (bp_known *)self;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < known->version_count; i++) {
        const bp_version *one = &known->versions[i];
        PyObject *item = Py_BuildValue("(LLL)", (long long)one->unsure_from, (long long)one->since, (long long)one->version);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static int64_t version_at(const bp_known *known, int64_t number)
{
    for (size_t i = known->version_count; i > 0; i--) {
        const bp_version *one = &known->versions[i - 1];
        if (number >= one->since) {
            return one->version;
        }
        if (number >= one->unsure_from) {
            return -1;
        }
    }
    return known->version_count && known->versions[0].version == 0 ? 0 : -1;
}

static PyObject *known_version_at(PyObject *self, PyObject *number)
{
    int64_t at = PyLong_AsLongLong(number);
    return at == -1 && PyErr_Occurred() ? NULL : or_none(version_at((bp_known *)self, at));
}

static PyMethodDef known_methods[] = {
    {"version_at", known_version_at, METH_O, "`_version` when a sequence number was issued."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef known_members[] = {
    {"ref", T_OBJECT, offsetof(bp_known, ref), READONLY, "Its weak reference."},
    {"number", T_LONGLONG, offsetof(bp_known, number), READONLY, "Its number in the record."},
    {"is_new", T_BOOL, offsetof(bp_known, is_new), READONLY, "It was not looked at yet."},
    {"readable", T_BOOL, offsetof(bp_known, readable), READONLY, "torch still answers for its flags."},
    {"failed", T_BOOL, offsetof(bp_known, failed), 0, "An error of ours came up while it was looked at."},
    {"grad", T_OBJECT, offsetof(bp_known, grad), READONLY, "Its gradient's reference at the last look."},
    {"grad_fn", T_OBJECT, offsetof(bp_known, grad_fn), READONLY, "The type of its node."},
    {"name", T_OBJECT, offsetof(bp_known, name), 0, "The last name it was bound to."},
    {"fqn", T_OBJECT, offsetof(bp_known, fqn), READONLY, "Its place in a module."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef known_getset[] = {
    {"row", known_row, NULL, "Its row, made on demand.", NULL},
    {"state", known_state, NULL, "Its last state.", NULL},
    {"version", known_version, NULL, "Its `_version` at the last look.", NULL},
    {"versions", known_versions, NULL, "Each `_version` it had.", NULL},
    {"grad_version", known_grad_version, NULL, "Its gradient's `_version` at the last look.", NULL},
    {"node", known_node, NULL, "Number of the node that made it.", NULL},
    {"site", known_site, NULL, "Where it was first seen.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_known_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Known",
    .tp_doc = "A tensor as long as it lives.",
    .tp_basicsize = sizeof(bp_known),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = known_dealloc,
    .tp_methods = known_methods,
    .tp_members = known_members,
    .tp_getset = known_getset,
};

/* ---- reading torch */

PyObject *bp_flags_tuple(const bp_state *state)
{
#define BP_VALUE(name) state->name,
    const char values[] = {BP_STATE_FLAGS(BP_VALUE)};
#undef BP_VALUE
    PyObject *flags = PyTuple_New((Py_ssize_t)sizeof values);
    for (size_t i = 0; flags != NULL && i < sizeof values; i++) {
        PyTuple_SET_ITEM(flags, (Py_ssize_t)i, PyBool_FromLong(values[i]));
    }
    return flags;
}

/* A flag that could not be read: 0 where torch refused, -1 with the exception. */
static int refused(void)
{
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

int bp_flags_of(PyObject *tensor, bp_state *state)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    if (impl && bp_impl_is_bare(impl)) {
#define BP_IS_UNTRACKED(name) state->name = BP_UNTRACKED_##name;
        BP_STATE_FLAGS(BP_IS_UNTRACKED)
#undef BP_IS_UNTRACKED
        return 1;
    }
    int value;
#define BP_READ(name) \
    if ((value = bp_flag(tensor, bp_name_##name)) < 0) { \
        return refused(); \
    } \
    state->name = (char)value;
    BP_STATE_FLAGS(BP_READ)
#undef BP_READ
    return 1;
}

int64_t bp_version_of(PyObject *tensor)
{
    uintptr_t impl = bp_is_exact(tensor) ? bp_told_impl_of(tensor) : 0;
    int64_t kept = impl ? bp_impl_version(impl) : -1;
    if (kept >= 0) {
        return kept;
    }
    PyObject *answer = PyObject_GetAttr(tensor, bp_name__version);
    if (answer == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) {
            return -2;
        }
        /* an inference tensor, or one that `.data =` made half a normal one: it has no counter */
        PyErr_Clear();
        return -1;
    }
    int64_t version = PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    /* `.data =` and a transform leave inference tensors whose counter answers */
    impl = bp_torch_layout.used && bp_is_exact(tensor) ? bp_impl_at(tensor) : 0;
    if (impl) {
        return bp_impl_is_inference(impl) ? -1 : version;
    }
    if (version >= 0 && bp_inference_was_seen) {
        PyObject *inference = bp_method(tensor, bp_name_is_inference);
        if (inference == NULL) {
            return -2;
        }
        version = inference == Py_True ? -1 : version;
        Py_DECREF(inference);
    }
    return version;
}

/* ---- all tensors */

int bp_write_tensor(bp_tensors *tensors, bp_known *known)
{
    bp_rows *rows = tensors->rows;
    const bp_description *is = &known->is;
    if (!bp_row_begin(rows, 22)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)known->number);
    if (is->ndim < 0) {
        bp_put_nil(rows);
    } else {
        bp_put_dims(rows, is->dims, is->ndim);
    }
    bp_put_text(rows, is->dtype);
    bp_put_text(rows, is->device);
    bp_put_text(rows, is->layout);
    bp_put_text(rows, known->cls);
    bp_put_int(rows, is->numel);
    bp_put_int(rows, is->size_bytes);
    bp_put_uint(rows, (uint64_t)known->moment);
    if (is->has_stride) {
        bp_put_dims(rows, is->dims + is->ndim, is->ndim);
    } else {
        bp_put_nil(rows);
    }
    if (is->has_offset) {
        bp_put_int(rows, is->offset);
    } else {
        bp_put_nil(rows);
    }
    bp_put_id(rows, known->storage);
    bp_put_id(rows, is->storage_bytes);
    bp_put_id(rows, known->view_of);
    bp_put_text(rows, is->special);
    bp_put_str(rows, CREATED_BY[(int)known->created_by], (Py_ssize_t)strlen(CREATED_BY[(int)known->created_by]));
    if (known->created_how == NULL) {
        bp_put_str(rows, "", 0);
    } else {
        bp_put_text(rows, known->created_how);
    }
    bp_put_str(rows, PROOFS[(int)known->proof], (Py_ssize_t)strlen(PROOFS[(int)known->proof]));
    bp_put_id(rows, known->site);
    bp_put_id(rows, known->died);
    bp_put_text(rows, known->fqn);
    if (known->role == BP_NO_ROLE) {
        bp_put_nil(rows);
    } else {
        bp_put_str(rows, ROLES[(int)known->role], (Py_ssize_t)strlen(ROLES[(int)known->role]));
    }
    return bp_row_end(rows);
}

bp_known *bp_known_at(bp_tensors *tensors, int64_t number)
{
    PyObject *key = PyLong_FromLongLong(number);
    PyObject *known = key == NULL ? NULL : PyDict_GetItemWithError(tensors->live, key);
    Py_XDECREF(key);
    PyErr_Clear();
    return (bp_known *)known;
}

bp_known *bp_known_find(bp_tensors *tensors, PyObject *tensor)
{
    bp_ref *ref = bp_ref_find(tensors->ids, tensor);
    return ref == NULL ? NULL : bp_known_at(tensors, ref->number);
}

/* The class of a tensor, cut to its cap. */
static PyObject *class_of(PyObject *tensor)
{
    static PyObject *texts[2];
    int index = Py_TYPE(tensor) == bp_torch.parameter;
    if (bp_is_exact(tensor) && texts[index] != NULL) {
        return Py_NewRef(texts[index]);
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.output.text");
    PyObject *text = module == NULL ? NULL : PyObject_CallMethod(module, "class_name", "O", tensor);
    Py_XDECREF(module);
    if (text != NULL && bp_is_exact(tensor)) {
        texts[index] = Py_NewRef(text);
    }
    return text;
}

/* Take over a description: its base becomes a number, its address a storage. */
static int settle(bp_tensors *tensors, bp_known *known, bp_description *is)
{
    int64_t view_of = -1, storage = -1;
    if (is->base != NULL) {
        bp_known *base = bp_meet(tensors, is->base, known->site, NULL);
        Py_CLEAR(is->base);
        if (base == NULL && PyErr_Occurred()) {
            return -1;
        }
        view_of = base == NULL ? -1 : base->number;
        Py_XDECREF(base);
    }
    int64_t moment = bp_moment_now((PyObject *)tensors->moments);
    if (moment < 0) {
        return -1;
    }
    if (is->address) {
        storage = bp_hold_storage(tensors->ids, known->ref, is->address);
        if (storage < 0) {
            return -1;
        }
    }
    bp_undescribe(&known->is);
    known->is = *is;
    known->view_of = view_of;
    known->storage = storage;
    if (known->is_new) {
        known->moment = moment;
    }
    return 0;
}

static bp_known *first_sight(bp_tensors *tensors, PyObject *tensor, int64_t site, PyObject *how)
{
    bp_ref *ref = bp_ref_of(tensors->ids, tensor);
    bp_known *known = ref == NULL ? NULL : new_known(ref, site);
    bp_description is;
    if (known == NULL || bp_describe(tensor, &is) < 0) {
        Py_XDECREF(known);
        return NULL;
    }
    bp_state state = {0};
    known->cls = class_of(tensor);
    if (known->cls == NULL || settle(tensors, known, &is) < 0 ||
        bp_flags_of(tensor, &state) < 0) {
        if (known->is.dtype != is.dtype) {
            bp_undescribe(&is);
        }
        Py_DECREF(known);
        return NULL;
    }
    int has_how = how != NULL && how != Py_None && PyUnicode_GET_LENGTH(how) > 0;
    known->created_how = has_how ? Py_NewRef(how) : NULL;
    known->created_by = !state.requires_grad ? BP_BY_UNKNOWN : state.is_leaf ? BP_BY_USER : BP_BY_OP;
    known->proof = state.requires_grad ? BP_SEEN : has_how ? BP_SOURCE : BP_UNKNOWN;
    PyObject *key = PyLong_FromLongLong(known->number);
    if (key == NULL || bp_write_tensor(tensors, known) < 0 || PyDict_SetItem(tensors->live, key, (PyObject *)known) < 0) {
        Py_XDECREF(key);
        Py_DECREF(known);
        return NULL;
    }
    Py_DECREF(key);
    return known;
}

static int says(PyObject *question, PyObject *tensor)
{
    PyObject *answer = PyObject_CallOneArg(question, tensor);
    int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return truth;
}

/* 1: a value of a transform, or a parameter that has no shape yet: not recorded; 0: recorded; -1: an exception. */
static int is_left_out(PyObject *tensor)
{
    int wrapped = says(bp_torch.functorch_wrapped, tensor);
    if (!wrapped) {
        wrapped = says(bp_torch.legacy_batched, tensor);
    }
    if (wrapped || Py_TYPE(tensor) == bp_torch.tensor || Py_TYPE(tensor) == bp_torch.parameter) {
        return wrapped;
    }
    return PyObject_IsInstance(tensor, bp_torch.uninitialized);
}

bp_known *bp_meet(bp_tensors *tensors, PyObject *tensor, int64_t site, PyObject *how)
{
    bp_known *known = bp_known_find(tensors, tensor);
    if (known != NULL) {
        return (bp_known *)Py_NewRef(known);
    }
    if (bp_is_tracing()) {
        return NULL;
    }
    if (is_left_out(tensor)) {
        return NULL; /* -1: with its exception */
    }
    if (tensors->seen >= tensors->most) {
        PyObject *done = PyObject_CallMethod(tensors->writer, "cut", "ssL", "tensors", "the record holds its most tensors",
                                             (long long)tensors->most);
        Py_XDECREF(done);
        return NULL;
    }
    tensors->seen++;
    return first_sight(tensors, tensor, site, how);
}

static int same_dims(const bp_description *one, const bp_description *other)
{
    return one->ndim == other->ndim && (one->ndim <= 0 || !memcmp(one->dims, other->dims, (size_t)one->ndim * sizeof(int64_t)));
}

int bp_refresh(bp_tensors *tensors, bp_known *known, PyObject *tensor)
{
    if (known->is.ndim < 0) {
        return 0;
    }
    bp_description is;
    if (bp_describe(tensor, &is) < 0) {
        return -1;
    }
    if (PyUnicode_Compare(is.dtype, known->is.dtype) == 0 && PyUnicode_Compare(is.device, known->is.device) == 0 &&
        same_dims(&is, &known->is) && is.address == known->ref->storage) {
        bp_undescribe(&is);
        return 0;
    }
    if (settle(tensors, known, &is) < 0) {
        bp_undescribe(&is);
        return -1;
    }
    return bp_write_tensor(tensors, known);
}

int bp_note(bp_tensors *tensors, bp_known *known, const char *why)
{
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.tensor_registry");
    PyObject *done = module == NULL ? NULL
                                    : PyObject_CallMethod(module, "write_note", "OOLs", tensors->writer, tensors->moments,
                                                          (long long)known->number, why);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Drop the first entries of the dead: they are buried. */
static void drop_dead(bp_identities *ids, size_t count)
{
    ids->dead_count -= count;
    memmove(ids->dead, ids->dead + count, ids->dead_count * sizeof *ids->dead);
}

int bp_bury(bp_tensors *tensors)
{
    bp_identities *ids = tensors->ids;
    int done = 0;
    /* more may die meanwhile, and another thread may close the run, which takes the dead away: both are read anew */
    for (size_t at = 0; done == 0 && at < ids->dead_count; at++) {
        bp_ref *ref = (bp_ref *)Py_NewRef(ids->dead[at]);
        PyObject *key = PyLong_FromLongLong(ref->number);
        PyObject *known = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(tensors->live, key));
        int64_t moment = known == NULL ? 0 : bp_moment_now((PyObject *)tensors->moments);
        if (moment < 0 || PyErr_Occurred()) {
            done = -1;
            if (!ids->closed) {
                drop_dead(ids, at); /* this one waits for the next time */
            }
        } else if (!ids->closed) {
            Py_CLEAR(ids->dead[at]);
            bp_forget(ids, ref);
            if (known != NULL) {
                ((bp_known *)known)->died = moment;
                done = PyDict_DelItem(tensors->live, key) < 0 ? -1 : bp_write_tensor(tensors, (bp_known *)known);
            }
            if (done < 0 && !ids->closed) {
                drop_dead(ids, at + 1);
            }
        }
        Py_XDECREF(known);
        Py_XDECREF(key);
        Py_DECREF(ref);
    }
    if (done == 0) {
        ids->dead_count = 0;
    }
    return done;
}

/* ---- for the parts of the graph */

static bp_tensors *these(PyObject *self)
{
    return Py_TYPE(self) == &bp_tensors_type ? (bp_tensors *)self : NULL;
}

int64_t bp_find(PyObject *self, PyObject *tensor)
{
    bp_tensors *tensors = these(self);
    bp_known *known = tensors == NULL ? NULL : bp_known_find(tensors, tensor);
    return known == NULL ? -1 : known->number;
}

int64_t bp_version_at(PyObject *self, int64_t tensor, uint64_t number)
{
    bp_tensors *tensors = these(self);
    bp_known *known = tensors == NULL ? NULL : bp_known_at(tensors, tensor);
    return known == NULL || number > INT64_MAX ? -1 : version_at(known, (int64_t)number);
}

int64_t bp_storage_number(PyObject *self, uintptr_t address)
{
    bp_tensors *tensors = these(self);
    bp_storage *storage = tensors == NULL || !address ? NULL : bp_map_get(&tensors->ids->storages, address);
    return bp_is_held(storage) ? storage->number : -1;
}

/* Some holder of a storage has the sizes of a tensor: only then is the tensor described. */
static bool may_be_held(bp_tensors *tensors, const bp_storage *storage, PyObject *content)
{
    bp_tensor_view view;
    if (!bp_shape_of(content, &view)) {
        return true;
    }
    for (size_t i = 0; i < storage->count; i++) {
        bp_known *other = bp_known_at(tensors, storage->holders[i]->number);
        if (other != NULL && bp_ref_lives(other->ref) && other->created_by == BP_BY_OP && other->is.has_stride &&
            other->is.ndim == view.ndim && !memcmp(other->is.dims, view.sizes, (size_t)view.ndim * sizeof(int64_t))) {
            return true;
        }
    }
    return false;
}

/* A tensor of the record whose storage, sizes, strides and offset are those of a plain tensor that is saved. */
int64_t bp_find_held_impl(PyObject *self, uintptr_t impl)
{
    bp_tensors *tensors = these(self);
    if (tensors == NULL) {
        return -1;
    }
    PyObject *object = (PyObject *)bp_word(impl + bp_torch_layout.object); /* an address: it may be gone */
    bp_known *known = object == NULL ? NULL : bp_known_find(tensors, object);
    if (known != NULL) {
        return known->number;
    }
    bp_storage *storage = bp_map_get(&tensors->ids->storages, bp_impl_storage(impl));
    int ndim = bp_impl_ndim(impl);
    for (size_t i = 0; storage != NULL && i < storage->count; i++) {
        bp_known *other = bp_known_at(tensors, storage->holders[i]->number);
        if (other != NULL && bp_ref_lives(other->ref) && other->created_by == BP_BY_OP && other->is.has_stride &&
            other->is.ndim == ndim && other->is.offset == bp_impl_offset(impl) &&
            !memcmp(other->is.dims, bp_impl_sizes(impl), (size_t)ndim * sizeof(int64_t)) &&
            !memcmp(other->is.dims + ndim, bp_impl_strides(impl), (size_t)ndim * sizeof(int64_t))) {
            return other->number;
        }
    }
    return -1;
}

int64_t bp_find_held(PyObject *self, PyObject *content, uintptr_t address)
{
    bp_tensors *tensors = these(self);
    int64_t number = bp_find(self, content);
    if (tensors == NULL || number >= 0 || !address) {
        return number;
    }
    bp_storage *storage = bp_map_get(&tensors->ids->storages, address);
    bp_description is;
    if (storage == NULL || !storage->count || !may_be_held(tensors, storage, content)) {
        return -1;
    }
    if (bp_describe(content, &is) < 0) {
        PyErr_Clear();
        return -1;
    }
    for (size_t i = 0; number < 0 && is.ndim >= 0 && is.has_stride && i < storage->count; i++) {
        bp_known *other = bp_known_at(tensors, storage->holders[i]->number);
        if (other != NULL && bp_ref_lives(other->ref) && other->created_by == BP_BY_OP && other->is.has_stride && other->is.ndim == is.ndim &&
            other->is.offset == is.offset && !memcmp(other->is.dims, is.dims, (size_t)is.ndim * 2 * sizeof(int64_t))) {
            number = other->number;
        }
    }
    bp_undescribe(&is);
    return number;
}

/* ---- as Python sees them */

static int tensors_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_tensors *tensors = (bp_tensors *)self;
    PyObject *writer, *moments, *options;
    if (bp_torch_ready() < 0 || bp_describe_ready() < 0 ||
        !PyArg_ParseTuple(args, "OO!O", &writer, &bp_moments_type, &moments, &options)) {
        return -1;
    }
    PyObject *caps = PyObject_GetAttr(options, bp_name_caps);
    tensors->most = caps == NULL ? -1 : bp_integer(caps, bp_name_tensors, -1);
    Py_XDECREF(caps);
    tensors->rows = tensors->most < 0 ? NULL : bp_rows_of(writer, BP_TENSORS);
    if (tensors->rows == NULL || tensors->ids != NULL) {
        return -1;
    }
    tensors->ids = bp_new_identities();
    tensors->live = PyDict_New();
    tensors->writer = Py_NewRef(writer);
    tensors->moments = (bp_moments *)Py_NewRef(moments);
    return tensors->ids == NULL || tensors->live == NULL ? -1 : 0;
}

static int tensors_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((bp_tensors *)self)->writer);
    Py_VISIT((PyObject *)((bp_tensors *)self)->moments);
    Py_VISIT(((bp_tensors *)self)->live);
    return 0;
}

static int tensors_clear(PyObject *self)
{
    bp_tensors *tensors = (bp_tensors *)self;
    if (tensors->ids != NULL) {
        bp_close_identities(tensors->ids);
    }
    Py_CLEAR(tensors->live);
    Py_CLEAR(tensors->writer);
    Py_CLEAR(tensors->moments);
    return 0;
}

static void tensors_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    tensors_clear(self);
    Py_CLEAR(((bp_tensors *)self)->ids);
    Py_TYPE(self)->tp_free(self);
}

static int is_open(bp_tensors *tensors)
{
    if (tensors->ids == NULL || tensors->ids->closed) {
        PyErr_SetString(PyExc_RuntimeError, "the tensors of this run were let go");
        return 0;
    }
    return 1;
}

static PyObject *tensors_find(PyObject *self, PyObject *tensor)
{
    bp_tensors *tensors = (bp_tensors *)self;
    bp_known *known = is_open(tensors) ? bp_known_find(tensors, tensor) : NULL;
    return PyErr_Occurred() ? NULL : Py_NewRef(known == NULL ? Py_None : (PyObject *)known);
}

static PyObject *tensors_meet(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"tensor", "site", "how", NULL};
    bp_tensors *tensors = (bp_tensors *)self;
    PyObject *tensor, *site = Py_None, *how = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OU", keywords, &tensor, &site, &how) || !is_open(tensors)) {
        return NULL;
    }
    int64_t at = site == Py_None ? -1 : PyLong_AsLongLong(site);
    bp_known *known = PyErr_Occurred() ? NULL : bp_meet(tensors, tensor, at, how);
    if (known == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return (PyObject *)known;
}

static PyObject *tensors_number(PyObject *self, PyObject *tensor)
{
    bp_tensors *tensors = (bp_tensors *)self;
    bp_ref *ref = is_open(tensors) ? bp_ref_of(tensors->ids, tensor) : NULL;
    return ref == NULL ? NULL : PyLong_FromLongLong(ref->number);
}

static int index_of(PyObject *text, const char *const *names, int count)
{
    if (text == Py_None) {
        return 0;
    }
    const char *utf8 = PyUnicode_AsUTF8(text);
    for (int i = 0; utf8 != NULL && i < count; i++) {
        if (names[i] != NULL && !strcmp(names[i], utf8)) {
            return i;
        }
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "%R is no such value", text);
    }
    return -1;
}

static int change(bp_known *known, const char *field, PyObject *value)
{
    int index = 0;
    if (!strcmp(field, "died")) {
        known->died = value == Py_None ? -1 : PyLong_AsLongLong(value);
    } else if (!strcmp(field, "fqn")) {
        Py_XSETREF(known->fqn, value == Py_None ? NULL : Py_NewRef(value));
    } else if (!strcmp(field, "created_how")) {
        Py_XSETREF(known->created_how, Py_NewRef(value));
    } else if (!strcmp(field, "role") && (index = index_of(value, ROLES, 5)) >= 0) {
        known->role = (char)index;
    } else if (!strcmp(field, "created_by") && (index = index_of(value, CREATED_BY, 4)) >= 0) {
        known->created_by = (char)index;
    } else if (!strcmp(field, "proof") && (index = index_of(value, PROOFS, 4)) >= 0) {
        known->proof = (char)index;
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "a tensor's %s is not changed", field);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *tensors_update(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *known, *key, *value;
    Py_ssize_t at = 0;
    if (!PyArg_ParseTuple(args, "O!", &bp_known_type, &known)) {
        return NULL;
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        const char *field = PyUnicode_AsUTF8(key);
        if (field == NULL || change((bp_known *)known, field, value) < 0) {
            return NULL;
        }
    }
    if (bp_write_tensor((bp_tensors *)self, (bp_known *)known) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tensors_note(PyObject *self, PyObject *args)
{
    PyObject *known;
    const char *why;
    if (!PyArg_ParseTuple(args, "O!s", &bp_known_type, &known, &why) ||
        bp_note((bp_tensors *)self, (bp_known *)known, why) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tensors_bury(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (!is_open((bp_tensors *)self) || bp_bury((bp_tensors *)self) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tensors_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bp_tensors *tensors = (bp_tensors *)self;
    PyDict_Clear(tensors->live);
    bp_close_identities(tensors->ids);
    Py_RETURN_NONE;
}

static PyMethodDef tensors_methods[] = {
    {"find", tensors_find, METH_O, "What is known of a tensor; None if it was never met."},
    {"meet", (PyCFunction)(void (*)(void))tensors_meet, METH_VARARGS | METH_KEYWORDS, "What is known of a tensor, from now on."},
    {"number", tensors_number, METH_O, "The identity of any tensor, met or not."},
    {"update", (PyCFunction)(void (*)(void))tensors_update, METH_VARARGS | METH_KEYWORDS, "Write a tensor's row again with other values."},
    {"note", tensors_note, METH_VARARGS, "Say why something of a tensor is not recorded."},
    {"bury", tensors_bury, METH_NOARGS, "Write down the tensors that died since the last time."},
    {"close", tensors_close, METH_NOARGS, "Forget everything."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef tensors_members[] = {
    {"ids", T_OBJECT, offsetof(bp_tensors, ids), READONLY, "Which tensor is which."},
    {"live", T_OBJECT, offsetof(bp_tensors, live), READONLY, "Known tensors by number."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject bp_tensors_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Tensors",
    .tp_doc = "Meets tensors, up to a cap; holds them by weak references.",
    .tp_basicsize = sizeof(bp_tensors),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = tensors_init,
    .tp_dealloc = tensors_dealloc,
    .tp_traverse = tensors_traverse,
    .tp_clear = tensors_clear,
    .tp_methods = tensors_methods,
    .tp_members = tensors_members,
};

int bp_add_tensors(PyObject *module)
{
    return PyType_Ready(&bp_known_type) < 0 ? -1 : PyModule_AddType(module, &bp_tensors_type);
}
