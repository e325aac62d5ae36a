/* Gives values their names: a tensor, a module, an optimizer, what a short tuple, list, dict or dataclass holds. The
   Python twin is binder.py. */

#include "statements.h"

#include "torch_api.h"

#define DEPTH 2 /* levels of nested tuples, lists, dicts and dataclasses that are looked into */

/* The name holds no tensor any more. */
static int unbind(bp_statements *statements, bp_site *site, PyObject *target)
{
    int slot = bp_slot_of(statements->names, site, target);
    if (slot >= 0) {
        statements->names->names[slot].held = -1;
    }
    return slot < 0 ? -1 : 0;
}

/* The name holds a tensor that is not recorded. */
static int pass_over(bp_statements *statements, bp_site *site, PyObject *target)
{
    if (target == NULL || !PyUnicode_Check(target)) {
        return 0;
    }
    if (unbind(statements, site, target) < 0) {
        return -1;
    }
    return bp_cut(statements->names->rows, statements->writer, BP_CUT_BINDINGS);
}

static int bind_tensor(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value,
                       const int64_t *parents, int count)
{
    int passed = bp_passes_over(statements, value, site->runs), done = 0;
    if (passed) {
        return passed < 0 ? -1 : pass_over(statements, site, target);
    }
    bp_known *known = bp_see(statements, value, site->number, site->how);
    if (known == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (target != NULL && PyUnicode_Check(target)) {
        int slot = bp_slot_of(statements->names, site, target);
        done = slot < 0 ? -1 : bp_bind_name(statements->names, site, slot, known, parents, count);
    }
    Py_DECREF(known);
    return done;
}

/* `part.bind(value, target or None, site)` of the modules or the optimizers. */
static int bind_part(PyObject *part, bp_site *site, PyObject *target, PyObject *value)
{
    PyObject *name = target != NULL && PyUnicode_Check(target) ? target : Py_None;
    PyObject *done = PyObject_CallMethod(part, "bind", "OOL", value, name, (long long)site->number);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The target of one element: a new reference, NULL for none (or with an exception). */
static PyObject *element_of(PyObject *target, Py_ssize_t index, Py_ssize_t count)
{
    if (target == NULL || target == Py_None) {
        return NULL;
    }
    if (PyUnicode_Check(target)) {
        return PyUnicode_FromFormat("%U[%zd]", target, index);
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.binder");
    PyObject *part = module == NULL ? NULL : PyObject_CallMethod(module, "element_target", "Onn", target, index, count);
    Py_XDECREF(module);
    if (part == Py_None) {
        Py_CLEAR(part);
    }
    return part;
}

static int bind_elements(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value,
                         const int64_t *parents, int count, int depth)
{
    Py_ssize_t length = Py_SIZE(value);
    for (Py_ssize_t index = 0; index < Py_SIZE(value); index++) {
        PyObject *element = PyTuple_Check(value) ? PyTuple_GET_ITEM(value, index) : PyList_GET_ITEM(value, index);
        if (element == NULL || bp_is_plain(element)) {
            continue;
        }
        Py_INCREF(element);
        PyObject *part = element_of(target, index, length);
        int done = part == NULL && PyErr_Occurred()
                       ? -1
                       : bp_bind_value(statements, site, part, element, parents, count, depth + 1);
        Py_XDECREF(part);
        Py_DECREF(element);
        if (done < 0) {
            return -1;
        }
    }
    return 0;
}

static int bind_items(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value,
                      const int64_t *parents, int count, int depth)
{
    PyObject *items = PyDict_Items(value);
    int named = target != NULL && PyUnicode_Check(target) && PyUnicode_GET_LENGTH(target) > 0, done = 0;
    for (Py_ssize_t i = 0; items != NULL && done == 0 && i < PyList_GET_SIZE(items); i++) {
        PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        PyObject *element = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
        if ((!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key)) || bp_is_plain(element)) {
            continue;
        }
        PyObject *part = named ? PyUnicode_FromFormat("%U[%R]", target, key) : NULL;
        done = named && part == NULL ? -1 : bp_bind_value(statements, site, part, element, parents, count, depth + 1);
        Py_XDECREF(part);
    }
    Py_XDECREF(items);
    return items == NULL ? -1 : done;
}

/* ---- dataclasses: read as they lie in memory, never by code of the program */

/* The fields of a dataclass, borrowed; NULL, without an exception, for another class. */
static PyObject *fields_of(PyTypeObject *kind)
{
    PyObject *fields = _PyType_Lookup(kind, bp_name___dataclass_fields__);
    return fields != NULL && PyDict_CheckExact(fields) ? fields : NULL;
}

int bp_is_dataclass(PyTypeObject *kind)
{
    return fields_of(kind) != NULL && !PyType_FastSubclass(kind, Py_TPFLAGS_TUPLE_SUBCLASS) &&
           !PyType_IsSubtype(kind, bp_torch.module) && !PyType_IsSubtype(kind, bp_torch.optimizer);
}

/* What a descriptor of that type says of a value, a new reference; NULL for none, or with an exception. */
static PyObject *read_by(PyObject *descriptor, PyTypeObject *type, PyObject *value)
{
    if (descriptor == NULL || !Py_IS_TYPE(descriptor, type)) {
        return NULL;
    }
    Py_INCREF(descriptor);
    PyObject *found = type->tp_descr_get(descriptor, value, (PyObject *)Py_TYPE(value));
    Py_DECREF(descriptor);
    if (found == NULL && (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError))) {
        PyErr_Clear();
    }
    return found;
}

/* What a field holds, by a slot or in the value's dictionary: as read_by. */
static PyObject *held_by(PyObject *value, PyObject *attributes, PyObject *field)
{
    PyObject *member = _PyType_Lookup(Py_TYPE(value), field);
    if (member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        return read_by(member, &PyMemberDescr_Type, value);
    }
    return attributes == NULL || !PyDict_Check(attributes) ? NULL
                                                           : Py_XNewRef(PyDict_GetItemWithError(attributes, field));
}

static int bind_field(bp_statements *statements, bp_site *site, PyObject *target, PyObject *field, PyObject *held,
                      const int64_t *parents, int count, int depth)
{
    int named = target != NULL && PyUnicode_Check(target), plain = held == NULL || bp_is_plain(held);
    if (plain && !named) {
        return 0;
    }
    PyObject *part = named ? PyUnicode_FromFormat("%U.%U", target, field) : NULL;
    int done = named && part == NULL ? -1
               : plain               ? unbind(statements, site, part)
                                     : bp_bind_value(statements, site, part, held, parents, count, depth + 1);
    Py_XDECREF(part);
    return done;
}

/* Give what a dataclass's fields hold the names of the fields; those of another value are not looked at. */
static int bind_fields(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value,
                       const int64_t *parents, int count, int depth)
{
    PyObject *fields = fields_of(Py_TYPE(value));
    if (fields == NULL || PyDict_GET_SIZE(fields) > statements->tuple_elements) {
        return 0;
    }
    PyObject *names = PyDict_Keys(fields);
    PyObject *attributes =
        names == NULL ? NULL : read_by(_PyType_Lookup(Py_TYPE(value), bp_name___dict__), &PyGetSetDescr_Type, value);
    int done = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyList_GET_SIZE(names); i++) {
        PyObject *field = PyList_GET_ITEM(names, i);
        if (!PyUnicode_CheckExact(field)) {
            continue;
        }
        PyObject *held = held_by(value, attributes, field);
        done = held == NULL && PyErr_Occurred()
                   ? -1
                   : bind_field(statements, site, target, field, held, parents, count, depth);
        Py_XDECREF(held);
    }
    Py_XDECREF(attributes);
    Py_XDECREF(names);
    return done;
}

int bp_bind_value(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value, const int64_t *parents,
                  int count, int depth)
{
    PyTypeObject *kind = Py_TYPE(value); /* not isinstance: a proxy's `__class__` may run code of the user */
    if (bp_is_tensor(value)) {
        return bind_tensor(statements, site, target, value, parents, count);
    }
    int is_dict = kind == &PyDict_Type || kind == &PyODict_Type; /* a state_dict is of the second */
    if (is_dict || kind == &PyList_Type || PyTuple_Check(value)) {
        Py_ssize_t length = is_dict ? PyDict_GET_SIZE(value) : Py_SIZE(value);
        if (depth >= DEPTH || length > statements->tuple_elements) {
            return 0;
        }
        return is_dict ? bind_items(statements, site, target, value, parents, count, depth)
                       : bind_elements(statements, site, target, value, parents, count, depth);
    }
    if (PyType_IsSubtype(kind, bp_torch.module)) {
        return bind_part(statements->modules, site, target, value);
    }
    if (PyType_IsSubtype(kind, bp_torch.optimizer)) {
        return bind_part(statements->optimizers, site, target, value);
    }
    return depth < DEPTH ? bind_fields(statements, site, target, value, parents, count, depth) : 0;
}
