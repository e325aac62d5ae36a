/* The calls of modules. The Python twin is modules.py, which also meets modules: that happens once for each. */

#include "statements.h"

#include <string.h>

#include "torch_api.h"

#define MOST_CHAIN 8192

static int push(bp_timeline *timeline, bp_opened opened)
{
    if (timeline->opened_count == timeline->opened_room) {
        size_t room = timeline->opened_room ? timeline->opened_room * 2 : 16;
        bp_opened *grown = PyMem_RawRealloc(timeline->opened, room * sizeof *grown);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        timeline->opened = grown;
        timeline->opened_room = room;
    }
    timeline->opened[timeline->opened_count++] = opened;
    return 0;
}

/* A call that is not recorded stands for the one around it. */
static int push_unrecorded(bp_timeline *timeline)
{
    bp_opened none = {.number = bp_module_call(timeline), .site = -1};
    return push(timeline, none);
}

/* The innermost call that is recorded, NULL if there is none. */
static bp_opened *innermost(bp_timeline *timeline)
{
    for (size_t i = timeline->opened_count; i > 0; i--) {
        if (timeline->opened[i - 1].own) {
            return &timeline->opened[i - 1];
        }
    }
    return NULL;
}

/* The facts of a module, a new reference; NULL without an exception if it was never met. */
static PyObject *known_module(bp_statements *statements, PyObject *module)
{
    PyObject *key = PyLong_FromVoidPtr(module);
    PyObject *known = key == NULL ? NULL : PyDict_GetItemWithError(statements->known_modules, key);
    Py_XDECREF(key);
    if (known == NULL) {
        return NULL;
    }
    PyObject *ref = PyObject_GetAttr(known, bp_name_ref);
    PyObject *object = ref == NULL ? NULL : bp_weakref_get(ref);
    Py_XDECREF(ref);
    Py_XDECREF(object);
    return object == module ? Py_NewRef(known) : NULL;
}

static PyObject *met_module(bp_statements *statements, PyObject *module, bp_timeline *timeline)
{
    PyObject *known = known_module(statements, module);
    if (known != NULL || PyErr_Occurred()) {
        return known;
    }
    PyObject *done = PyObject_CallMethod(statements->modules, "meet_called", "OO", module,
                                         timeline->opened_count ? Py_True : Py_False);
    Py_XDECREF(done);
    known = done == NULL ? NULL : known_module(statements, module);
    if (known == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_LookupError, "a module that was just met is not known");
    }
    return known;
}

static int write_call(bp_statements *statements, bp_timeline *timeline, const bp_opened *call, int64_t hi)
{
    bp_rows *rows = statements->module_calls;
    if (!bp_row_begin(rows, 12)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)call->number);
    bp_put_uint(rows, (uint64_t)call->module);
    bp_put_uint(rows, (uint64_t)call->k);
    bp_put_text(rows, call->chain);
    bp_put_id(rows, call->parent);
    bp_put_id(rows, call->site);
    bp_put_uint(rows, (uint64_t)call->lo);
    bp_put_uint(rows, (uint64_t)hi);
    bp_put_uint(rows, (uint64_t)timeline->thread);
    bp_put_bool(rows, call->training);
    bp_put_bool(rows, call->grad_mode);
    bp_put_bool(rows, call->recompute);
    return bp_row_end(rows);
}

static PyObject *chain_of(const bp_opened *parent, PyObject *known, int64_t k)
{
    PyObject *label = PyObject_GetAttr(known, bp_name_label), *chain = NULL;
    if (label != NULL) {
        chain = parent != NULL ? PyUnicode_FromFormat("%U.%U#%lld", parent->chain, label, (long long)k)
                               : PyUnicode_FromFormat("%U#%lld", label, (long long)k);
        Py_DECREF(label);
    }
    if (chain != NULL && PyUnicode_GET_LENGTH(chain) > MOST_CHAIN) {
        Py_SETREF(chain, PyUnicode_Substring(chain, 0, MOST_CHAIN));
    }
    return chain;
}

static int counted(PyObject *known, int64_t *k)
{
    *k = bp_integer(known, bp_name_calls, 0);
    if (PyErr_Occurred()) {
        return -1;
    }
    PyObject *next = PyLong_FromLongLong(*k + 1);
    int done = next == NULL ? -1 : PyObject_SetAttr(known, bp_name_calls, next);
    Py_XDECREF(next);
    return done;
}

static int is_kept(bp_statements *statements, int64_t times)
{
    PyObject *number = PyLong_FromLongLong(times);
    PyObject *kept = number == NULL ? NULL : PyObject_CallMethodOneArg(statements->sampler, bp_name_keeps_call, number);
    int truth = kept == NULL ? -1 : PyObject_IsTrue(kept);
    Py_XDECREF(number);
    Py_XDECREF(kept);
    return truth;
}

