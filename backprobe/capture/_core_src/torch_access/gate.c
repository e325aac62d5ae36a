/* The gate that bodies of ours pass one at a time. The Python twin is Gate in fence.py. */

#include "gate.h"

#include <structmember.h>
#include <time.h>

#include "timeline.h"
#include "torch_api.h"

#define WAIT_NS 2000000000ll /* longest wait for another thread's body */
#define ROOM 100             /* frames that a body may need */

#if PY_VERSION_HEX >= 0x030C0000
#define FRAMES_LEFT(state) ((state)->py_recursion_remaining)
#else
#define FRAMES_LEFT(state) ((state)->recursion_remaining)
#endif

static PyObject *without_torch_function;

static int hide(bp_gate *gate)
{
    PyObject *context = PyObject_CallNoArgs(without_torch_function);
    PyObject *entered = context == NULL ? NULL : PyObject_CallMethod(context, "__enter__", NULL);
    if (entered == NULL) {
        Py_XDECREF(context);
        return -1;
    }
    Py_DECREF(entered);
    gate->hidden = context;
    return 0;
}

int bp_gate_shield(bp_gate *gate)
{
    gate->shields = 1;
    return gate->hidden == NULL ? hide(gate) : 0;
}

/* Wait until nobody is inside; 0 if that takes too long. */
static int waited(bp_gate *gate)
{
    int64_t start = bp_now_ns();
    while (gate->owner) {
        if (bp_now_ns() - start > WAIT_NS) {
            return 0;
        }
        struct timespec pause = {0, 20000};
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
    return 1;
}

static int has_modes(void)
{
    PyObject *count = PyObject_CallNoArgs(bp_torch.function_modes);
    long modes = count == NULL ? 0 : PyLong_AsLong(count);
    Py_XDECREF(count);
    PyErr_Clear();
    return modes > 0;
}

int bp_gate_enter(bp_gate *gate)
{
    unsigned long me = PyThread_get_thread_ident();
    if (gate->owner == me) {
        return 0;
    }
    if (FRAMES_LEFT(PyThreadState_Get()) < ROOM) {
        gate->without_room++;
        return 0;
    }
    if (bp_is_tracing() || (gate->owner && !waited(gate))) {
        return 0;
    }
    gate->owner = me;
    gate->since = bp_now_ns();
    if ((gate->shields || has_modes()) && hide(gate) < 0) {
        PyErr_Clear();
        bp_gate_leave(gate);
        return 0;
    }
    return 1;
}

void bp_gate_leave(bp_gate *gate)
{
    PyObject *hidden = gate->hidden;
    if (hidden != NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        gate->hidden = NULL;
        PyObject *left = PyObject_CallMethod(hidden, "__exit__", "OOO", Py_None, Py_None, Py_None);
        if (left == NULL) {
            PyErr_Clear();
        }
        Py_XDECREF(left);
        Py_DECREF(hidden);
        PyErr_Restore(type, value, traceback);
    }
    gate->own_ns += bp_now_ns() - gate->since;
    gate->owner = 0;
}

static PyObject *gate_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(bp_gate_enter((bp_gate *)self));
}

static PyObject *gate_leave(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bp_gate_leave((bp_gate *)self);
    Py_RETURN_NONE;
}

static PyObject *gate_is_mine(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(((bp_gate *)self)->owner == PyThread_get_thread_ident());
}

static PyObject *gate_shield(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return bp_gate_shield((bp_gate *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef gate_methods[] = {
    {"enter", gate_enter, METH_NOARGS, "Go in; false if this body is to be left out."},
    {"leave", gate_leave, METH_NOARGS, "Go out."},
    {"is_mine", gate_is_mine, METH_NOARGS, "This thread is inside."},
    {"shield", gate_shield, METH_NOARGS, "A tensor of a subclass was met."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef gate_members[] = {
    {"own_ns", T_LONGLONG, offsetof(bp_gate, own_ns), 0, "Time spent inside."},
    {"without_room", T_PYSSIZET, offsetof(bp_gate, without_room), READONLY, "Bodies left out near the recursion limit."},
    {NULL, 0, 0, 0, NULL},
};

static int gate_init(PyObject *Py_UNUSED(self), PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    if (!PyArg_ParseTuple(args, "") || bp_torch_ready() < 0) {
        return -1;
    }
    if (without_torch_function == NULL) {
        PyObject *module = PyImport_ImportModule("torch._C");
        without_torch_function = module == NULL ? NULL : PyObject_GetAttrString(module, "DisableTorchFunction");
        Py_XDECREF(module);
    }
    return without_torch_function == NULL ? -1 : 0;
}

static void gate_dealloc(PyObject *self)
{
    Py_XDECREF(((bp_gate *)self)->hidden);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject bp_gate_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Gate",
    .tp_doc = "Lets bodies of ours pass one at a time.",
    .tp_basicsize = sizeof(bp_gate),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = gate_init,
    .tp_dealloc = gate_dealloc,
    .tp_methods = gate_methods,
    .tp_members = gate_members,
};

int bp_add_gate(PyObject *module) { return PyModule_AddType(module, &bp_gate_type); }
