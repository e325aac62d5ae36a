/* What every file of the compiled core includes first. */

#ifndef BACKPROBE_CORE_H
#define BACKPROBE_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define PART(add) int add(PyObject *module);
#include "parts.h"
#undef PART

/* The object of a weak reference as a new reference; NULL without an exception if it died. */
static inline PyObject *bp_weakref_get(PyObject *ref)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *object = NULL;
    if (PyWeakref_GetRef(ref, &object) < 0) {
        PyErr_Clear();
    }
    return object;
#else
    PyObject *object = PyWeakref_GetObject(ref);
    if (object == NULL) {
        PyErr_Clear();
        return NULL;
    }
    return object == Py_None ? NULL : Py_NewRef(object);
#endif
}

#endif
