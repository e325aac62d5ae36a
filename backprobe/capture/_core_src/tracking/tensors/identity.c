/* Which tensor is which. The Python twin is identity.py. */

#include "tensor_registry.h"

#include <structmember.h>
#include <string.h>

#include "torch_api.h"

/* ---- references */

static PyMemberDef ref_members[] = {
    {"key", T_ULONGLONG, offsetof(bp_ref, key), READONLY, "id() of the tensor."},
    {"number", T_LONGLONG, offsetof(bp_ref, number), READONLY, "The tensor's number in the record."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *ref_storage(PyObject *self, void *Py_UNUSED(closure))
{
    bp_ref *ref = (bp_ref *)self;
    return ref->storage ? PyLong_FromUnsignedLongLong(ref->storage) : Py_NewRef(Py_None);
}

static PyGetSetDef ref_getset[] = {
    {"storage", ref_storage, NULL, "Address of the storage that it holds.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_ref_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.TensorRef",
    .tp_doc = "A weak reference that remembers which tensor it was.",
    .tp_basicsize = sizeof(bp_ref),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = ref_members,
    .tp_getset = ref_getset,
};

static inline int is_of(bp_ref *ref, PyObject *tensor)
{
    PyObject *object = bp_weakref_get((PyObject *)ref);
    Py_XDECREF(object); /* the caller holds the tensor */
    return object == tensor;
}

/* A tensor died: no Python code, nothing is freed here. */
static PyObject *bury_later(PyObject *self, PyObject *ref)
{
    bp_identities *ids = (bp_identities *)self;
    if (ids->closed) {
        Py_RETURN_NONE;
    }
    if (ids->dead_count == ids->dead_room) {
        size_t room = ids->dead_room ? ids->dead_room * 2 : 64;
        bp_ref **dead = PyMem_RawRealloc(ids->dead, room * sizeof *dead);
        if (dead == NULL) {
            Py_RETURN_NONE;
        }
        ids->dead = dead;
        ids->dead_room = room;
    }
    ids->dead[ids->dead_count++] = (bp_ref *)Py_NewRef(ref);
    Py_RETURN_NONE;
}

static PyMethodDef bury_later_method = {"buried", bury_later, METH_O, "A tensor died."};

/* ---- storages */

static void release(bp_identities *ids, bp_ref *ref)
{
    bp_storage *storage = ref->storage ? bp_map_get(&ids->storages, ref->storage) : NULL;
    if (storage != NULL) {
        for (size_t i = 0; i < storage->count; i++) {
            if (storage->holders[i] == ref) {
                memmove(storage->holders + i, storage->holders + i + 1, (storage->count - i - 1) * sizeof *storage->holders);
                storage->count--;
                break;
            }
        }
        if (!storage->count) {
            bp_map_pop(&ids->storages, ref->storage);
            PyMem_RawFree(storage->holders);
            PyMem_RawFree(storage);
        }
    }
    ref->storage = 0;
}

static int hold(bp_storage *storage, bp_ref *ref)
{
    if (storage->count == storage->room) {
        size_t room = storage->room ? storage->room * 2 : 4;
        bp_ref **holders = PyMem_RawRealloc(storage->holders, room * sizeof *holders);
        if (holders == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        storage->holders = holders;
        storage->room = room;
    }
    size_t at = storage->count++;
    for (; at > 0 && storage->holders[at - 1]->number > ref->number; at--) {
        storage->holders[at] = storage->holders[at - 1];
    }
    storage->holders[at] = ref;
    return 0;
}

int bp_ref_lives(bp_ref *ref)
{
    PyObject *tensor = bp_weakref_get((PyObject *)ref);
    Py_XDECREF(tensor);
    return tensor != NULL;
}

int bp_is_held(const bp_storage *storage)
{
    for (size_t i = 0; storage != NULL && i < storage->count; i++) {
        if (bp_ref_lives(storage->holders[i])) {
            return 1;
        }
    }
    return 0;
}

int64_t bp_hold_storage(bp_identities *ids, bp_ref *ref, uintptr_t address)
{
    bp_storage *storage = bp_map_get(&ids->storages, address);
    if (ref->storage == address && storage != NULL) {
        return storage->number;
    }
    release(ids, ref);
    storage = bp_map_get(&ids->storages, address);
    if (storage != NULL && !bp_is_held(storage)) { /* another storage lies where that of dead tensors lay */
        for (size_t i = 0; i < storage->count; i++) {
            storage->holders[i]->storage = 0;
        }
        storage->count = 0;
        storage->number = ids->next_storage++;
    }
    if (storage == NULL) {
        storage = PyMem_RawCalloc(1, sizeof *storage);
        if (storage == NULL || bp_map_set(&ids->storages, address, storage) < 0) {
            PyMem_RawFree(storage);
            PyErr_NoMemory();
            return -1;
        }
        storage->number = ids->next_storage++;
    }
    if (hold(storage, ref) < 0) {
        return -1;
    }
    ref->storage = address;
    return storage->number;
}

/* ---- identities */

bp_ref *bp_ref_find(bp_identities *ids, PyObject *tensor)
{
    bp_ref *ref = bp_map_get(&ids->refs, (uintptr_t)tensor);
    return ref != NULL && is_of(ref, tensor) ? ref : NULL;
}

bp_ref *bp_ref_of(bp_identities *ids, PyObject *tensor)
{
    bp_ref *ref = bp_ref_find(ids, tensor);
    if (ref != NULL) {
        return ref;
    }
    if (ids->closed) {
        PyErr_SetString(PyExc_RuntimeError, "the tensors of this run were let go");
        return NULL;
    }
    PyObject *args = PyTuple_Pack(2, tensor, ids->buried);
    ref = args == NULL ? NULL : (bp_ref *)bp_ref_type.tp_new(&bp_ref_type, args, NULL);
    Py_XDECREF(args);
    if (ref == NULL) {
        return NULL;
    }
    ref->key = (uintptr_t)tensor;
    ref->number = ids->next++;
    ref->storage = 0;
    bp_ref *old = bp_map_get(&ids->refs, ref->key);
    if (bp_map_set(&ids->refs, ref->key, ref) < 0) {
        Py_DECREF(ref);
        return NULL;
    }
    Py_XDECREF(old);
    return ref;
}

/* A dead tensor's place may be taken by another. */
void bp_forget(bp_identities *ids, bp_ref *ref)
{
    release(ids, ref);
    if (bp_map_get(&ids->refs, ref->key) == ref) {
        bp_map_pop(&ids->refs, ref->key);
        Py_DECREF(ref);
    }
}


bp_identities *bp_new_identities(void)
{
    bp_identities *ids = (bp_identities *)bp_identities_type.tp_alloc(&bp_identities_type, 0);
    if (ids == NULL) {
        return NULL;
    }
    ids->buried = PyCFunction_New(&bury_later_method, (PyObject *)ids); /* a cycle until bp_close_identities */
    if (ids->buried == NULL) {
        Py_DECREF(ids);
        return NULL;
    }
    return ids;
}

void bp_close_identities(bp_identities *ids)
{
    ids->closed = 1;
    bp_map refs = ids->refs, storages = ids->storages;
    ids->refs = ids->storages = (bp_map){NULL, 0, 0};
    for (size_t i = 0; i < refs.room; i++) {
        if (refs.entries[i].key) {
            Py_DECREF((PyObject *)refs.entries[i].value);
        }
    }
    for (size_t i = 0; i < storages.room; i++) {
        if (storages.entries[i].key) {
            PyMem_RawFree(((bp_storage *)storages.entries[i].value)->holders);
            PyMem_RawFree(storages.entries[i].value);
        }
    }
    bp_map_free(&refs);
    bp_map_free(&storages);
    while (ids->dead_count) {
        Py_XDECREF(ids->dead[--ids->dead_count]);
    }
    PyMem_RawFree(ids->dead);
    ids->dead = NULL;
    ids->dead_room = 0;
    Py_CLEAR(ids->buried);
}

static void identities_dealloc(PyObject *self)
{
    bp_close_identities((bp_identities *)self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *identities_ensure_ref(PyObject *self, PyObject *tensor)
{
    return Py_XNewRef((PyObject *)bp_ref_of((bp_identities *)self, tensor));
}

static PyObject *identities_find(PyObject *self, PyObject *tensor)
{
    bp_ref *ref = bp_ref_find((bp_identities *)self, tensor);
    return Py_NewRef(ref == NULL ? Py_None : (PyObject *)ref);
}

static bp_storage *storage_at(PyObject *self, PyObject *address)
{
    unsigned long long at = PyLong_AsUnsignedLongLong(address);
    return PyErr_Occurred() || !at ? NULL : bp_map_get(&((bp_identities *)self)->storages, (uintptr_t)at);
}

static PyObject *identities_storage_number(PyObject *self, PyObject *address)
{
    bp_storage *storage = storage_at(self, address);
    if (!bp_is_held(storage)) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return PyLong_FromLongLong(storage->number);
}

static PyObject *identities_holders(PyObject *self, PyObject *address)
{
    bp_storage *storage = storage_at(self, address);
    if (storage == NULL && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *found = PyList_New(0);
    for (size_t i = 0; found != NULL && storage != NULL && i < storage->count; i++) {
        PyObject *number = bp_ref_lives(storage->holders[i]) ? PyLong_FromLongLong(storage->holders[i]->number) : NULL;
        if (number != NULL && PyList_Append(found, number) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(number);
    }
    PyObject *holders = found == NULL ? NULL : PyList_AsTuple(found);
    Py_XDECREF(found);
    return holders;
}

static PyObject *identities_dead(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(((bp_identities *)self)->dead_count);
}

static PyMethodDef identities_methods[] = {
    {"ensure_ref", identities_ensure_ref, METH_O, "The reference of a tensor, made on first sight."},
    {"find", identities_find, METH_O, "The reference of a tensor that was seen before."},
    {"storage_number", identities_storage_number, METH_O, "The number of the storage at an address."},
    {"holders", identities_holders, METH_O, "The tensors that hold the storage at an address."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef identities_getset[] = {
    {"dead", identities_dead, NULL, "How many tensors died since they were last looked at.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_identities_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Identities",
    .tp_doc = "Numbers tensor objects by identity.",
    .tp_basicsize = sizeof(bp_identities),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = NULL,
    .tp_dealloc = identities_dealloc,
    .tp_methods = identities_methods,
    .tp_getset = identities_getset,
};

int bp_add_identities(PyObject *Py_UNUSED(module))
{
    bp_ref_type.tp_base = &_PyWeakref_RefType;
    if (PyType_Ready(&bp_ref_type) < 0 || PyType_Ready(&bp_identities_type) < 0) {
        return -1;
    }
    return 0;
}
