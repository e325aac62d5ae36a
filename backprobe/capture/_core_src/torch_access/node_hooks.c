/* A hook before a node, put without the Python code that torch has for it.

   `Node.register_prehook` asks the class of functions for `_register_hook`, which makes a handle with the next number.
   While a walk of ours runs, that function's own entry for calls from C is one of ours: no handle is made, the program's
   next hook gets the number that it would have had, and no class changes, so that no cache of attributes is emptied.
   A hook that is not ours (a finaliser may run in between) gets the original. */

#include "nodes.h"

#include <stddef.h>

static PyObject *s_register_hook, *s_register_prehook, *mixin;
static PyFunctionObject *function; /* whose entry is ours now; NULL: none */
static vectorcallfunc original;
static int depth;
static long long next_key = 1LL << 50; /* beyond every number that torch or the Python twin gives */

/* ---- the hooks of a node: a dict that handles of later hooks can refer to, lighter than an OrderedDict */

typedef struct {
    PyDictObject dict;
    PyObject *references;
} hooks_dict;

static void hooks_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((hooks_dict *)self)->references != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    PyDict_Type.tp_dealloc(self);
}

static PyTypeObject hooks_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Hooks",
    .tp_doc = "The hooks before a node, by number.",
    .tp_basicsize = sizeof(hooks_dict),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_base = &PyDict_Type,
    .tp_dealloc = hooks_dealloc,
    .tp_weaklistoffset = offsetof(hooks_dict, references),
};

static PyObject *new_hooks(void)
{
    static PyObject *nothing;
    if (nothing == NULL && (nothing = PyTuple_New(0)) == NULL) {
        return NULL;
    }
    PyObject *hooks = hooks_type.tp_new(&hooks_type, nothing, NULL);
#if PY_VERSION_HEX < 0x030E0000
    if (hooks != NULL && PyObject_GC_IsTracked(hooks)) {
        PyObject_GC_UnTrack(hooks); /* until then, a dict tracks itself once it holds what may hold others */
    }
#endif
    return hooks;
}

static PyObject *answer(PyObject *callable, PyObject *const *args, size_t given, PyObject *names)
{
    if (PyVectorcall_NARGS(given) != 2 || names != NULL || Py_TYPE(args[1]) != &bp_sentinel_type) {
        return original(callable, args, given, names);
    }
    PyObject *hooks = args[0] == Py_None ? new_hooks() : Py_NewRef(args[0]);
    PyObject *key = hooks == NULL ? NULL : PyLong_FromLongLong(next_key++);
    int done = key == NULL ? -1 : PyObject_SetItem(hooks, key, args[1]);
    if (done == 0) {
        bp_sentinel *sentinel = (bp_sentinel *)args[1];
        sentinel->hooks = hooks;
        sentinel->key = next_key - 1;
    }
    Py_XDECREF(key);
    PyObject *result = done < 0 ? NULL : PyTuple_Pack(2, hooks, Py_None);
    Py_XDECREF(hooks);
    return result;
}

static void set_entry(PyFunctionObject *of, vectorcallfunc entry)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall(of, entry);
#else
    of->vectorcall = entry;
#endif
}

int bp_hooks_begin(void)
{
    if (depth++ > 0) {
        return 0;
    }
    PyObject *found = PyObject_GetAttr(mixin, s_register_hook);
    if (found == NULL) {
        depth--;
        return -1;
    }
    if (!PyFunction_Check(found)) {
        Py_DECREF(found); /* somebody put another one there: it answers for itself */
        return 0;
    }
    function = (PyFunctionObject *)found;
    original = function->vectorcall;
    set_entry(function, answer);
    return 0;
}

void bp_hooks_end(void)
{
    if (--depth > 0 || function == NULL) {
        return;
    }
    set_entry(function, original);
    Py_CLEAR(function);
}

int bp_hook_before(PyObject *node, PyObject *hook)
{
    PyObject *args[2] = {node, hook};
    PyObject *handle = PyObject_VectorcallMethod(s_register_prehook, args, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_XDECREF(handle);
    return handle == NULL ? -1 : 0;
}

void bp_hook_off(PyObject *hook, PyObject *hooks)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *key = PyLong_FromLongLong(((bp_sentinel *)hook)->key);
    if (key == NULL || PyObject_DelItem(hooks, key) < 0) {
        PyErr_Clear(); /* the program emptied the dict itself */
    }
    Py_XDECREF(key);
    PyErr_Restore(type, value, traceback);
}

int bp_add_hooks(PyObject *Py_UNUSED(module))
{
    s_register_hook = PyUnicode_InternFromString("_register_hook");
    s_register_prehook = PyUnicode_InternFromString("register_prehook");
    PyObject *functions = PyImport_ImportModule("torch.autograd.function");
    mixin = functions == NULL ? NULL : PyObject_GetAttrString(functions, "_HookMixin");
    Py_XDECREF(functions);
    return s_register_hook == NULL || s_register_prehook == NULL || mixin == NULL ? -1 : PyType_Ready(&hooks_type);
}