int bp_module_enter(bp_statements *statements, PyObject *module)
{
    bp_timeline *timeline = bp_here(statements->threads);
    PyObject *known = timeline == NULL ? NULL : met_module(statements, module, timeline);
    int64_t k = 0;
    if (known == NULL || counted(known, &k) < 0) {
        Py_XDECREF(known);
        return -1;
    }
    int is_library = bp_flag(known, bp_name_is_library), kept = is_library < 0 ? -1 : is_kept(statements, k + 1);
    timeline->library = is_library > 0 ? timeline->opened_count + 1 : 0;
    timeline->modules_ran |= is_library > 0;
    if (kept <= 0) {
        Py_DECREF(known);
        if (kept < 0) {
            return -1;
        }
        return bp_cut(statements->module_calls, statements->writer, BP_CUT_MODULE_CALLS) < 0 ? -1
                                                                                            : push_unrecorded(timeline);
    }
    int64_t site = bp_calling_site(statements, (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame()));
    bp_opened call = {.own = 1, .k = k, .site = site, .parent = -1};
    call.lo = site == -2 ? -1 : bp_close(timeline, site);
    call.module = call.lo < 0 ? -1 : bp_integer(known, bp_name_number, -1);
    int training = call.module < 0 ? -1 : bp_flag(module, bp_name_training);
    const bp_opened *parent = innermost(timeline);
    if (parent != NULL) {
        call.parent = parent->number;
    }
    call.chain = training < 0 ? NULL : chain_of(parent, known, k);
    Py_DECREF(known);
    if (call.chain == NULL) {
        return -1;
    }
    call.training = (char)training;
    call.grad_mode = (char)bp_autograd_records();
    call.recompute = PyList_GET_SIZE(timeline->calls) > 0;
    call.number = statements->next_module_call;
    if (push(timeline, call) < 0) {
        Py_DECREF(call.chain);
        return -1;
    }
    statements->next_module_call++;
    return write_call(statements, timeline, &call, 0);
}

int bp_module_left(bp_statements *statements)
{
    bp_timeline *timeline = bp_here(statements->threads);
    if (timeline == NULL || !timeline->opened_count) {
        return timeline == NULL ? -1 : 0;
    }
    timeline->modules_ran = 1;
    bp_opened *around = innermost(timeline);
    int64_t now = around == NULL ? 0 : bp_close(timeline, around->site);
    bp_opened call = timeline->opened[--timeline->opened_count];
    int done = now < 0 ? -1 : call.own ? write_call(statements, timeline, &call, now) : 0;
    Py_XDECREF(call.chain);
    return done;
}

int bp_module_returned(bp_statements *statements, PyObject *module, PyObject *given)
{
    bp_timeline *timeline = bp_here(statements->threads);
    if (timeline == NULL || Py_TYPE(given) != bp_torch.tensor || !bp_is_few(statements)) {
        return timeline == NULL ? -1 : 0;
    }
    const bp_opened *around = innermost(timeline);
    if (around == NULL) {
        return 0;
    }
    int64_t site = around->site;
    int passed = bp_close(timeline, site) < 0 ? -1 : bp_passes_over(statements, given, around->k + 1);
    if (passed) {
        return passed < 0 ? -1 : 0;
    }
    PyObject *how = PyType_GetQualName(Py_TYPE(module));
    bp_known *known = how == NULL ? NULL : bp_see(statements, given, site, how);
    Py_XDECREF(how);
    Py_XDECREF(known);
    return PyErr_Occurred() ? -1 : 0;
}

/* Calls are not followed from now on: those that are open end here. */
int bp_modules_rest(bp_statements *statements)
{
    bp_timeline *timeline = bp_here(statements->threads);
    int64_t now = timeline == NULL ? -1 : bp_sequence_number();
    int done = now < 0 ? -1 : 0;
    size_t count = now < 0 ? 0 : timeline->opened_count;
    for (size_t i = 0; i < count; i++) {
        bp_opened *call = &timeline->opened[i];
        if (call->own && done == 0) {
            done = write_call(statements, timeline, call, now);
        }
        Py_CLEAR(call->chain);
    }
    if (timeline != NULL) {
        timeline->opened_count = 0;
    }
    return done;
}

int bp_modules_resume(bp_statements *statements, int64_t open_calls)
{
    bp_timeline *timeline = bp_here(statements->threads);
    while (timeline != NULL && timeline->opened_count) {
        Py_CLEAR(timeline->opened[--timeline->opened_count].chain);
    }
    for (int64_t i = 0; timeline != NULL && i < open_calls; i++) {
        if (push_unrecorded(timeline) < 0) {
            return -1;
        }
    }
    return timeline == NULL ? -1 : 0;
}
