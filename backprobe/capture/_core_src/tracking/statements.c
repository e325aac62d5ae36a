/* What statement taps do. The Python twin is statements.py; the order in which rows and moments come is its order. */

#include "statements.h"

#include <string.h>
#include <structmember.h>

#include "torch_api.h"

#define MOST_PARENTS 64

/* ---- meeting, looking, burying */

/* The program is at its own limit: the whole body is given up. */
static int is_limit(void)
{
    return PyErr_ExceptionMatches(PyExc_RecursionError) || PyErr_ExceptionMatches(PyExc_MemoryError);
}

/* The exception that is set is ours: counted. 0: it was swallowed; -1: it is the user's, and set again. */
static int swallow(bp_statements *statements)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    PyObject *users = PyObject_CallMethod(statements->guard, "is_users", "O", value);
    int is_users = users == Py_True;
    Py_XDECREF(users);
    PyErr_Clear();
    if (is_users) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    PyObject *done = PyObject_CallMethod(statements->guard, "note", "O", value);
    Py_XDECREF(done);
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return 0;
}

int bp_swallow(bp_statements *statements)
{
    if (is_limit()) {
        PyErr_Clear();
        return 0;
    }
    return swallow(statements);
}

int bp_look_safely(bp_statements *statements, bp_known *known, PyObject *tensor, const bp_cause *cause)
{
    if (bp_look(statements->states, known, tensor, cause) == 0) {
        return 0;
    }
    PyObject *type = Py_XNewRef(PyErr_Occurred());
    int done = is_limit() ? -1 : swallow(statements);
    if (done == 0 && !known->failed) {
        known->failed = 1;
        char why[160];
        snprintf(why, sizeof why, "its state was not read everywhere: %.60s in the recorder",
                 PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "an error");
        done = bp_note(statements->tensors, known, why);
    }
    Py_XDECREF(type);
    return done;
}

bp_known *bp_see(bp_statements *statements, PyObject *tensor, int64_t site, PyObject *how)
{
    if (!bp_is_exact(tensor) && bp_gate_shield(statements->gate) < 0) {
        return NULL;
    }
    bp_known *known = bp_meet(statements->tensors, tensor, site, how);
    bp_cause cause = {site, -1, -1, -1, 0, 0, 0};
    if (known != NULL && known->is_new && bp_look_safely(statements, known, tensor, &cause) < 0) {
        Py_CLEAR(known);
    }
    return known;
}

int bp_passes_over(bp_statements *statements, PyObject *tensor, int64_t times)
{
    if (bp_is_kept(times, statements->operation_most) || bp_truth_of_call(bp_torch.grad_enabled) ||
        !bp_is_exact(tensor)) {
        return 0;
    }
    bp_state state;
    int told = bp_flags_of(tensor, &state);
    return told < 0 ? -1 : told && !state.requires_grad && bp_known_find(statements->tensors, tensor) == NULL;
}

int bp_look_at_all(bp_statements *statements, const bp_cause *cause, int leaves_only)
{
    PyObject *all = PyDict_Values(statements->tensors->live);
    int done = all == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyList_GET_SIZE(all); i++) {
        bp_known *known = (bp_known *)PyList_GET_ITEM(all, i);
        PyObject *tensor = bp_weakref_get((PyObject *)known->ref);
        if (tensor != NULL && (!leaves_only || !known->state.known || known->state.is_leaf)) {
            done = bp_look_safely(statements, known, tensor, cause);
        }
        Py_XDECREF(tensor);
    }
    Py_XDECREF(all);
    if (!leaves_only) {
        statements->states->full = statements->states->turn;
    }
    return done;
}

