/* The names that tensors had. The Python twin is bindings.py. */

#include "bindings.h"

#include <structmember.h>
#include <string.h>

#include "torch_api.h"

int bp_is_kept(int64_t times, int64_t in_full)
{
    if (times <= in_full) {
        return 1;
    }
    while (times % 10 == 0) {
        times /= 10;
    }
    return times == 1 || times == 2 || times == 5;
}

/* ---- slots */

static PyObject *cut_name(PyObject *text)
{
    if (PyUnicode_IS_ASCII(text) && PyUnicode_GET_LENGTH(text) <= 512) {
        return Py_NewRef(text);
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.output.text");
    PyObject *cut = module == NULL ? NULL : PyObject_CallMethod(module, "name", "O", text);
    Py_XDECREF(module);
    return cut;
}

static int slot_of_key(bp_names *names, PyObject *key)
{
    PyObject *known = PyDict_GetItemWithError(names->index, key);
    if (known != NULL) {
        return (int)PyLong_AsLong(known);
    }
    PyObject *function, *name;
    if (PyErr_Occurred() || !PyArg_ParseTuple(key, "UU", &function, &name)) {
        return -1;
    }
    if (names->count == names->room) {
        int room = names->room ? names->room * 2 : 64;
        bp_name *grown = PyMem_RawRealloc(names->names, (size_t)room * sizeof *grown);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        names->names = grown;
        names->room = room;
    }
    bp_name one = {Py_NewRef(name), cut_name(name), NULL, -1};
    one.function = one.text == NULL ? NULL : cut_name(function);
    PyObject *slot = one.function == NULL ? NULL : PyLong_FromLong(names->count);
    if (slot == NULL || PyDict_SetItem(names->index, key, slot) < 0) {
        Py_XDECREF(one.name);
        Py_XDECREF(one.text);
        Py_XDECREF(one.function);
        Py_XDECREF(slot);
        return -1;
    }
    Py_DECREF(slot);
    names->names[names->count] = one;
    return names->count++;
}

int bp_slot_of(bp_names *names, bp_site *site, PyObject *name)
{
    PyObject *known = PyDict_GetItemWithError(site->slots, name);
    if (known != NULL) {
        return (int)PyLong_AsLong(known);
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    PyObject *owner = PyObject_CallMethod(site->scope, "owner", "O", name);
    PyObject *key = owner == NULL ? NULL : PyTuple_Pack(2, owner, name);
    int slot = key == NULL ? -1 : slot_of_key(names, key);
    PyObject *number = slot < 0 ? NULL : PyLong_FromLong(slot);
    if (number == NULL || PyDict_SetItem(site->slots, name, number) < 0) {
        slot = -1;
    }
    Py_XDECREF(owner);
    Py_XDECREF(key);
    Py_XDECREF(number);
    return slot;
}

/* ---- sites */

static void free_site(bp_site *site)
{
    if (site == NULL) {
        return;
    }
    Py_XDECREF(site->facts);
    Py_XDECREF(site->targets);
    Py_XDECREF(site->how);
    Py_XDECREF(site->scope);
    Py_XDECREF(site->slots);
    PyMem_RawFree(site->keys);
    PyMem_RawFree(site->reads);
    PyMem_RawFree(site->operands);
    PyMem_RawFree(site->target_slots);
    PyMem_RawFree(site->times);
    PyMem_RawFree(site);
}

/* The slots of a tuple of keys. */
static int *slots_of(bp_names *names, PyObject *facts, const char *attribute, int *count)
{
    PyObject *keys = PyObject_GetAttrString(facts, attribute);
    if (keys == NULL || !PyTuple_Check(keys)) {
        Py_XDECREF(keys);
        return NULL;
    }
    *count = (int)PyTuple_GET_SIZE(keys);
    int *slots = PyMem_RawMalloc((size_t)(*count + 1) * sizeof *slots);
    for (int i = 0; slots != NULL && i < *count; i++) {
        slots[i] = slot_of_key(names, PyTuple_GET_ITEM(keys, i));
        if (slots[i] < 0) {
            PyMem_RawFree(slots);
            slots = NULL;
        }
    }
    Py_DECREF(keys);
    return slots;
}

static int flag_of(PyObject *facts, const char *attribute)
{
    PyObject *value = PyObject_GetAttrString(facts, attribute);
    int truth = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return truth;
}

static int fill_site(bp_names *names, bp_site *site, PyObject *facts)
{
    site->facts = Py_NewRef(facts);
    site->targets = PyObject_GetAttrString(facts, "targets");
    site->how = PyObject_GetAttrString(facts, "how");
    site->scope = PyObject_GetAttrString(facts, "scope");
    site->slots = PyDict_New();
    if (site->targets == NULL || !PyTuple_Check(site->targets) || site->how == NULL || site->scope == NULL ||
        site->slots == NULL) {
        return -1;
    }
    /* one after the other: a signal handler of the program may raise in each, and nothing is called after that */
    int is_inert = flag_of(facts, "is_inert");
    int top = is_inert < 0 ? -1 : flag_of(facts, "top");
    int once = top < 0 ? -1 : flag_of(facts, "once");
    PyObject *kind = once < 0 ? NULL : PyObject_GetAttrString(facts, "kind");
    if (kind == NULL) {
        return -1;
    }
    site->is_inert = (char)is_inert;
    site->top = (char)top;
    site->once = (char)once;
    site->kind = !PyUnicode_CompareWithASCIIString(kind, "return")    ? BP_RETURN_SITE
                 : !PyUnicode_CompareWithASCIIString(kind, "inplace") ? BP_INPLACE_SITE
                                                                      : BP_OTHER_SITE;
    Py_DECREF(kind);
    if ((site->keys = slots_of(names, facts, "keys", &site->key_count)) == NULL ||
        (site->reads = slots_of(names, facts, "read_keys", &site->read_count)) == NULL ||
        (site->operands = slots_of(names, facts, "operands", &site->operand_count)) == NULL) {
        return -1;
    }
    Py_ssize_t targets = PyTuple_GET_SIZE(site->targets);
    site->target_slots = PyMem_RawMalloc((size_t)(targets + 1) * sizeof(int));
    for (Py_ssize_t i = 0; site->target_slots != NULL && i < targets; i++) {
        PyObject *target = PyTuple_GET_ITEM(site->targets, i);
        site->target_slots[i] = PyUnicode_Check(target) ? bp_slot_of(names, site, target) : -1;
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    return site->target_slots == NULL ? -1 : 0;
}

bp_site *bp_site_at(bp_names *names, int64_t number)
{
    if (number >= 0 && (size_t)number < names->site_count && names->sites[number] != NULL) {
        return names->sites[number];
    }
    if (number < 0 || number >= PyList_GET_SIZE(names->facts)) {
        PyErr_SetString(PyExc_IndexError, "there is no such site");
        return NULL;
    }
    size_t count = (size_t)PyList_GET_SIZE(names->facts);
    if (count > names->site_count) {
        bp_site **sites = PyMem_RawRealloc(names->sites, count * sizeof *sites);
        if (sites == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        memset(sites + names->site_count, 0, (count - names->site_count) * sizeof *sites);
        names->sites = sites;
        names->site_count = count;
    }
    bp_site *site = PyMem_RawCalloc(1, sizeof *site);
    if (site == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    site->number = number;
    if (fill_site(names, site, PyList_GET_ITEM(names->facts, number)) < 0) {
        free_site(site);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a site's facts are not as they should be");
        }
        return NULL;
    }
    names->sites[number] = site;
    return site;
}

/* ---- bindings */

int bp_held_by(const bp_names *names, const int *slots, int slot_count, int64_t *found, int most, int already)
{
    int count = already;
    for (int i = 0; i < slot_count && count < most; i++) {
        int64_t number = names->names[slots[i]].held;
        int known = number < 0;
        for (int j = 0; !known && j < count; j++) {
            known = found[j] == number;
        }
        if (!known) {
            found[count++] = number;
        }
    }
    return count;
}

static int64_t *times_of(bp_site *site, int slot)
{
    for (int i = 0; i < site->times_count; i++) {
        if (site->times[i].slot == slot) {
            return &site->times[i].times;
        }
    }
    if (site->times_count == site->times_room) {
        int room = site->times_room ? site->times_room * 2 : 2;
        bp_times *times = PyMem_RawRealloc(site->times, (size_t)room * sizeof *times);
        if (times == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        site->times = times;
        site->times_room = room;
    }
    site->times[site->times_count] = (bp_times){slot, 0};
    return &site->times[site->times_count++].times;
}

int bp_bind_name(bp_names *names, bp_site *site, int slot, bp_known *known, const int64_t *parents, int count)
{
    bp_name *name = &names->names[slot];
    int64_t before = name->held;
    name->held = known->number;
    if (known->name != name->name) {
        Py_XSETREF(known->name, Py_NewRef(name->name));
    }
    if (site->kind == BP_INPLACE_SITE && before == known->number) {
        return 0;
    }
    int64_t *times = times_of(site, slot);
    if (times == NULL) {
        return -1;
    }
    if (!bp_is_kept(++*times, names->site_times)) {
        return bp_cut(names->rows, names->writer, BP_CUT_BINDINGS);
    }
    int64_t moment = bp_moment_now((PyObject *)names->moments);
    bp_rows *rows = names->rows;
    if (moment < 0) {
        return -1;
    }
    int64_t binding = names->next++;
    if (!bp_row_begin(rows, 9)) {
        return 0;
    }
    int others = 0;
    for (int i = 0; i < count; i++) {
        others += parents[i] != known->number;
    }
    bp_put_uint(rows, (uint64_t)binding);
    bp_put_uint(rows, (uint64_t)known->number);
    bp_put_text(rows, name->text);
    bp_put_uint(rows, (uint64_t)site->number);
    bp_put_uint(rows, (uint64_t)moment);
    bp_put_text(rows, name->function);
    bp_put_id(rows, known->version);
    bp_put_id(rows, before == known->number ? -1 : before);
    bp_put_array(rows, (uint32_t)others);
    for (int i = 0; i < count; i++) {
        if (parents[i] != known->number) {
            bp_put_uint(rows, (uint64_t)parents[i]);
        }
    }
    return bp_row_end(rows);
}

/* ---- as Python sees it */

static int names_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_names *names = (bp_names *)self;
    PyObject *writer, *moments, *options;
    if (bp_torch_ready() < 0 ||
        !PyArg_ParseTuple(args, "OO!O", &writer, &bp_moments_type, &moments, &options)) {
        return -1;
    }
    PyObject *caps = PyObject_GetAttr(options, bp_name_caps);
    names->site_times = caps == NULL ? -1 : bp_integer(caps, bp_name_site_times, -1);
    Py_XDECREF(caps);
    names->rows = names->site_times < 0 ? NULL : bp_rows_of(writer, BP_BINDINGS);
    if (names->rows == NULL || names->writer != NULL) {
        return -1;
    }
    names->writer = Py_NewRef(writer);
    names->moments = (bp_moments *)Py_NewRef(moments);
    names->index = PyDict_New();
    return names->index == NULL ? -1 : 0;
}

static int names_traverse(PyObject *self, visitproc visit, void *arg)
{
    bp_names *names = (bp_names *)self;
    Py_VISIT(names->writer);
    Py_VISIT((PyObject *)names->moments);
    Py_VISIT(names->facts);
    return 0;
}

static int names_clear(PyObject *self)
{
    bp_names *names = (bp_names *)self;
    Py_CLEAR(names->writer);
    Py_CLEAR(names->moments);
    Py_CLEAR(names->facts);
    return 0;
}

static void names_dealloc(PyObject *self)
{
    bp_names *names = (bp_names *)self;
    PyObject_GC_UnTrack(self);
    names_clear(self);
    Py_CLEAR(names->index);
    for (int i = 0; i < names->count; i++) {
        Py_XDECREF(names->names[i].name);
        Py_XDECREF(names->names[i].text);
        Py_XDECREF(names->names[i].function);
    }
    for (size_t i = 0; i < names->site_count; i++) {
        free_site(names->sites[i]);
    }
    PyMem_RawFree(names->names);
    PyMem_RawFree(names->sites);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *names_forget(PyObject *self, PyObject *keys)
{
    bp_names *names = (bp_names *)self;
    PyObject *iterator = PyObject_GetIter(keys), *key;
    while (iterator != NULL && (key = PyIter_Next(iterator)) != NULL) {
        PyObject *slot = PyDict_GetItemWithError(names->index, key);
        if (slot != NULL) {
            names->names[PyLong_AsLong(slot)].held = -1;
        }
        Py_DECREF(key);
    }
    Py_XDECREF(iterator);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* The tensors that (function, name) pairs held last, in their order, each once. */
static PyObject *names_held_by(PyObject *self, PyObject *keys)
{
    bp_names *names = (bp_names *)self;
    PyObject *found = PyList_New(0), *iterator = PyObject_GetIter(keys), *key;
    while (found != NULL && iterator != NULL && PyList_GET_SIZE(found) < 64 && (key = PyIter_Next(iterator)) != NULL) {
        PyObject *slot = PyDict_GetItemWithError(names->index, key);
        int64_t number = slot == NULL ? -1 : names->names[PyLong_AsLong(slot)].held;
        PyObject *value = number < 0 ? NULL : PyLong_FromLongLong(number);
        if (value != NULL && !PySequence_Contains(found, value) && PyList_Append(found, value) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(value);
        Py_DECREF(key);
    }
    Py_XDECREF(iterator);
    PyObject *numbers = found == NULL || PyErr_Occurred() ? NULL : PyList_AsTuple(found);
    Py_XDECREF(found);
    return numbers;
}

static PyObject *names_held(PyObject *self, void *Py_UNUSED(closure))
{
    bp_names *names = (bp_names *)self;
    PyObject *held = PyDict_New(), *key, *slot;
    Py_ssize_t at = 0;
    while (held != NULL && PyDict_Next(names->index, &at, &key, &slot)) {
        int64_t number = names->names[PyLong_AsLong(slot)].held;
        PyObject *value = number < 0 ? NULL : PyLong_FromLongLong(number);
        if (value != NULL && PyDict_SetItem(held, key, value) < 0) {
            Py_CLEAR(held);
        }
        Py_XDECREF(value);
    }
    return held;
}

static PyMethodDef names_methods[] = {
    {"held_by", names_held_by, METH_O, "The tensors that names held last."},
    {"forget", names_forget, METH_O, "These names hold no tensor any more, as far as is known."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef names_getset[] = {
    {"held", names_held, NULL, "The tensor that each name holds, a new dict.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_names_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Names",
    .tp_doc = "Follows the names of tensors, function by function.",
    .tp_basicsize = sizeof(bp_names),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = names_init,
    .tp_dealloc = names_dealloc,
    .tp_traverse = names_traverse,
    .tp_clear = names_clear,
    .tp_methods = names_methods,
    .tp_getset = names_getset,
};

int bp_add_names(PyObject *module) { return PyModule_AddType(module, &bp_names_type); }
