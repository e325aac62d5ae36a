/* The extension module `backprobe.capture._core`: loads its parts, each of which adds what it defines.

   1. One interpreter of a process may load it: parts keep their state in static variables.
   2. It needs the GIL: a free-threaded interpreter gets the Python twin (native.py refuses before this file is read). */

#include "core.h"

static int execute(PyObject *module)
{
    static int loaded = 0;
    if (loaded) {
        PyErr_SetString(PyExc_ImportError, "the compiled core serves one interpreter of a process");
        return -1;
    }
#define PART(add) \
    if (add(module) < 0) { \
        return -1; \
    }
#include "parts.h"
#undef PART
    loaded = 1;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "The compiled parts of the capture engine; every one has a twin in Python.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