int bp_bury_all(bp_statements *statements)
{
    if (statements->tensors->ids->dead_count && bp_bury(statements->tensors) < 0) {
        return -1;
    }
    if (!bp_nodes_wait(statements->nodes)) {
        return 0;
    }
    PyObject *done = bp_method(statements->nodes, bp_name_bury);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Compare the versions and gradients of all tensors with the last ones, and what differs with its last state. */
static int look_quickly(bp_statements *statements, const bp_cause *cause)
{
    PyObject *all = PyDict_Values(statements->tensors->live);
    int done = all == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyList_GET_SIZE(all); i++) {
        bp_known *known = (bp_known *)PyList_GET_ITEM(all, i);
        PyObject *tensor = bp_weakref_get((PyObject *)known->ref);
        int differs = tensor == NULL ? 0 : bp_differs(known, tensor);
        if (differs < 0) {
            PyErr_Clear(); /* the look meets the same error, and counts it */
        }
        if (differs) {
            done = bp_look_safely(statements, known, tensor, cause);
        }
        Py_XDECREF(tensor);
    }
    Py_XDECREF(all);
    statements->states->quick = statements->states->turn;
    return done;
}

/* Compare with their last state the tensors that a statement names. */
static int look_at_named(bp_statements *statements, bp_site *site, const bp_cause *cause)
{
    int64_t numbers[2 * MOST_PARENTS];
    int count = bp_held_by(statements->names, site->reads, site->read_count, numbers, MOST_PARENTS, 0);
    count = bp_held_by(statements->names, site->keys, site->key_count, numbers, 2 * MOST_PARENTS, count);
    for (int i = 0; i < count; i++) {
        bp_known *known = bp_known_at(statements->tensors, numbers[i]);
        PyObject *tensor = known == NULL ? NULL : bp_weakref_get((PyObject *)known->ref);
        if (tensor == NULL) {
            continue;
        }
        Py_INCREF(known);
        int done = bp_look_safely(statements, known, tensor, cause);
        Py_DECREF(known);
        Py_DECREF(tensor);
        if (done < 0) {
            return -1;
        }
    }
    return 0;
}

/* Everything is compared where little lives; at a statement that ran often what it names, and of the rest the versions. */
static int look_again(bp_statements *statements, bp_timeline *timeline, bp_site *site, int64_t sequence)
{
    bp_states *states = statements->states;
    int is_full = site->once || bp_is_kept(site->runs, statements->function_times), few = bp_is_few(statements), done;
    int changes = is_full || !site->is_inert;
    bp_cause cause = {site->number, -1, -1, sequence, 0, 0, 0}, named = cause;
    named.named = !site->is_inert;
    if (changes) {
        states->since = states->turn++;
        bp_compared(timeline);
    }
    if (few && is_full) {
        done = bp_look_at_all(statements, &cause, 0);
    } else {
        done = look_at_named(statements, site, &named);
        if (done == 0 && changes && bp_is_few(statements)) {
            done = look_quickly(statements, &cause);
        }
    }
    states->since = states->turn;
    return done;
}

/* A function begins behind calls of modules: what they changed is its caller's doing, not that of its lines. */
static int look_before(bp_statements *statements, bp_site *site, int64_t caller, int64_t sequence)
{
    bp_states *states = statements->states;
    bp_cause cause = {caller, -1, -1, sequence, 0, 0, caller < 0};
    states->since = states->turn++;
    int done = bp_is_kept(site->runs, statements->function_times) ? bp_look_at_all(statements, &cause, 0)
                                                                  : look_quickly(statements, &cause);
    states->since = states->turn;
    return done;
}

