/* The functions that rewritten code and torch's swapped functions call. Each gives back what it was given and raises
   nothing of its own; with nobody attending it returns at once. The Python twin is taps.py.

   1. The attending Statements are held for the length of a body: the run may end inside it.
   2. An error of ours is counted by the guard; the user's own reaches the user. */

#include "statements.h"

#include "torch_api.h"

static bp_statements *attending;

/* The body ended: out of the gate, and an error of ours swallowed. 0, or -1 with the user's own exception set. */
static int ended(bp_statements *statements, int done)
{
    if (done < 0 && PyErr_Occurred()) {
        done = bp_swallow(statements);
    } else {
        done = 0;
    }
    bp_gate_leave(statements->gate);
    Py_DECREF(statements);
    return done;
}

/* The attending statements, held, inside their gate; NULL: leave the body out. */
static bp_statements *began(void)
{
    bp_statements *statements = attending;
    if (statements == NULL || !bp_gate_enter(statements->gate)) {
        return NULL;
    }
    return (bp_statements *)Py_NewRef((PyObject *)statements);
}

static inline int64_t number_of(PyObject *site) { return PyLong_AsLongLong(site); }

/* A site that ran before; NULL for one that did not, or if a body of ours is under way. */
static inline bp_site *known_site(int64_t number)
{
    bp_names *names = attending->names;
    return !attending->gate->owner && number >= 0 && (size_t)number < names->site_count ? names->sites[number] : NULL;
}

static PyObject *tap_end_statement(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (attending == NULL || count < 1) {
        Py_RETURN_NONE;
    }
    int64_t number = number_of(args[0]);
    bp_site *site = known_site(number);
    if (site != NULL && bp_is_idle(attending, site, args + 1, count - 1)) {
        Py_RETURN_NONE;
    }
    bp_statements *statements = began();
    if (statements != NULL && ended(statements, bp_end_statement(statements, number, args + 1, count - 1)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Numbers that an inert statement with a plain value issued are its own; nothing else can have happened. 1: done. */
static int closed_only(int64_t number)
{
    bp_site *site = known_site(number);
    if (site == NULL || !site->is_inert || PyDict_GET_SIZE(attending->ended)) {
        return 0;
    }
    bp_timeline *timeline = bp_here(attending->threads);
    if (timeline == NULL || bp_close(timeline, number) < 0) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static PyObject *tap_value(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        Py_RETURN_NONE;
    }
    PyObject *given = args[1];
    if (attending != NULL) {
        int64_t number = number_of(args[0]);
        bp_statements *statements = bp_is_plain(given) && closed_only(number) ? NULL : began();
        if (statements != NULL && ended(statements, bp_value(statements, number, given, args + 2, count - 2)) < 0) {
            return NULL;
        }
    }
    return Py_NewRef(given);
}

static PyObject *tap_passing(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        Py_RETURN_NONE;
    }
    if (attending != NULL) {
        int64_t number = number_of(args[0]);
        bp_statements *statements = closed_only(number) ? NULL : began();
        if (statements != NULL && ended(statements, bp_passing(statements, number)) < 0) {
            return NULL;
        }
    }
    return Py_NewRef(args[1]);
}

static PyObject *tap_operation(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        Py_RETURN_NONE;
    }
    if (attending != NULL) {
        int64_t number = number_of(args[0]);
        if (bp_is_followed(attending, number)) {
            bp_statements *statements = began();
            if (statements != NULL && ended(statements, bp_operation(statements, number, args[1])) < 0) {
                return NULL;
            }
        }
    }
    return Py_NewRef(args[1]);
}

static PyObject *tap_enter(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    bp_statements *statements = attending == NULL || count < 1 ? NULL : began();
    if (statements != NULL && ended(statements, bp_enter(statements, number_of(args[0]), args + 1, count - 1)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tap_module_enter(PyObject *Py_UNUSED(self), PyObject *module)
{
    bp_statements *statements = attending == NULL ? NULL : began();
    if (statements != NULL && ended(statements, bp_module_enter(statements, module)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tap_module_left(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    if (attending == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *type, *value, *traceback; /* it stands in a `finally`: an exception of the user may be set nowhere here */
    PyErr_Fetch(&type, &value, &traceback);
    bp_statements *statements = began();
    int done = statements == NULL ? 0 : ended(statements, bp_module_left(statements));
    if (done < 0) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return NULL;
    }
    PyErr_Restore(type, value, traceback);
    Py_RETURN_NONE;
}

static PyObject *tap_module_returned(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        Py_RETURN_NONE;
    }
    bp_statements *statements = attending == NULL || Py_TYPE(args[1]) != bp_torch.tensor ? NULL : began();
    if (statements != NULL && ended(statements, bp_module_returned(statements, args[0], args[1])) < 0) {
        return NULL;
    }
    return Py_NewRef(args[1]);
}

static PyObject *attend(PyObject *Py_UNUSED(self), PyObject *given)
{
    if (given != Py_None && Py_TYPE(given) != &bp_statements_type) {
        PyErr_SetString(PyExc_TypeError, "only the core's statements can attend");
        return NULL;
    }
    bp_statements *before = attending;
    attending = given == Py_None ? NULL : (bp_statements *)Py_NewRef(given);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

static PyMethodDef functions[] = {
    {"end_statement", FAST(tap_end_statement),
     "Follows a statement; the values are what the plain names that it bound hold now."},
    {"value", FAST(tap_value), "What a statement returns, or stores into an attribute or a subscript."},
    {"passing", FAST(tap_passing), "The value of a test, an iterable, a context or a yield."},
    {"operation", FAST(tap_operation), "What a call, operator, subscript or attribute inside a statement gave."},
    {"enter", FAST(tap_enter), "Opens a function; the arguments are its parameters."},
    {"module_enter", tap_module_enter, METH_O, "Opens a module's call."},
    {"module_left", tap_module_left, METH_NOARGS, "Closes a module's call."},
    {"module_returned", FAST(tap_module_returned), "What a module's call returns."},
    {"attend", attend, METH_O, "Who attends from now on: Statements, or None."},
    {NULL, NULL, 0, NULL},
};

int bp_add_taps(PyObject *module) { return PyModule_AddFunctions(module, functions); }
