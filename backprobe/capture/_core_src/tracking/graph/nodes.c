/* The autograd nodes that were met: numbered, described once, watched until they die. Twin: nodes.py. */

#include "nodes.h"
#include "description.h"
#include "torch_api.h"

#include <string.h>
#include <structmember.h>

#define ACCUMULATE UINT64_MAX
#define MOST_OUTPUTS 256

typedef bp_sentinel sentinel;

static PyObject *s_sequence_nr, *s_name, *s_variable, *s_metadata, *s_shape, *s_dtype, *s_device, *s_forward_cls,
    *s_qualname, *s_cut, *s_number, *s_roots_node, *s_next_functions, *s_grad_fn;
static PyTypeObject kind_type;

/* ---- facts */

void bp_facts_drop(bp_facts *facts)
{
    if (--facts->refs > 0) {
        return;
    }
    bp_kind *kind = facts->kind;
    PyMem_RawFree(facts->storages);
    PyMem_RawFree(facts->outputs);
    PyMem_RawFree(facts->tensors);
    PyMem_RawFree(facts);
    Py_XDECREF(kind);
}

static size_t place(const bp_nodes *nodes, const void *key)
{
    return (size_t)((((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ULL) >> 32) & (nodes->room - 1);
}

static bp_facts *look_up(const bp_nodes *nodes, const void *key)
{
    for (size_t at = place(nodes, key); nodes->room && nodes->table[at] != NULL; at = (at + 1) & (nodes->room - 1)) {
        if (nodes->table[at]->key == key) {
            return nodes->table[at];
        }
    }
    return NULL;
}

/* What stays the same of a node while it lives. With torch 2.11 its Python object does not: once nobody holds that one,
   the next read of `grad_fn` makes another. The object of a node written in C++ is a head and a pointer to the node, with
   or without the count of a shared pointer behind it; that of a `torch.autograd.Function` is larger, and lives as long
   as its node. */
static const void *key_of(PyObject *node)
{
    size_t behind = (size_t)Py_TYPE(node)->tp_basicsize - sizeof(PyObject);
    if (behind == sizeof(void *) || behind == 2 * sizeof(void *)) {
        return *(const void *const *)((const char *)node + sizeof(PyObject));
    }
    return node;
}

static int make_room(bp_nodes *nodes)
{
    if (nodes->room && nodes->live * 2 < nodes->room) {
        return 0;
    }
    size_t old_room = nodes->room;
    bp_facts **old = nodes->table, **table = PyMem_RawCalloc(old_room ? old_room * 2 : 1024, sizeof *table);
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    nodes->table = table;
    nodes->room = old_room ? old_room * 2 : 1024;
    for (size_t i = 0; i < old_room; i++) {
        if (old[i] != NULL) {
            size_t at = place(nodes, old[i]->key);
            while (table[at] != NULL) {
                at = (at + 1) & (nodes->room - 1);
            }
            table[at] = old[i];
        }
    }
    PyMem_RawFree(old);
    return 0;
}

static void put(bp_nodes *nodes, bp_facts *facts)
{
    size_t at = place(nodes, facts->key);
    while (nodes->table[at] != NULL) {
        at = (at + 1) & (nodes->room - 1);
    }
    nodes->table[at] = facts;
    nodes->live++;
}

/* Take facts out; those behind move up, so that no place in between is empty. */
static void take_out(bp_nodes *nodes, bp_facts *facts)
{
    size_t mask = nodes->room - 1, at = place(nodes, facts->key);
    while (nodes->table[at] != facts) {
        if (nodes->table[at] == NULL) {
            return;
        }
        at = (at + 1) & mask;
    }
    nodes->live--;
    for (size_t next = (at + 1) & mask; nodes->table[next] != NULL; next = (next + 1) & mask) {
        size_t home = place(nodes, nodes->table[next]->key);
        if (((next - home) & mask) >= ((next - at) & mask)) {
            nodes->table[at] = nodes->table[next];
            at = next;
        }
    }
    nodes->table[at] = NULL;
}

bp_facts *bp_node_known(bp_nodes *nodes, PyObject *node) { return look_up(nodes, key_of(node)); }

uint32_t bp_nodes_sweep(bp_nodes *nodes) { return ++nodes->mark; }

/* Its outputs are known, or never will be. */
static void told(bp_facts *facts)
{
    if (facts->untold) {
        facts->untold = false;
        facts->nodes->untold--;
    }
}

/* ---- the sentinel */

static PyObject *sentinel_call(PyObject *self, PyObject *const *args, size_t given, PyObject *Py_UNUSED(names))
{
    bp_facts *facts = ((sentinel *)self)->facts;
    if (facts != NULL && facts->nodes != NULL && facts->nodes->passes != NULL && PyVectorcall_NARGS(given) == 1) {
        bp_arrived(facts->nodes->passes, facts, args[0]);
    }
    Py_RETURN_NONE;
}

static void sentinel_dealloc(PyObject *self)
{
    bp_facts *facts = ((sentinel *)self)->facts;
    Py_TYPE(self)->tp_free(self);
    if (facts == NULL) {
        return;
    }
    bp_nodes *nodes = facts->nodes;
    if (nodes == NULL) {
        bp_facts_drop(facts);
        return;
    }
    take_out(nodes, facts);
    told(facts);
    facts->is_dead = true;
    facts->next_dead = NULL; /* the sentinel's count goes to the queue */
    if (nodes->dead_last == NULL) {
        nodes->dead_first = facts;
    } else {
        nodes->dead_last->next_dead = facts;
    }
    nodes->dead_last = facts;
}

static PyObject *number_or_none(int64_t value)
{
    return value < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(value);
}

static PyObject *sentinel_number(PyObject *self, void *Py_UNUSED(closure))
{
    return number_or_none(((sentinel *)self)->facts->number);
}

static PyObject *sentinel_seq(PyObject *self, void *Py_UNUSED(closure))
{
    bp_facts *facts = ((sentinel *)self)->facts;
    return number_or_none(facts->leaf ? -1 : (int64_t)facts->seq);
}

static PyObject *sentinel_freed(PyObject *self, void *Py_UNUSED(closure))
{
    return number_or_none(((sentinel *)self)->facts->freed_by);
}

static PyObject *sentinel_type_name(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((sentinel *)self)->facts->kind->name);
}

static PyGetSetDef sentinel_getset[] = {
    {"number", sentinel_number, NULL, "Number of the node in the record.", NULL},
    {"type", sentinel_type_name, NULL, "The name of its type in the record.", NULL},
    {"seq", sentinel_seq, NULL, "Its autograd sequence number; None for AccumulateGrad.", NULL},
    {"freed_by", sentinel_freed, NULL, "The call that freed what it saved.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_sentinel_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Sentinel",
    .tp_doc = "A pre-hook that tells which gradients reach its node; it changes nothing and never raises.",
    .tp_basicsize = sizeof(sentinel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(sentinel, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = sentinel_dealloc,
    .tp_getset = sentinel_getset,
};

/* ---- kinds */

static void kind_dealloc(PyObject *self)
{
    bp_kind *kind = (bp_kind *)self;
    Py_XDECREF(kind->name);
    Py_XDECREF(kind->custom);
    Py_XDECREF(kind->attributes);
    Py_XDECREF(kind->labels);
    PyMem_RawFree(kind->places);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject kind_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Kind",
    .tp_basicsize = sizeof(bp_kind),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = kind_dealloc,
};

/* A text cut to what a record's name holds. */
static PyObject *short_name(PyObject *text)
{
    if (text == NULL) {
        return NULL;
    }
    if (PyUnicode_IS_ASCII(text) && PyUnicode_GET_LENGTH(text) <= 512) {
        return text;
    }
    PyObject *cut = PyObject_CallOneArg(s_cut, text);
    Py_DECREF(text);
    return cut;
}

/* `node.name()` without its C++ namespace. */
static PyObject *plain_name(PyObject *node)
{
    PyObject *text = PyObject_CallMethodNoArgs(node, s_name);
    if (text == NULL || !PyUnicode_Check(text)) {
        return text;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(text), from = 0;
    for (Py_ssize_t i = 0; i + 1 < length; i++) {
        if (PyUnicode_READ_CHAR(text, i) == ':' && PyUnicode_READ_CHAR(text, i + 1) == ':') {
            from = i + 2;
        }
    }
    if (from) {
        PyObject *rest = PyUnicode_Substring(text, from, length);
        Py_DECREF(text);
        text = rest;
    }
    return short_name(text);
}

static bp_kind *new_kind(PyObject *name, PyTypeObject *type)
{
    bp_kind *kind = PyObject_New(bp_kind, &kind_type);
    if (kind == NULL) {
        return NULL;
    }
    kind->name = Py_NewRef(name);
    kind->places = NULL;
    kind->custom = kind->attributes = kind->labels = NULL;
    kind->several = true; /* until one was seen with one output */
    const char *dot = strrchr(type->tp_name, '.'), *text = PyUnicode_AsUTF8(name);
    PyObject *forward = text == NULL ? NULL : PyObject_GetAttr((PyObject *)type, s_forward_cls);
    if (forward != NULL) {
        kind->custom = short_name(PyObject_GetAttr(forward, s_qualname));
        Py_DECREF(forward);
    } else if (text != NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    }
    if (PyErr_Occurred()) {
        Py_DECREF(kind);
        return NULL;
    }
    kind->shared = kind->custom == NULL && strcmp(dot == NULL ? type->tp_name : dot + 1, text) != 0;
    kind->varies = kind->shared || kind->custom != NULL;
    static const char *const LISTS[] = {"Split", "Unbind", "Chunk", "oreach", "Graph", "Error", "NotImplemented"};
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        kind->varies |= strstr(text, LISTS[i]) != NULL;
    }
    return kind;
}

static bp_kind *named_kind(bp_nodes *nodes, PyObject *node)
{
    PyTypeObject *type = Py_TYPE(node);
    PyObject *name = plain_name(node);
    if (name == NULL || !PyUnicode_Check(name)) {
        Py_XDECREF(name);
        return NULL;
    }
    bp_kind *kind = (bp_kind *)PyDict_GetItemWithError(nodes->kinds, name);
    if (kind != NULL && kind->shared) {
        Py_DECREF(name);
        return (bp_kind *)Py_NewRef(kind);
    }
    kind = PyErr_Occurred() ? NULL : new_kind(name, type);
    if (kind != NULL) {
        /* by name where several names share the type; two types of one name have an entry each */
        PyObject *key = kind->shared ? name : (PyObject *)type;
        if (PyDict_SetItem(nodes->kinds, key, (PyObject *)kind) < 0) {
            Py_CLEAR(kind);
        }
    }
    Py_DECREF(name);
    return kind;
}

static bp_kind *kind_of(bp_nodes *nodes, PyObject *node)
{
    PyObject *found = PyDict_GetItemWithError(nodes->kinds, (PyObject *)Py_TYPE(node));
    if (found != NULL) {
        return (bp_kind *)Py_NewRef(found);
    }
    return PyErr_Occurred() ? NULL : named_kind(nodes, node);
}

/* ---- outputs */

typedef struct {
    char *bytes;
    size_t size, room;
} text;

/* A value and the text of it. */
typedef struct {
    PyObject *value;
    char text[48];
    size_t length;
} memory;

static char *reserve(text *out, size_t more)
{
    if (out->size + more > out->room) {
        size_t room = out->room ? out->room * 2 : 64;
        while (room < out->size + more) {
            room *= 2;
        }
        char *bytes = PyMem_RawRealloc(out->bytes, room);
        if (bytes == NULL) {
            return NULL;
        }
        out->bytes = bytes;
        out->room = room;
    }
    return out->bytes + out->size;
}

static int put_array(text *out, size_t count)
{
    char *at = reserve(out, 3);
    if (at == NULL) {
        return -1;
    }
    if (count < 16) {
        *at++ = (char)(0x90 | count);
    } else {
        *at++ = (char)0xDC;
        *at++ = (char)(count >> 8);
        *at++ = (char)count;
    }
    out->size = (size_t)(at - out->bytes);
    return 0;
}

static int put_text(text *out, const char *from, size_t length)
{
    length = length > 255 ? 255 : length;
    char *at = reserve(out, length + 2);
    if (at == NULL) {
        return -1;
    }
    if (length >= 32) {
        *at++ = (char)0xD9;
        *at++ = (char)length;
    } else {
        *at++ = (char)(0xA0 | length);
    }
    memcpy(at, from, length);
    out->size = (size_t)(at + length - out->bytes);
    return 0;
}

static int put_size(text *out, uint64_t size)
{
    char *at = reserve(out, 9);
    if (at == NULL) {
        return -1;
    }
    out->size = (size_t)(bp_pack_uint(at, size) - out->bytes);
    return 0;
}

/* `str(value)` without its first `skip` characters. */
static int put_str(text *out, PyObject *value, size_t skip)
{
    PyObject *string = value == NULL ? NULL : PyObject_Str(value);
    Py_ssize_t length = 0;
    const char *utf8 = string == NULL ? NULL : PyUnicode_AsUTF8AndSize(string, &length);
    int done = utf8 == NULL || (size_t)length < skip ? -1 : put_text(out, utf8 + skip, (size_t)length - skip);
    Py_XDECREF(string);
    return done;
}

/* The same; the last value and its text are remembered, for most devices and dtypes of a program are equal. */
static int put_str_of(text *out, PyObject *value, size_t skip, memory *last)
{
    int same = last->value == NULL ? 0 : PyObject_RichCompareBool(last->value, value, Py_EQ);
    if (same < 0) {
        return -1;
    }
    if (same) {
        return put_text(out, last->text, last->length);
    }
    size_t start = out->size;
    if (put_str(out, value, skip) < 0) {
        return -1;
    }
    size_t head = (unsigned char)out->bytes[start] == 0xD9 ? 2 : 1, length = out->size - start - head;
    if (length <= sizeof last->text) {
        memcpy(last->text, out->bytes + start + head, length);
        last->length = length;
        Py_XSETREF(last->value, Py_NewRef(value));
    }
    return 0;
}

static int put_shape(text *out, PyObject *meta)
{
    PyObject *shape = PyObject_GetAttr(meta, s_shape);
    PyObject *sizes = shape == NULL ? NULL : PySequence_Tuple(shape);
    Py_XDECREF(shape);
    int done = sizes == NULL ? -1 : put_array(out, (size_t)PyTuple_GET_SIZE(sizes));
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_GET_SIZE(sizes); i++) {
        PyObject *size = PyNumber_Long(PyTuple_GET_ITEM(sizes, i));
        long long value = size == NULL ? -1 : PyLong_AsLongLong(size);
        Py_XDECREF(size);
        done = value < 0 ? -1 : put_size(out, (uint64_t)value);
    }
    Py_XDECREF(sizes);
    return done;
}

static int put_output(text *out, PyObject *meta)
{
    static memory last_dtype, last_device;
    size_t start = out->size;
    PyObject *dtype = NULL, *device = NULL;
    int done = put_array(out, 3) < 0 || put_shape(out, meta) < 0 ? -1 : 0;
    if (done == 0) {
        dtype = PyObject_GetAttr(meta, s_dtype);
        device = dtype == NULL ? NULL : PyObject_GetAttr(meta, s_device);
        done = device == NULL || put_str_of(out, dtype, 6, &last_dtype) < 0 ||
                       put_str_of(out, device, 0, &last_device) < 0 ? -1 : 0;
    }
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    if (done == 0) {
        return 0;
    }
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    out->size = start; /* a nested or undefined output has no shape */
    return put_array(out, 3) < 0 || put_array(out, 0) < 0 || put_text(out, "", 0) < 0 || put_text(out, "", 0) < 0 ? -1
                                                                                                                 : 0;
}

static void keep_outputs(bp_facts *facts, text *out, Py_ssize_t count)
{
    PyMem_RawFree(facts->outputs);
    facts->outputs = out->bytes;
    facts->outputs_size = (int32_t)out->size;
    facts->output_count = (int32_t)count;
    if (facts->nodes != NULL) {
        told(facts);
    }
}

int bp_node_outputs(bp_facts *facts, PyObject *node)
{
    PyObject *given = PyObject_GetAttr(node, s_metadata);
    PyObject *metas = given == NULL ? NULL : PySequence_Tuple(given);
    Py_XDECREF(given);
    if (metas == NULL) {
        return -1;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(metas);
    facts->kind->several = count != 1;
    count = count > MOST_OUTPUTS ? MOST_OUTPUTS : count;
    text out = {NULL, 0, 0};
    int done = put_array(&out, (size_t)count);
    for (Py_ssize_t i = 0; done == 0 && i < count; i++) {
        done = put_output(&out, PyTuple_GET_ITEM(metas, i));
    }
    Py_DECREF(metas);
    if (done < 0) {
        PyMem_RawFree(out.bytes);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    keep_outputs(facts, &out, count);
    return 0;
}

void bp_node_output_is(bp_facts *facts, PyObject *tensor, const bp_tensor_view *view)
{
    text out = {NULL, 0, 0};
    const char *dtype = bp_dtype_label(view->dtype), *place = "cpu";
    PyObject *device = bp_is_away(tensor) ? bp_device_text(tensor) : NULL;
    if (device != NULL || PyErr_Occurred()) {
        place = device == NULL ? NULL : PyUnicode_AsUTF8(device);
    }
    int done = place == NULL || put_array(&out, 1) < 0 || put_array(&out, 3) < 0 || put_array(&out, (size_t)view->ndim) < 0
                   ? -1
                   : 0;
    for (int i = 0; done == 0 && i < view->ndim; i++) {
        done = put_size(&out, (uint64_t)view->sizes[i]);
    }
    if (done == 0) {
        done = put_text(&out, dtype, strlen(dtype)) < 0 || put_text(&out, place, strlen(place)) < 0 ? -1 : 0;
    }
    Py_XDECREF(device);
    if (done < 0) {
        PyErr_Clear();
        PyMem_RawFree(out.bytes);
        return;
    }
    keep_outputs(facts, &out, 1);
    facts->stale = true;
}

/* ---- rows */

int bp_node_row(bp_nodes *nodes, bp_facts *facts)
{
    static const char *const BORN[] = {"forward", "backward", "recompute"};
    bp_rows *rows = nodes->rows;
    facts->stale = false;
    if (!bp_row_begin(rows, 17)) {
        return 0;
    }
    const char *born = BORN[facts->born_call < 0 ? 0 : facts->backward ? 1 : 2];
    bp_put_uint(rows, (uint64_t)facts->number);
    bp_put_text(rows, facts->kind->name);
    bp_put_uint(rows, (uint64_t)facts->thread);
    bp_put_uint(rows, (uint64_t)facts->first_seen);
    if (facts->leaf) {
        bp_put_nil(rows);
    } else {
        bp_put_uint(rows, facts->seq);
    }
    bp_put_id(rows, facts->site);
    bp_put_str(rows, facts->site < 0 ? "unknown" : "range", facts->site < 0 ? 7 : 5);
    bp_put_id(rows, facts->module_call);
    bp_put_str(rows, born, (Py_ssize_t)strlen(born));
    bp_put_id(rows, facts->born_call);
    bp_put_uint(rows, (uint64_t)facts->grad_order);
    if (facts->outputs == NULL) {
        bp_put_array(rows, 0);
    } else {
        bp_put_raw(rows, facts->outputs, facts->outputs_size);
    }
    bp_put_id(rows, facts->variable);
    bp_put_text(rows, facts->kind->custom);
    bp_put_uint(rows, facts->saved_bytes);
    bp_put_id(rows, facts->freed_by);
    bp_put_id(rows, facts->died);
    return bp_row_end(rows);
}

int bp_nodes_refuse(bp_nodes *nodes)
{
    PyObject *done = PyObject_CallMethod(
        nodes->writer, "cut", "ssn", "live nodes",
        "freeing more nodes with Python wrappers could overflow the C stack; raise RLIMIT_STACK to see more",
        nodes->budget);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* ---- meeting a node */

/* Who made it: the statement, the call, the order of derivation. */
static int fill_owner(bp_nodes *nodes, bp_facts *facts)
{
    bp_owner owner = {-1, -1, -1, -1};
    /* an AccumulateGrad has a number that was never issued: nobody's, met in the calling thread */
    if (bp_owner_of(nodes->threads, facts->leaf ? (uint64_t)INT64_MAX : facts->seq, &owner) < 0) {
        return -1;
    }
    facts->thread = owner.thread;
    if (facts->leaf) {
        return 0;
    }
    facts->site = owner.site;
    facts->module_call = owner.module_call;
    facts->born_call = owner.call;
    if (owner.call < 0) {
        return 0;
    }
    PyObject *call = PyLong_FromLongLong(owner.call);
    PyObject *order = call == NULL ? NULL : PyDict_GetItemWithError(nodes->order_of_call, call);
    Py_XDECREF(call);
    if (order == NULL && PyErr_Occurred()) {
        return -1;
    }
    facts->backward = order != NULL;
    facts->grad_order = 1 + (order == NULL ? 0 : PyLong_AsLongLong(order));
    return PyErr_Occurred() ? -1 : 0;
}

static bp_facts *new_facts(bp_nodes *nodes, PyObject *node)
{

    PyObject *number = PyObject_CallMethodNoArgs(node, s_sequence_nr);
    uint64_t seq = number == NULL ? 0 : PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    bp_kind *kind = number == NULL || PyErr_Occurred() ? NULL : kind_of(nodes, node);
    if (kind == NULL) {
        return NULL;
    }
    bp_facts *facts = PyMem_RawCalloc(1, sizeof *facts);
    if (facts == NULL) {
        Py_DECREF(kind);
        PyErr_NoMemory();
        return NULL;
    }
    facts->refs = 1;
    facts->kind = kind;
    facts->key = key_of(node);
    facts->seq = seq;
    facts->leaf = seq == ACCUMULATE;
    facts->site = facts->module_call = facts->born_call = facts->variable = facts->freed_by = facts->died =
        facts->feeds = -1;
    facts->first_seen = nodes->walk_moment >= 0 ? nodes->walk_moment : bp_moment_now(nodes->moments);
    if (facts->first_seen < 0 || fill_owner(nodes, facts) < 0) {
        bp_facts_drop(facts);
        return NULL;
    }
    return facts;
}

/* The tensor that an AccumulateGrad stores into: 1, 0 where it is no such node, -1 with an exception. */
static int describe_leaf(bp_nodes *nodes, bp_facts *facts, PyObject *node)
{
    if (!facts->leaf) {
        return 0;
    }
    PyObject *leaf = PyObject_GetAttr(node, s_variable);
    if (leaf == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        return 0;
    }
    PyObject *known = PyObject_CallOneArg(nodes->see, leaf);
    Py_DECREF(leaf);
    if (known == NULL || known == Py_None) {
        Py_XDECREF(known);
        return known == NULL ? -1 : 1;
    }
    PyObject *number = PyObject_GetAttr(known, s_number);
    Py_DECREF(known);
    facts->variable = number == NULL ? -1 : PyLong_AsLongLong(number);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : 1;
}

/* Whether a tensor told the one output that its node has. */
static bool told_by(bp_facts *facts, PyObject *output)
{
    bp_tensor_view view;
    if (output == NULL || facts->leaf || facts->kind->several || facts->kind->varies || !bp_is_exact(output) ||
        !bp_shape_of(output, &view)) {
        return false;
    }
    bp_node_output_is(facts, output, &view);
    return facts->outputs != NULL;
}

static int describe(bp_nodes *nodes, bp_facts *facts, PyObject *node, PyObject *output, bool lazily)
{
    int leaf = describe_leaf(nodes, facts, node);
    if (leaf < 0 || (leaf == 0 && bp_saved_describe(nodes->saved, facts, node) < 0)) {
        return -1;
    }
    if (told_by(facts, output)) {
        return 0;
    }
    if (lazily && !facts->leaf && !facts->kind->several && !nodes->eager) {
        facts->untold = true;
        nodes->untold++;
        return 0;
    }
    return bp_node_outputs(facts, node);
}

/* Watch a node: from here on its sentinel holds the first count of the facts. */
static int watch(bp_nodes *nodes, bp_facts *facts, PyObject *node)
{
    if (make_room(nodes) < 0) {
        return -1;
    }
    sentinel *hook = PyObject_New(sentinel, &bp_sentinel_type);
    if (hook == NULL) {
        return -1;
    }
    hook->facts = NULL;
    hook->hooks = NULL;
    hook->call = sentinel_call;
    int done = bp_hook_before(node, (PyObject *)hook);
    if (done == 0) {
        facts->nodes = nodes;
        facts->number = nodes->next++;
        hook->facts = facts;
        facts->hook = (PyObject *)hook;
        put(nodes, facts);
    }
    Py_DECREF(hook);
    return done;
}

bp_facts *bp_node_meet(bp_nodes *nodes, PyObject *node, PyObject *output, bool lazily)
{
    bp_facts *facts = look_up(nodes, key_of(node));
    if (facts != NULL) {
        return facts;
    }
    if ((Py_ssize_t)nodes->live >= nodes->budget) {
        bp_nodes_refuse(nodes);
        return NULL;
    }
    facts = new_facts(nodes, node);
    if (facts == NULL) {
        return NULL;
    }
    bp_facts_keep(facts);
    if (watch(nodes, facts, node) < 0) {
        bp_facts_drop(facts);
        bp_facts_drop(facts);
        return NULL;
    }
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    int done = describe(nodes, facts, node, output, lazily);
    if (done < 0) {
        PyErr_Fetch(&type, &value, &traceback); /* the row is written all the same: others will name the node */
    }
    int written = bp_node_row(nodes, facts);
    if (done < 0) {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
    bp_facts_drop(facts);
    return done < 0 || written < 0 ? NULL : facts;
}

int64_t bp_nodes_meet_producer(PyObject *self, PyObject *node, PyObject *output, int64_t tensor, int64_t output_nr,
                               PyObject **type)
{
    bp_nodes *nodes = (bp_nodes *)self;
    if (bp_hooks_begin() < 0) {
        return -1;
    }
    bp_facts *facts = bp_node_meet(nodes, node, output, false);
    bp_hooks_end();
    if (facts == NULL) {
        return PyErr_Occurred() ? -1 : -2;
    }
    if (output_nr < 0 || output_nr > 1 << 20) {
        PyErr_SetString(PyExc_ValueError, "an output number out of range");
        return -1;
    }
    if (output_nr >= facts->tensor_room) {
        int32_t room = (int32_t)output_nr + 1;
        int64_t *tensors = PyMem_RawRealloc(facts->tensors, (size_t)room * sizeof *tensors);
        if (tensors == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (int32_t i = facts->tensor_room; i < room; i++) {
            tensors[i] = -1;
        }
        facts->tensors = tensors;
        facts->tensor_room = room;
    }
    facts->tensors[output_nr] = tensor;
    *type = facts->kind->name;
    return facts->number;
}

/* ---- sums */

int bp_held(bp_facts *const *facts, size_t count, int64_t *nodes, int64_t *bytes)
{
    size_t storages = 0, room = 64;
    for (size_t i = 0; i < count; i++) {
        if (facts[i] != NULL && facts[i]->saves && facts[i]->freed_by < 0) {
            storages += (size_t)facts[i]->storage_count;
        }
    }
    while (room < storages * 2) {
        room *= 2;
    }
    bp_held_storage *seen = PyMem_RawCalloc(room, sizeof *seen);
    if (seen == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *nodes = *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (facts[i] == NULL || !facts[i]->saves || facts[i]->freed_by >= 0) {
            continue;
        }
        ++*nodes;
        for (int32_t n = 0; n < facts[i]->storage_count; n++) {
            bp_held_storage *one = &facts[i]->storages[n];
            size_t at = (size_t)(((one->address >> 4) * 0x9E3779B97F4A7C15ULL) >> 32) & (room - 1);
            while (seen[at].address && seen[at].address != one->address) {
                at = (at + 1) & (room - 1);
            }
            *bytes += one->size - (seen[at].address ? seen[at].size : 0); /* the last size counts, as in the twin */
            seen[at] = *one;
        }
    }
    PyMem_RawFree(seen);
    return 0;
}

/* ---- Nodes as Python sees it */

static PyObject *nodes_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *writer, *threads, *moments;
    Py_ssize_t budget;
    if (!PyArg_ParseTuple(args, "OOOn", &writer, &threads, &moments, &budget)) {
        return NULL;
    }
    bp_nodes *nodes = (bp_nodes *)type->tp_alloc(type, 0);
    if (nodes == NULL) {
        return NULL;
    }
    nodes->budget = budget;
    nodes->walk_moment = -1;
    nodes->writer = Py_NewRef(writer);
    nodes->threads = Py_NewRef(threads);
    nodes->moments = Py_NewRef(moments);
    nodes->saved = Py_NewRef(Py_None);
    nodes->see = Py_NewRef(Py_None);
    nodes->order_of_call = PyDict_New();
    nodes->kinds = PyDict_New();
    nodes->rows = bp_rows_of(writer, BP_NODES);
    if (nodes->order_of_call == NULL || nodes->kinds == NULL || nodes->rows == NULL) {
        Py_DECREF(nodes);
        return NULL;
    }
    return (PyObject *)nodes;
}

/* Take the sentinels of the facts in a table off. Nothing may be freed before all of them and their dicts are held. */
static void take_off(bp_facts **table, size_t room)
{
    size_t count = 0;
    PyObject **held = room ? PyMem_RawMalloc(2 * room * sizeof *held) : NULL;
    for (size_t i = 0; i < room; i++) {
        if (table[i] == NULL) {
            continue;
        }
        bp_sentinel *hook = (bp_sentinel *)table[i]->hook;
        table[i]->nodes = NULL; /* where there is no memory for more, it reports to nobody */
        if (held != NULL && hook->hooks != NULL) {
            held[count++] = Py_NewRef((PyObject *)hook);
            held[count++] = Py_NewRef(hook->hooks);
        }
    }
    for (size_t i = 0; i < count; i += 2) {
        bp_hook_off(held[i], held[i + 1]);
        Py_DECREF(held[i]);
        Py_DECREF(held[i + 1]);
    }
    PyMem_RawFree(held);
}

/* Forget every node and take its sentinel off. */
static void let_go(bp_nodes *nodes)
{
    bp_facts **table = nodes->table;
    size_t room = nodes->room;
    nodes->table = NULL;
    nodes->room = nodes->live = 0;
    nodes->untold = 0;
    take_off(table, room);
    PyMem_RawFree(table);
    while (nodes->dead_first != NULL) {
        bp_facts *facts = nodes->dead_first;
        nodes->dead_first = facts->next_dead;
        facts->nodes = NULL;
        bp_facts_drop(facts);
    }
    nodes->dead_last = NULL;
}

static int nodes_traverse(PyObject *self, visitproc visit, void *arg)
{
    bp_nodes *nodes = (bp_nodes *)self;
    Py_VISIT(nodes->writer);
    Py_VISIT(nodes->threads);
    Py_VISIT(nodes->moments);
    Py_VISIT(nodes->saved);
    Py_VISIT(nodes->see);
    Py_VISIT(nodes->order_of_call);
    Py_VISIT(nodes->kinds);
    return 0;
}

static int nodes_clear(PyObject *self)
{
    bp_nodes *nodes = (bp_nodes *)self;
    let_go(nodes);
    Py_CLEAR(nodes->saved);
    Py_CLEAR(nodes->see);
    return 0;
}

static void nodes_dealloc(PyObject *self)
{
    bp_nodes *nodes = (bp_nodes *)self;
    PyObject_GC_UnTrack(self);
    nodes_clear(self);
    Py_CLEAR(nodes->writer);
    Py_CLEAR(nodes->threads);
    Py_CLEAR(nodes->moments);
    Py_CLEAR(nodes->order_of_call);
    Py_CLEAR(nodes->kinds);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *nodes_meet(PyObject *self, PyObject *node)
{
    bp_nodes *nodes = (bp_nodes *)self;
    if (bp_hooks_begin() < 0) {
        return NULL;
    }
    bp_facts *facts = bp_node_meet(nodes, node, NULL, false);
    bp_hooks_end();
    if (facts == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return PyLong_FromLongLong(facts->number);
}

static PyObject *nodes_meet_producer(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "meet_producer(node, tensor, output_nr)");
        return NULL;
    }
    long long tensor = PyLong_AsLongLong(args[1]), output_nr = PyLong_AsLongLong(args[2]);
    PyObject *type = NULL;
    if (PyErr_Occurred() || bp_nodes_meet_producer(self, args[0], NULL, tensor, output_nr, &type) == -1) {
        return NULL;
    }
    bp_facts *facts = bp_node_known((bp_nodes *)self, args[0]);
    if (facts == NULL || facts->hook == NULL) {
        Py_RETURN_NONE;
    }
    return Py_NewRef(facts->hook);
}

static PyObject *nodes_lives(PyObject *self, PyObject *given)
{
    bp_nodes *nodes = (bp_nodes *)self;
    long long number = PyLong_AsLongLong(given);
    if (number == -1 && PyErr_Occurred()) {
        return NULL;
    }
    for (size_t i = 0; i < nodes->room; i++) {
        if (nodes->table[i] != NULL && nodes->table[i]->number == number) {
            Py_RETURN_TRUE;
        }
    }
    Py_RETURN_FALSE;
}

/* The nodes behind `node` that were met, each once. */
static int push_following(bp_nodes *nodes, PyObject *node, PyObject *stack, uint32_t mark)
{
    PyObject *following = PyObject_GetAttr(node, s_next_functions);
    if (following == NULL || !PyTuple_Check(following)) {
        Py_XDECREF(following);
        return following == NULL ? -1 : 0;
    }
    int done = 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_GET_SIZE(following); i++) {
        PyObject *next = PyTuple_GET_ITEM(PyTuple_GET_ITEM(following, i), 0);
        bp_facts *facts = next == Py_None ? NULL : bp_node_known(nodes, next);
        if (facts != NULL && facts->mark != mark) {
            facts->mark = mark;
            done = PyList_Append(stack, next);
        }
    }
    Py_DECREF(following);
    return done;
}

static int complete_from(bp_nodes *nodes, PyObject *stack, uint32_t mark)
{
    while (PyList_GET_SIZE(stack) && nodes->untold) {
        Py_ssize_t last = PyList_GET_SIZE(stack) - 1;
        PyObject *node = Py_NewRef(PyList_GET_ITEM(stack, last));
        bp_facts *facts = bp_node_known(nodes, node);
        int done = PyList_SetSlice(stack, last, last + 1, NULL);
        if (done == 0 && facts != NULL && facts->untold) {
            done = bp_node_outputs(facts, node) < 0 || bp_node_row(nodes, facts) < 0 ? -1 : 0;
        }
        if (done == 0) {
            done = push_following(nodes, node, stack, mark);
        }
        Py_DECREF(node);
        if (done < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *nodes_complete(PyObject *self, PyObject *roots)
{
    bp_nodes *nodes = (bp_nodes *)self;
    if (!nodes->untold) {
        Py_RETURN_NONE;
    }
    PyObject *given = PySequence_Tuple(roots), *stack = given == NULL ? NULL : PyList_New(0);
    int done = stack == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *root = PyTuple_GET_ITEM(given, i), *node = PyObject_GetAttr(root, s_grad_fn);
        if (node == NULL) {
            PyErr_Clear();
            node = PyObject_GetAttr(root, s_roots_node);
        }
        done = node == NULL ? -1 : node == Py_None ? 0 : PyList_Append(stack, node);
        Py_XDECREF(node);
    }
    if (done == 0) {
        done = complete_from(nodes, stack, bp_nodes_sweep(nodes));
    }
    Py_XDECREF(given);
    Py_XDECREF(stack);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *nodes_refuse(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return bp_nodes_refuse((bp_nodes *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *nodes_bury(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bp_nodes *nodes = (bp_nodes *)self;
    while (nodes->dead_first != NULL) {
        bp_facts *facts = nodes->dead_first;
        nodes->dead_first = facts->next_dead;
        if (nodes->dead_first == NULL) {
            nodes->dead_last = NULL;
        }
        facts->died = bp_moment_now(nodes->moments);
        int done = facts->died < 0 ? -1 : bp_node_row(nodes, facts);
        bp_facts_drop(facts);
        if (done < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

static PyObject *nodes_close(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    let_go((bp_nodes *)self);
    Py_RETURN_NONE;
}

static Py_ssize_t nodes_length(PyObject *self) { return (Py_ssize_t)((bp_nodes *)self)->live; }

static PyObject *nodes_has_room(PyObject *self, void *Py_UNUSED(closure))
{
    bp_nodes *nodes = (bp_nodes *)self;
    return PyBool_FromLong((Py_ssize_t)nodes->live < nodes->budget);
}

static PyObject *nodes_dead(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((bp_nodes *)self)->dead_first != NULL);
}

int bp_nodes_wait(PyObject *nodes)
{
    if (Py_TYPE(nodes) == &bp_nodes_type) {
        return ((bp_nodes *)nodes)->dead_first != NULL;
    }
    PyObject *dead = PyObject_GetAttrString(nodes, "dead");
    int any = dead == NULL ? -1 : PyObject_IsTrue(dead);
    Py_XDECREF(dead);
    PyErr_Clear();
    return any != 0; /* an error shows at the burial */
}

static PyObject *nodes_held_totals(PyObject *self, void *Py_UNUSED(closure))
{
    int64_t count = 0, bytes = 0;
    bp_nodes *nodes = (bp_nodes *)self;
    if (bp_held(nodes->table, nodes->room, &count, &bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("LL", (long long)count, (long long)bytes);
}

static PyMethodDef nodes_methods[] = {
    {"meet", nodes_meet, METH_O, "The number of a node, which is watched from now on; None past the budget."},
    {"meet_producer", (PyCFunction)(void (*)(void))nodes_meet_producer, METH_FASTCALL,
     "Meet the node that made a tensor of the record."},
    {"lives", nodes_lives, METH_O, "A node of the record is not yet known to be dead."},
    {"complete", nodes_complete, METH_O, "Read the outputs of nodes that should have run and did not."},
    {"refuse", nodes_refuse, METH_NOARGS, "Count a node that was left alone."},
    {"bury", nodes_bury, METH_NOARGS, "Write down the nodes that died since the last time."},
    {"detach", nodes_close, METH_NOARGS, "Take every sentinel off: the nodes that live on are met as new ones."},
    {"close", nodes_close, METH_NOARGS, "Forget everything and take every sentinel off."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef nodes_members[] = {
    {"budget", T_PYSSIZET, offsetof(bp_nodes, budget), 0, "Wrapped nodes that may live at once."},
    {"order_of_call", T_OBJECT_EX, offsetof(bp_nodes, order_of_call), READONLY,
     "Order of derivation of the graph that a create_graph call differentiates, by call."},
    {"saved", T_OBJECT_EX, offsetof(bp_nodes, saved), 0, "Tells what a node saves."},
    {"see", T_OBJECT_EX, offsetof(bp_nodes, see), 0, "Meets the leaf that a node stores into."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef nodes_getset[] = {
    {"has_room", nodes_has_room, NULL, "One more node may be wrapped.", NULL},
    {"dead", nodes_dead, NULL, "Some died since the last burial.", NULL},
    {"held_totals", nodes_held_totals, NULL,
     "Live nodes that hold saved tensors still, and the bytes of their storages.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods nodes_sequence = {.sq_length = nodes_length};

PyTypeObject bp_nodes_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Nodes",
    .tp_doc = "Meets nodes under one budget.",
    .tp_basicsize = sizeof(bp_nodes),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = nodes_new,
    .tp_dealloc = nodes_dealloc,
    .tp_traverse = nodes_traverse,
    .tp_clear = nodes_clear,
    .tp_methods = nodes_methods,
    .tp_members = nodes_members,
    .tp_getset = nodes_getset,
    .tp_as_sequence = &nodes_sequence,
};

static int load_cut(void)
{
    PyObject *module = PyImport_ImportModule("backprobe.capture.output.text");
    s_cut = module == NULL ? NULL : PyObject_GetAttrString(module, "name");
    Py_XDECREF(module);
    return s_cut == NULL ? -1 : 0;
}

int bp_add_nodes(PyObject *module)
{
    const struct {
        PyObject **to;
        const char *text;
    } names[] = {
        {&s_sequence_nr, "_sequence_nr"}, {&s_name, "name"},         {&s_variable, "variable"},
        {&s_metadata, "_input_metadata"}, {&s_shape, "shape"},       {&s_dtype, "dtype"},
        {&s_device, "device"},            {&s_forward_cls, "_forward_cls"}, {&s_qualname, "__qualname__"},
        {&s_number, "number"},            {&s_roots_node, "node"},   {&s_next_functions, "next_functions"},
        {&s_grad_fn, "grad_fn"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *names[i].to = PyUnicode_InternFromString(names[i].text);
        if (*names[i].to == NULL) {
            return -1;
        }
    }
    if (PyType_Ready(&kind_type) < 0 || PyType_Ready(&bp_sentinel_type) < 0 || load_cut() < 0) {
        return -1;
    }
    return PyModule_AddType(module, &bp_nodes_type);
}