static int flush(bp_statements *statements)
{
    statements->flushed_ns = bp_now_ns();
    PyObject *done = bp_method(statements->writer, bp_name_flush);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int bp_flush_if_due(bp_statements *statements)
{
    if (bp_now_ns() - statements->flushed_ns < statements->flush_ns) {
        return 0;
    }
    return flush(statements);
}

/* ---- where the program is */

int64_t bp_calling_site(bp_statements *statements, PyFrameObject *frame)
{
    int64_t site = BP_NOT_USERS;
    while (frame != NULL && site == BP_NOT_USERS) {
        site = bp_site_of_frame(statements->moments->stacks, frame);
        PyFrameObject *back = site == BP_NOT_USERS ? PyFrame_GetBack(frame) : NULL;
        Py_SETREF(frame, back);
    }
    return site == BP_NOT_USERS ? -1 : site;
}

/* ---- the taps' bodies */

/* A statement in a function that did not run often enough to be thinned out: nothing waits to be told, and what it reads
   holds no tensor. The runs at which all tensors are compared are left to the body. */
static int is_idle_early(bp_statements *statements, const bp_site *site)
{
    int64_t read;
    return !site->top && site->runs >= statements->function_times &&
           !bp_is_kept(site->runs + 1, statements->function_times) &&
           !bp_held_by(statements->names, site->reads, site->read_count, &read, 1, 0) &&
           !statements->tensors->ids->dead_count && !PyList_GET_SIZE(statements->raised) &&
           !PyDict_GET_SIZE(statements->ended) && !bp_nodes_wait(statements->nodes);
}

int bp_is_idle(bp_statements *statements, bp_site *site, PyObject *const *values, Py_ssize_t count)
{
    if (!site->is_inert) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!bp_is_plain(values[i])) {
            return 0;
        }
    }
    for (int i = 0; i < site->key_count; i++) {
        if (statements->names->names[site->keys[i]].held >= 0) {
            return 0;
        }
    }
    if (site->runs < statements->site_times && !is_idle_early(statements, site)) {
        return 0;
    }
    site->runs++;
    return 1;
}

int bp_is_followed(bp_statements *statements, int64_t number)
{
    if (number < 0) {
        return 0;
    }
    size_t index = (size_t)number;
    if (index >= statements->operation_room) {
        size_t room = index < 32 ? 64 : index * 2;
        uint32_t *grown = PyMem_RawRealloc(statements->operation_times, room * sizeof *grown);
        if (grown == NULL) {
            return 0;
        }
        memset(grown + statements->operation_room, 0, (room - statements->operation_room) * sizeof *grown);
        statements->operation_times = grown;
        statements->operation_room = room;
    }
    return bp_is_kept(++statements->operation_times[index], statements->operation_most);
}

