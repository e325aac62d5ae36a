/* A hook before a node, put without the Python code that torch has for it.

   `Node.register_prehook` asks the class of functions for `_register_hook`, which makes a handle with the next number.
   While a walk of ours runs, a C function answers instead: no handle is made and the program's next hook gets the number
   that it would have had. A hook that is not ours (a finaliser may run in between) gets the original. */

#include "graph.h"

static PyObject *s_register_hook, *s_register_prehook, *s_dict, *mixin, *ours, *original;
static int depth;
static long long next_key = 1LL << 50; /* beyond every number that torch or the Python twin gives */

static PyObject *answer(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || Py_TYPE(args[1]) != &bp_sentinel_type) {
        PyObject *theirs = original == NULL ? NULL : PyObject_GetAttrString(original, "__func__");
        PyObject *result = theirs == NULL ? NULL : PyObject_Vectorcall(theirs, args, (size_t)count, NULL);
        Py_XDECREF(theirs);
        return result;
    }
    PyObject *hooks = args[0] == Py_None ? PyODict_New() : Py_NewRef(args[0]);
    PyObject *key = hooks == NULL ? NULL : PyLong_FromLongLong(next_key++);
    int done = key == NULL ? -1 : PyObject_SetItem(hooks, key, args[1]);
    Py_XDECREF(key);
    PyObject *result = done < 0 ? NULL : PyTuple_Pack(2, hooks, Py_None);
    Py_XDECREF(hooks);
    return result;
}

static PyMethodDef answer_definition = {"_register_hook", (PyCFunction)(void (*)(void))answer, METH_FASTCALL, NULL};

int bp_hooks_begin(void)
{
    if (depth++ > 0) {
        return 0;
    }
    PyObject *names = PyObject_GetAttr(mixin, s_dict);
    original = names == NULL ? NULL : PyObject_GetItem(names, s_register_hook);
    Py_XDECREF(names);
    if (original == NULL || PyObject_SetAttr(mixin, s_register_hook, ours) < 0) {
        Py_CLEAR(original);
        depth--;
        return -1;
    }
    return 0;
}

void bp_hooks_end(void)
{
    if (--depth > 0) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyObject_SetAttr(mixin, s_register_hook, original) < 0) {
        PyErr_Clear();
    }
    Py_CLEAR(original);
    PyErr_Restore(type, value, traceback);
}

int bp_hook_before(PyObject *node, PyObject *hook)
{
    PyObject *args[2] = {node, hook};
    PyObject *handle = PyObject_VectorcallMethod(s_register_prehook, args, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_XDECREF(handle);
    return handle == NULL ? -1 : 0;
}

int bp_add_hooks(PyObject *Py_UNUSED(module))
{
    s_register_hook = PyUnicode_InternFromString("_register_hook");
    s_register_prehook = PyUnicode_InternFromString("register_prehook");
    s_dict = PyUnicode_InternFromString("__dict__");
    PyObject *function = PyImport_ImportModule("torch.autograd.function");
    mixin = function == NULL ? NULL : PyObject_GetAttrString(function, "_HookMixin");
    Py_XDECREF(function);
    PyObject *plain = PyCFunction_New(&answer_definition, NULL);
    ours = plain == NULL ? NULL : PyStaticMethod_New(plain);
    Py_XDECREF(plain);
    return s_register_hook == NULL || s_register_prehook == NULL || s_dict == NULL || mixin == NULL || ours == NULL ? -1
                                                                                                                   : 0;
}