int bp_operation(bp_statements *statements, int64_t number, PyObject *given)
{
    PyObject *done = PyObject_CallMethod(statements->operations, "took", "LO", (long long)number, given);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The tensors that went into the values of a statement that is about to end; how many, -1 with an exception. */
static int parents_in(bp_statements *statements, bp_site *site, int64_t *parents)
{
    if (PyDict_GET_SIZE(statements->ended)) {
        PyObject *seen = PyObject_CallMethod(statements->operations, "parents", "L", (long long)site->number);
        if (seen == NULL) {
            return -1;
        }
        if (PyTuple_Check(seen)) {
            int count = (int)Py_MIN(PyTuple_GET_SIZE(seen), MOST_PARENTS);
            for (int i = 0; i < count; i++) {
                parents[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(seen, i));
            }
            Py_DECREF(seen);
            return PyErr_Occurred() ? -1 : count;
        }
        Py_DECREF(seen);
    }
    return bp_held_by(statements->names, site->operands, site->operand_count, parents, MOST_PARENTS, 0);
}

/* The values of a statement have their names. */
static int end_operations(bp_statements *statements, int64_t site)
{
    if (!PyDict_GET_SIZE(statements->ended)) {
        return 0;
    }
    PyObject *done = PyObject_CallMethod(statements->operations, "end_statement", "L", (long long)site);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* What is no tensor: the name of a target may have held one, in an earlier call of the function say. */
static void unbind_other(bp_statements *statements, bp_site *site, Py_ssize_t target, PyObject *value)
{
    int slot = site->target_slots[target];
    if (slot >= 0 && !bp_is_tensor(value)) {
        statements->names->names[slot].held = -1;
    }
}

/* The plain names of a statement hold these values now. An error of ours does not cost the others their names. */
static int take(bp_statements *statements, bp_site *site, PyObject *const *values, Py_ssize_t count)
{
    int64_t parents[MOST_PARENTS];
    int parent_count = parents_in(statements, site, parents);
    if (parent_count < 0) {
        return -1;
    }
    if (PyTuple_GET_SIZE(site->targets) != count) {
        PyErr_SetString(PyExc_ValueError, "a tap was given another number of values than its site has targets");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unbind_other(statements, site, i, values[i]);
        if (bp_is_plain(values[i])) {
            continue;
        }
        PyObject *target = PyTuple_GET_ITEM(site->targets, i);
        if (bp_bind_value(statements, site, target, values[i], parents, parent_count, 0) < 0 &&
            (is_limit() || swallow(statements) < 0)) {
            return -1;
        }
    }
    return 0;
}

static int went_on(bp_statements *statements)
{
    if (!PyList_GET_SIZE(statements->raised)) {
        return 0;
    }
    PyObject *done = bp_method(statements->failures, bp_name_went_on);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int bp_end_statement(bp_statements *statements, int64_t number, PyObject *const *values, Py_ssize_t count)
{
    bp_site *site = bp_site_at(statements->names, number);
    bp_timeline *timeline = site == NULL ? NULL : bp_here(statements->threads);
    if (timeline == NULL) {
        return -1;
    }
    site->runs++;
    int64_t sequence = bp_close(timeline, number);
    if (sequence < 0) {
        return -1;
    }
    if (PyList_GET_SIZE(timeline->grad_bases) && PyList_SetSlice(timeline->grad_bases, 0, PY_SSIZE_T_MAX, NULL) < 0) {
        return -1;
    }
    if (bp_statement(statements->moments, number) < 0 || bp_bury_all(statements) < 0 || (count && take(statements, site, values, count) < 0) ||
        end_operations(statements, number) < 0 || look_again(statements, timeline, site, sequence) < 0) {
        return -1;
    }
    if (site->top && bp_is_kept(site->runs, statements->site_times) &&
        bp_moment_now((PyObject *)statements->moments) < 0) {
        return -1;
    }
    bp_close_statement(statements->moments);
    if (went_on(statements) < 0) {
        return -1;
    }
    if (site->top && ++statements->tops <= statements->eager_statements) {
        return flush(statements);
    }
    return bp_flush_if_due(statements);
}

/* No tap follows a `return`: what its value changed in place is looked for here, and what a statement that raised did. */
static int returned(bp_statements *statements, bp_timeline *timeline, bp_site *site, PyObject *given, int64_t sequence)
{
    int plain = bp_is_plain(given);
    if (site->is_inert && plain) {
        return end_operations(statements, site->number);
    }
    site->runs++;
    if (bp_statement(statements->moments, site->number) < 0 || bp_bury_all(statements) < 0 ||
        (!plain && bp_bind_value(statements, site, NULL, given, NULL, 0, 0) < 0) ||
        end_operations(statements, site->number) < 0 ||
        ((!site->is_inert || bp_is_kept(site->runs, statements->function_times)) &&
         look_again(statements, timeline, site, sequence) < 0)) {
        return -1;
    }
    bp_close_statement(statements->moments);
    return 0;
}

int bp_value(bp_statements *statements, int64_t number, PyObject *given, PyObject *const *containers, Py_ssize_t count)
{
    bp_site *site = bp_site_at(statements->names, number);
    bp_timeline *timeline = site == NULL ? NULL : bp_here(statements->threads);
    int64_t sequence = timeline == NULL ? -1 : bp_close(timeline, number);
    if (sequence < 0) {
        return -1;
    }
    if (site->kind == BP_RETURN_SITE) {
        return returned(statements, timeline, site, given, sequence);
    }
    Py_ssize_t targets = PyTuple_GET_SIZE(site->targets);
    for (Py_ssize_t i = 0; i < targets; i++) {
        unbind_other(statements, site, i, given);
    }
    if (bp_is_plain(given)) {
        return end_operations(statements, number);
    }
    if (bp_statement(statements->moments, number) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (bp_is_tensor(containers[i])) {
            return end_operations(statements, number);
        }
    }
    int64_t parents[MOST_PARENTS];
    int parent_count = parents_in(statements, site, parents);
    if (parent_count < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < (targets ? targets : 1); i++) {
        PyObject *target = targets ? PyTuple_GET_ITEM(site->targets, i) : NULL;
        if (bp_bind_value(statements, site, target, given, parents, parent_count, 0) < 0) {
            return -1;
        }
    }
    return end_operations(statements, number);
}

int bp_passing(bp_statements *statements, int64_t number)
{
    bp_site *site = bp_site_at(statements->names, number);
    bp_timeline *timeline = site == NULL ? NULL : bp_here(statements->threads);
    int64_t sequence = timeline == NULL ? -1 : bp_close(timeline, number);
    if (sequence < 0 || end_operations(statements, number) < 0) {
        return -1;
    }
    if (site->is_inert) {
        return 0;
    }
    site->runs++;
    if (bp_statement(statements->moments, number) < 0 || look_again(statements, timeline, site, sequence) < 0) {
        return -1;
    }
    bp_close_statement(statements->moments);
    return 0;
}

static int is_users(bp_statements *statements, PyFrameObject *frame)
{
    PyCodeObject *code = frame == NULL ? NULL : PyFrame_GetCode(frame);
    int found = code != NULL && PyDict_GetItemWithError(statements->sources, code->co_filename) != NULL;
    Py_XDECREF(code);
    return found;
}

int bp_enter(bp_statements *statements, int64_t number, PyObject *const *arguments, Py_ssize_t count)
{
    bp_site *site = bp_site_at(statements->names, number);
    bp_timeline *timeline = site == NULL ? NULL : bp_here(statements->threads);
    if (timeline == NULL) {
        return -1;
    }
    PyFrameObject *frame = PyEval_GetFrame(), *back = frame == NULL ? NULL : PyFrame_GetBack(frame);
    int inside = PyList_GET_SIZE(timeline->calls) && !is_users(statements, back);
    int64_t caller = bp_calling_site(statements, back);
    int64_t sequence = caller == -2 ? -1 : bp_close(timeline, caller);
    if (sequence < 0) {
        return -1;
    }
    if (PyList_GET_SIZE(statements->open_steps)) {
        PyObject *done = PyObject_CallMethod(statements->optimizers, "look_in_step", NULL);
        Py_XDECREF(done);
        if (done == NULL) {
            return -1;
        }
    }
    site->runs++;
    if (bp_statement(statements->moments, number) < 0) {
        return -1;
    }
    if (inside) {
        PyObject *done = PyObject_CallMethod(statements->calls, "arrive", NULL);
        Py_XDECREF(done);
        if (done == NULL) {
            return -1;
        }
    } else if (timeline->modules_ran && bp_is_few(statements) && look_before(statements, site, caller, sequence) < 0) {
        return -1;
    }
    bp_compared(timeline);
    if (bp_bury_all(statements) < 0) {
        return -1;
    }
    if (PyTuple_GET_SIZE(site->targets) != count) {
        PyErr_SetString(PyExc_ValueError, "a function has another number of parameters than its site has targets");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTypeObject *kind = Py_TYPE(arguments[i]);
        unbind_other(statements, site, i, arguments[i]);
        if ((kind == &PyTuple_Type || kind == &PyList_Type || kind == &PyDict_Type || bp_is_tensor(arguments[i]) ||
             (!bp_is_plain(arguments[i]) && bp_is_dataclass(kind))) &&
            bp_bind_value(statements, site, PyTuple_GET_ITEM(site->targets, i), arguments[i], NULL, 0, 0) < 0) {
            return -1;
        }
    }
    bp_close_statement(statements->moments);
    return 0;
}

/* ---- as Python sees it */

static int take_parts(bp_statements *statements, PyObject *recorder)
{
    PyObject *gate = NULL;
    const struct {
        PyObject **slot;
        const char *name;
        PyTypeObject *type;
    } wanted[] = {
        {&statements->guard, "guard", NULL},
        {&statements->writer, "writer", NULL},
        {&statements->sites, "sites", NULL},
        {&statements->nodes, "nodes", NULL},
        {&statements->modules, "modules", NULL},
        {&statements->optimizers, "optimizers", NULL},
        {&statements->failures, "failures", NULL},
        {&statements->sampler, "sampler", NULL},
        {&statements->operations, "operations", NULL},
        {&statements->calls, "calls", NULL},
        {(PyObject **)&statements->threads, "threads", &bp_threads_type},
        {(PyObject **)&statements->moments, "moments", &bp_moments_type},
        {(PyObject **)&statements->tensors, "tensors", &bp_tensors_type},
        {(PyObject **)&statements->states, "states", &bp_states_type},
        {(PyObject **)&statements->names, "names", &bp_names_type},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].slot = PyObject_GetAttrString(recorder, wanted[i].name);
        if (*wanted[i].slot == NULL) {
            return -1;
        }
        if (wanted[i].type != NULL && Py_TYPE(*wanted[i].slot) != wanted[i].type) {
            PyErr_Format(PyExc_TypeError, "the recorder's %s is not the core's", wanted[i].name);
            return -1;
        }
    }
    gate = PyObject_GetAttrString(statements->guard, "gate");
    statements->gate = (bp_gate *)gate;
    if (gate == NULL || Py_TYPE(gate) != &bp_gate_type) {
        PyErr_SetString(PyExc_TypeError, "the guard's gate is not the core's");
        return -1;
    }
    statements->sources = PyObject_GetAttrString(statements->sites, "sources");
    statements->raised = PyObject_GetAttrString(statements->failures, "open");
    statements->open_steps = PyObject_GetAttrString(statements->optimizers, "open_steps");
    statements->ended = PyObject_GetAttrString(statements->operations, "ended");
    statements->known_modules = PyObject_GetAttrString(statements->modules, "known");
    PyObject *facts = PyObject_GetAttrString(statements->sites, "facts");
    Py_XSETREF(statements->names->facts, facts);
    if (statements->ended == NULL || !PyDict_Check(statements->ended) || statements->sources == NULL || !PyDict_Check(statements->sources) || statements->raised == NULL ||
        !PyList_Check(statements->raised) || statements->open_steps == NULL || !PyList_Check(statements->open_steps) ||
        statements->known_modules == NULL || !PyDict_Check(statements->known_modules) || facts == NULL ||
        !PyList_Check(facts)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "the recorder's parts are not as the core needs them");
        }
        return -1;
    }
    statements->module_calls = bp_rows_of(statements->writer, BP_MODULE_CALLS);
    return statements->module_calls == NULL ? -1 : 0;
}

static int statements_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_statements *statements = (bp_statements *)self;
    PyObject *recorder;
    if (!PyArg_ParseTuple(args, "O", &recorder) || statements->guard != NULL || take_parts(statements, recorder) < 0) {
        return -1;
    }
    PyObject *caps = PyObject_GetAttr(statements->writer, bp_name_caps);
    if (caps == NULL) {
        return -1;
    }
    statements->site_times = bp_integer(caps, bp_name_site_times, 0);
    statements->operation_most = bp_integer(caps, bp_name_operation_times, 0);
    statements->function_times = bp_integer(caps, bp_name_function_times, 0);
    statements->exact_tensors = bp_integer(caps, bp_name_exact_tensors, 0);
    statements->tuple_elements = bp_integer(caps, bp_name_tuple_elements, 0);
    statements->eager_statements = bp_integer(caps, bp_name_eager_statements, 0);
    PyObject *seconds = PyObject_GetAttr(caps, bp_name_flush_seconds);
    statements->flush_ns = seconds == NULL ? 0 : (int64_t)(PyFloat_AsDouble(seconds) * 1e9);
    Py_XDECREF(seconds);
    Py_DECREF(caps);
    return PyErr_Occurred() ? -1 : 0;
}

#define PARTS(X) \
    X(guard) X(writer) X(sites) X(nodes) X(modules) X(optimizers) X(failures) X(sampler) X(operations) X(calls) X(ended) X(sources) X(raised) X(open_steps) X(gate) \
    X(threads) X(moments) X(tensors) X(states) X(names) X(known_modules)

static int statements_traverse(PyObject *self, visitproc visit, void *arg)
{
    bp_statements *statements = (bp_statements *)self;
#define VISIT(part) Py_VISIT((PyObject *)statements->part);
    PARTS(VISIT)
    return 0;
}

static int statements_clear(PyObject *self)
{
    bp_statements *statements = (bp_statements *)self;
#define CLEAR(part) Py_CLEAR(statements->part);
    PARTS(CLEAR)
    return 0;
}

static void statements_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    statements_clear(self);
    PyMem_RawFree(((bp_statements *)self)->operation_times);
    Py_TYPE(self)->tp_free(self);
}

static int64_t site_or_none(PyObject *site)
{
    return site == NULL || site == Py_None ? -1 : PyLong_AsLongLong(site);
}

static PyObject *statements_see(PyObject *self, PyObject *args)
{
    PyObject *tensor, *site = Py_None, *how = NULL;
    if (!PyArg_ParseTuple(args, "O|OU", &tensor, &site, &how)) {
        return NULL;
    }
    int64_t at = site_or_none(site);
    bp_known *known = PyErr_Occurred() ? NULL : bp_see((bp_statements *)self, tensor, at, how);
    if (known == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return (PyObject *)known;
}

static PyObject *statements_look(PyObject *self, PyObject *args)
{
    PyObject *known, *tensor, *given;
    bp_cause cause;
    if (!PyArg_ParseTuple(args, "O!OO", &bp_known_type, &known, &tensor, &given) || bp_cause_of(given, &cause) < 0 ||
        bp_look_safely((bp_statements *)self, (bp_known *)known, tensor, &cause) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *statements_look_at_all(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"cause", "leaves_only", NULL};
    PyObject *given;
    int leaves_only = 0;
    bp_cause cause;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p", keywords, &given, &leaves_only) ||
        bp_cause_of(given, &cause) < 0 || bp_look_at_all((bp_statements *)self, &cause, leaves_only) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *statements_bury(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return bp_bury_all((bp_statements *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *statements_take(PyObject *self, PyObject *args)
{
    bp_statements *statements = (bp_statements *)self;
    long long number;
    PyObject *values;
    if (!PyArg_ParseTuple(args, "LO", &number, &values)) {
        return NULL;
    }
    PyObject *tuple = PySequence_Tuple(values);
    bp_site *site = tuple == NULL ? NULL : bp_site_at(statements->names, number);
    int done = site == NULL ? -1 : take(statements, site, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple));
    Py_XDECREF(tuple);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *statements_rest(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return bp_modules_rest((bp_statements *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *statements_resume(PyObject *self, PyObject *open_calls)
{
    long long count = PyLong_AsLongLong(open_calls);
    if (PyErr_Occurred() || bp_modules_resume((bp_statements *)self, count) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef statements_methods[] = {
    {"take", statements_take, METH_VARARGS, "The targets of a site hold these values now."},
    {"rest", statements_rest, METH_NOARGS, "Module calls are not followed from now on."},
    {"resume", statements_resume, METH_O, "Module calls are followed again, inside so many open ones."},
    {"see", statements_see, METH_VARARGS, "Meet a tensor and look at its state."},
    {"look", statements_look, METH_VARARGS, "Compare one tensor with its last state."},
    {"look_at_all", (PyCFunction)(void (*)(void))statements_look_at_all, METH_VARARGS | METH_KEYWORDS, "Compare every live tensor."},
    {"bury", statements_bury, METH_NOARGS, "Write down what died."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject bp_statements_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Statements",
    .tp_doc = "What statement and module taps do.",
    .tp_basicsize = sizeof(bp_statements),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = statements_init,
    .tp_dealloc = statements_dealloc,
    .tp_traverse = statements_traverse,
    .tp_clear = statements_clear,
    .tp_methods = statements_methods,
};

int bp_add_statements(PyObject *module) { return PyModule_AddType(module, &bp_statements_type); }
