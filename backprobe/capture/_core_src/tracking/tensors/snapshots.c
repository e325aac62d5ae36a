/* The state of a tensor, compared with its last one: a snapshot or an event where it changed. The Python twin is
   snapshots.py, which says what each thing means; the order in which rows and moments come is its order.

   1. `.grad` is read of leaves and of tensors that retain it, never of another: torch would warn.
   2. `grad_fn` is read only while the node budget has room. */

#include "snapshots.h"

#include <structmember.h>
#include <string.h>

#include "measured.h"
#include "torch_api.h"

/* nodes.h */
extern PyTypeObject bp_nodes_type;
int64_t bp_nodes_meet_producer(PyObject *nodes, PyObject *node, PyObject *tensor, int64_t number, int64_t output_nr,
                               PyObject **type);

static void put_word(bp_rows *rows, const char *word) { bp_put_str(rows, word, (Py_ssize_t)strlen(word)); }

/* ---- elements that are remembered */

static int is_same(const bp_raw *raw, const bp_small *small)
{
    return raw->length == small->size && (small->size <= 0 || !memcmp(raw->bytes, small->raw, (size_t)small->size));
}

static int keep(bp_raw *raw, const bp_small *small)
{
    if (small->size > raw->length) {
        unsigned char *bytes = PyMem_RawRealloc(raw->bytes, (size_t)(small->size ? small->size : 1));
        if (bytes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        raw->bytes = bytes;
    }
    raw->length = small->size;
    if (small->size > 0) {
        memcpy(raw->bytes, small->raw, (size_t)small->size);
    }
    return 0;
}

static int write_small(bp_states *states, int64_t number, int64_t moment, const char *of, PyObject *tensor, bp_small *small)
{
    if (small->brought != NULL) {
        PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.snapshots");
        PyObject *done = module == NULL ? NULL
                                        : PyObject_CallMethod(module, "write_small", "OLLsOO", states->writer,
                                                              (long long)number, (long long)moment, of, tensor, small->brought);
        Py_XDECREF(module);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    bp_rows *rows = states->small_values;
    if (!bp_row_begin(rows, 6)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)number);
    bp_put_uint(rows, (uint64_t)moment);
    put_word(rows, of);
    put_word(rows, bp_dtype_text(small->dtype));
    bp_put_dims(rows, small->dims, small->ndim);
    bp_put_bin(rows, small->raw, small->size);
    return bp_row_end(rows);
}

/* ---- events */

/* The cause of a change, `quick` if a quick look shows it: unknown if it may be older than the statement. */
static bp_cause put_down(const bp_states *states, const bp_known *known, const bp_cause *cause, int quick)
{
    bp_cause given = *cause;
    if (cause->named || cause->unseen || cause->call >= 0 || cause->step >= 0 || known->turn >= states->since ||
        states->full >= states->since || (quick && states->quick >= states->since)) {
        return given;
    }
    given.site = -1;
    given.late = 1;
    return given;
}

static int write_changed(bp_states *states, bp_known *known, int64_t version, const bp_cause *cause)
{
    if (known->role == BP_GRADIENT && known->name == NULL) {
        return 0; /* what happens to it is told as its owner's gradient */
    }
    int64_t before = known->version < 0 ? 0 : known->version, after = version < 0 ? 0 : version;
    if (before == after &&
        bp_note(states->tensors, known,
                "its elements changed without a new _version: autograd cannot see a write through .data") < 0) {
        return -1;
    }
    int64_t moment = bp_moment_now((PyObject *)states->moments);
    bp_rows *rows = states->inplace_events;
    if (moment < 0) {
        return -1;
    }
    int64_t n = states->inplace_count++;
    if (!bp_row_begin(rows, 8)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)n);
    bp_put_uint(rows, (uint64_t)known->number);
    bp_put_uint(rows, (uint64_t)moment);
    bp_put_uint(rows, (uint64_t)before);
    bp_put_uint(rows, (uint64_t)after);
    put_word(rows, cause->unseen || cause->late ? "unknown" : cause->step >= 0 ? "optimizer" : cause->call >= 0 ? "backward" : "statement");
    bp_put_id(rows, cause->site);
    bp_put_id(rows, cause->step);
    return bp_row_end(rows);
}

static int write_leaf_grad(bp_states *states, bp_known *known, const char *kind, const bp_cause *cause, bp_ref *after,
                           int64_t version)
{
    PyObject *key = PyLong_FromLongLong(known->number);
    int added = key == NULL ? -1 : PySet_Add(states->touched, key);
    Py_XDECREF(key);
    if (added == 0 && cause->unseen && strcmp(kind, "set-none") != 0) {
        return 0; /* backward calls that were not looked at made it; who did is not known */
    }
    int64_t moment = added < 0 ? -1 : bp_moment_now((PyObject *)states->moments);
    bp_rows *rows = states->leaf_grads;
    if (moment < 0) {
        return -1;
    }
    int64_t n = states->leaf_grad_count++;
    if (!bp_row_begin(rows, 10)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)n);
    bp_put_uint(rows, (uint64_t)known->number);
    bp_put_uint(rows, (uint64_t)moment);
    put_word(rows, kind);
    bp_put_id(rows, cause->call);
    bp_put_id(rows, cause->site);
    bp_put_id(rows, known->grad == NULL ? -1 : known->grad->number);
    bp_put_id(rows, after == NULL ? -1 : after->number);
    bp_put_id(rows, known->grad_version);
    bp_put_id(rows, version);
    return bp_row_end(rows);
}

/* ---- its node */

static int write_tensor_node(bp_states *states, int64_t tensor, int64_t node, int64_t output_nr)
{
    bp_rows *rows = states->tensor_nodes;
    if (!bp_row_begin(rows, 4)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)tensor);
    bp_put_uint(rows, (uint64_t)node);
    bp_put_uint(rows, (uint64_t)output_nr);
    put_word(rows, "seen");
    return bp_row_end(rows);
}

/* The node's number and type from the graph's own part; -2: there was no room. */
static int64_t made_by(bp_states *states, PyObject *node, PyObject *of, int64_t tensor, int64_t output_nr, PyObject **type)
{
    if (Py_TYPE(states->nodes) == &bp_nodes_type) {
        int64_t made = bp_nodes_meet_producer(states->nodes, node, of, tensor, output_nr, type);
        if (made >= 0) {
            Py_INCREF(*type);
        }
        return made;
    }
    PyObject *facts = PyObject_CallMethod(states->nodes, "meet_producer", "OLL", node, (long long)tensor,
                                          (long long)output_nr);
    if (facts == NULL) {
        return -1;
    }
    int64_t number = -2;
    if (facts != Py_None) {
        number = bp_integer(facts, bp_name_number, -1);
        *type = number < 0 ? NULL : PyObject_GetAttrString(facts, "type");
        number = *type == NULL ? -1 : number;
    }
    Py_DECREF(facts);
    return number;
}

static PyObject *type_of_node(PyObject *node)
{
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.graph.nodes");
    PyObject *text = module == NULL ? NULL : PyObject_CallMethod(module, "type_name", "O", node);
    Py_XDECREF(module);
    return text;
}

/* A node was read of a tensor: its name, its number, its row. */
static int take_node(bp_states *states, bp_known *known, PyObject *tensor, PyObject *node, int64_t told)
{
    int64_t output_nr = bp_integer(tensor, bp_name_output_nr, -1);
    PyObject *type = NULL;
    int64_t number = output_nr < 0 ? -1 : made_by(states, node, tensor, known->number, output_nr, &type);
    if (number == -1) {
        return -1;
    }
    if (number == -2) {
        type = type_of_node(node);
        if (type == NULL) {
            return -1;
        }
    }
    Py_XSETREF(known->grad_fn, type);
    known->grad_fn_read = 1;
    if (number < 0) {
        return 0;
    }
    known->node = number;
    if (number == told) {
        return 0;
    }
    if (write_tensor_node(states, known->number, number, output_nr) < 0) {
        return -1;
    }
    if (known->created_how == NULL || PyUnicode_Compare(known->created_how, type) != 0) {
        Py_XSETREF(known->created_how, Py_NewRef(type));
        known->created_by = BP_BY_OP;
        known->proof = BP_SEEN;
        return bp_write_tensor(states->tensors, known);
    }
    return 0;
}

/* A tensor in other memory may have changed places with another, which gives it another node under the same version. */
static int look_at_node(bp_states *states, bp_known *known, PyObject *tensor, int made, int changed, int moved)
{
    if (made && known->node >= 0 && !changed && !moved) {
        return 0;
    }
    int64_t told = changed ? -1 : known->node;
    known->node = -1;
    Py_CLEAR(known->grad_fn);
    known->grad_fn_read = !made;
    if (!made || !states->walks) {
        return 0;
    }
    int room = bp_flag(states->nodes, bp_name_has_room);
    if (room <= 0) {
        PyObject *done = room < 0 ? NULL : bp_method(states->nodes, bp_name_refuse);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    PyObject *node = PyObject_GetAttr(tensor, bp_name_grad_fn);
    int done = node == NULL ? -1 : node == Py_None ? 0 : take_node(states, known, tensor, node, told);
    Py_XDECREF(node);
    return done;
}

/* ---- its gradient */

static const char *kind_of(bp_ref *before, bp_ref *after, const bp_cause *cause)
{
    int in_pass = cause->call >= 0;
    if (before == NULL) {
        return in_pass ? "populate" : "assigned";
    }
    if (before == after) {
        return in_pass ? "accumulate" : "modified-in-place";
    }
    return in_pass ? "accumulate-new-tensor" : "assigned";
}

/* A gradient is a tensor with a state of its own: recorded in small programs, and where it carries a graph. */
static int meet_gradient(bp_states *states, PyObject *gradient, const bp_cause *cause)
{
    bp_tensors *tensors = states->tensors;
    int wants = bp_flag(gradient, bp_name_requires_grad);
    if (wants < 0) {
        return -1;
    }
    if (!wants && PyDict_GET_SIZE(tensors->live) > states->exact_tensors) {
        return 0;
    }
    int met = bp_known_find(tensors, gradient) != NULL;
    bp_known *known = bp_meet(tensors, gradient, cause->site, NULL);
    if (known == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int done = 0;
    if (!met) {
        known->role = BP_GRADIENT;
        done = bp_write_tensor(tensors, known) < 0 ? -1 : bp_look(states, known, gradient, cause);
    }
    Py_DECREF(known);
    return done;
}

/* A gradient is what a backward call brought: its statistics are known from its arrival. */
static int is_as_it_came(const bp_states *states, const bp_known *known, PyObject *tensor, PyObject *gradient, int64_t version,
                         const bp_cause *cause)
{
    const bp_arrival *arrival = known->arrival;
    bp_tensor_view view;
    bp_measured_at now;
    if (arrival == NULL || cause->call < 0 || arrival->call != cause->call || states->custom_call == cause->call ||
        states->hooked || !bp_is_exact(gradient) ||
        !(arrival->node >= 0 ? bp_place_away(gradient, &now)
                             : bp_view_of(gradient, &view) && bp_place_of(&view, version, &now)) ||
        !bp_same_place(&now, &arrival->at)) {
        return 0;
    }
    PyObject *hooks = PyObject_GetAttr(tensor, bp_name__post_accumulate_grad_hooks);
    int free = hooks == Py_None; /* they may have been registered before anything was captured */
    Py_XDECREF(hooks);
    PyErr_Clear();
    return free;
}

/* Measure a gradient that changed, once for its owner's snapshot and for its own. */
static int measure_gradient(bp_states *states, const bp_known *known, PyObject *tensor, PyObject *gradient,
                            int64_t version, const bp_cause *cause)
{
    states->measured = NULL;
    states->came_node = -1;
    if (!states->measures) {
        return 0;
    }
    if (is_as_it_came(states, known, tensor, gradient, version, cause)) {
        states->measured_row = known->arrival->row;
        states->measured_has = known->arrival->node < 0;
        states->came_call = known->arrival->call;
        states->came_node = known->arrival->node;
    } else {
        states->measured_has = bp_measure_tensor(gradient, &states->limits, states->caps, &states->measured_row);
    }
    states->measured = gradient;
    return states->measured_has < 0 ? -1 : 0;
}

static int measure(const bp_states *states, PyObject *tensor, bp_row *row)
{
    if (states->measured == tensor) {
        *row = states->measured_row;
        return states->measured_has;
    }
    return bp_measure_tensor(tensor, &states->limits, states->caps, row);
}

/* Whether `.grad` changed since the last look: 1, 0, or -1 with an exception. */
static int look_at_gradient(bp_states *states, bp_known *known, PyObject *tensor, PyObject *gradient,
                            const bp_cause *cause, int is_leaf, int empties, bp_small *small)
{
    if (gradient == NULL) {
        if (known->grad == NULL) {
            return 0;
        }
        bp_cause by = put_down(states, known, cause, 1);
        if (empties && write_leaf_grad(states, known, "set-none", &by, NULL, -1) < 0) {
            return -1;
        }
        Py_CLEAR(known->grad);
        known->grad_version = known->grad_raw.length = -1;
        return 1;
    }
    bp_ref *ref = bp_ref_of(states->tensors->ids, gradient);
    int64_t version = ref == NULL ? -2 : bp_version_of(gradient);
    if (version == -2 || (states->measures && bp_read_small(gradient, states->most_elements, small) < 0)) {
        return -1;
    }
    if (ref == known->grad && version == known->grad_version && is_same(&known->grad_raw, small)) {
        return 0;
    }
    if (is_leaf) {
        bp_cause by = put_down(states, known, cause, ref != known->grad || version != known->grad_version);
        if (write_leaf_grad(states, known, kind_of(known->grad, ref, cause), &by, ref, version) < 0) {
            return -1;
        }
    }
    Py_XSETREF(known->grad, (bp_ref *)Py_NewRef(ref));
    known->grad_version = version;
    if (keep(&known->grad_raw, small) < 0 || measure_gradient(states, known, tensor, gradient, version, cause) < 0 ||
        meet_gradient(states, gradient, cause) < 0) {
        return -1;
    }
    return 1;
}

/* ---- the look */

static int is_on_cpu(PyObject *tensor)
{
    int on_cpu = bp_flag(tensor, bp_name_is_cpu);
    PyErr_Clear();
    return on_cpu != 0;
}

typedef struct {
    PyObject *tensor, *gradient; /* gradient NULL: None or not read */
    int value_changed, grad_changed;
    bp_small value, grad;
} seen;

/* Where the values of a tensor on another device were asked for before: (call, node), or None. */
static PyObject *came(const bp_states *states, PyObject *tensor, int away)
{
    if (!away || states->measured != tensor || states->came_node < 0) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("(LL)", (long long)states->came_call, (long long)states->came_node);
}

static PyObject *id_of(int64_t number) { return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(number); }

/* What of a snapshot lies on another device comes over later: the twin's words for it. */
static int complete(bp_states *states, const bp_known *known, const seen *now, int64_t moment, const char *grad)
{
    int value_away = states->measures && now->value_changed && now->value.data == NULL && !is_on_cpu(now->tensor);
    int grad_away = states->measures && now->grad_changed && now->gradient != NULL && now->grad.data == NULL &&
                    !is_on_cpu(now->gradient);
    if (!value_away && !grad_away) {
        return 0;
    }
    const bp_state *state = &known->state;
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.completion");
    PyObject *facts = module == NULL
        ? NULL
        : Py_BuildValue("(NLLsONNNN)", bp_flags_tuple(state), (long long)known->number, (long long)moment, grad,
                        state->grad_fn == NULL ? Py_None : state->grad_fn,
                        PyBool_FromLong(state->grad_fn_read), id_of(state->version),
                        id_of(known->grad == NULL ? -1 : known->grad->number), id_of(known->grad_version));
    PyObject *done = facts == NULL ? NULL
                                   : PyObject_CallMethod(module, "complete_snapshot_of", "OOOONN", states->writer, facts,
                                                         value_away ? now->tensor : Py_None,
                                                         grad_away ? now->gradient : Py_None,
                                                         came(states, now->tensor, value_away),
                                                         came(states, now->gradient, grad_away));
    Py_XDECREF(facts);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

#define BP_PUT(name) bp_put_bool(rows, state->name);

static int write_snapshot(bp_states *states, bp_known *known, seen *now)
{
    static const char *const GRADS[] = {"none", "present", "not-read"};
    int64_t moment = bp_moment_now((PyObject *)states->moments);
    bp_row value, grad;
    int has_value = 0, has_grad = 0;
    if (moment < 0) {
        return -1;
    }
    if (states->measures && now->value_changed) {
        has_value = measure(states, now->tensor, &value);
    }
    if (has_value >= 0 && states->measures && now->grad_changed && now->gradient != NULL) {
        has_grad = measure(states, now->gradient, &grad);
    }
    if (has_value < 0 || has_grad < 0) {
        return -1;
    }
    bp_rows *rows = states->snapshots;
    const bp_state *state = &known->state;
    if (bp_row_begin(rows, 10 + BP_FLAGS)) {
        bp_put_uint(rows, (uint64_t)known->number);
        bp_put_uint(rows, (uint64_t)moment);
        BP_FIRST_FLAGS(BP_PUT)
        put_word(rows, GRADS[(int)state->grad]);
        bp_put_text(rows, state->grad_fn);
        bp_put_bool(rows, state->grad_fn_read);
        bp_put_id(rows, state->version);
        bp_put_id(rows, known->grad == NULL ? -1 : known->grad->number);
        bp_put_id(rows, known->grad_version);
        bp_put_measured(rows, has_value, &value);
        bp_put_measured(rows, has_grad, &grad);
        BP_LATER_FLAGS(BP_PUT)
        if (bp_row_end(rows) < 0 || complete(states, known, now, moment, GRADS[(int)state->grad]) < 0) {
            return -1;
        }
    }
    if (now->value_changed && now->value.size >= 0 &&
        write_small(states, known->number, moment, "value", now->tensor, &now->value) < 0) {
        return -1;
    }
    if (now->grad_changed && now->gradient != NULL && now->grad.size >= 0) {
        return write_small(states, known->number, moment, "grad", now->gradient, &now->grad);
    }
    return 0;
}

static int same_text(PyObject *one, PyObject *other)
{
    return one == other || (one != NULL && other != NULL && PyUnicode_Compare(one, other) == 0);
}

static int append_version(bp_known *known, bp_version version)
{
    if (known->version_count == known->version_room) {
        size_t room = known->version_room ? known->version_room * 2 : 2;
        bp_version *versions = PyMem_RawRealloc(known->versions, room * sizeof *versions);
        if (versions == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        known->versions = versions;
        known->version_room = room;
    }
    known->versions[known->version_count++] = version;
    return 0;
}

/* It has the same bytes in another shape: `.data =` gave it other memory, or it has no version, which tells it otherwise. */
static int is_reshaped(const bp_known *known, const bp_small *small)
{
    return small->size > 0 && small->brought == NULL && (small->place != known->place || known->version < 0) && known->is.ndim >= 0 &&
           (small->ndim != known->is.ndim || memcmp(small->dims, known->is.dims, (size_t)small->ndim * sizeof(int64_t)) != 0);
}

static int compare(bp_states *states, bp_known *known, const bp_cause *cause, seen *now, bp_state *state)
{
    PyObject *tensor = now->tensor;
    int64_t version = bp_version_of(tensor);
    if (version == -2 || bp_read_small(tensor, states->measures ? states->most_elements : -1, &now->value) < 0) {
        return -1;
    }
    int version_changed = version != known->version;
    now->value_changed = known->is_new || version_changed || !is_same(&known->raw, &now->value) || is_reshaped(known, &now->value);
    if (now->value_changed && !known->is_new) {
        bp_cause by = put_down(states, known, cause, version_changed);
        if (write_changed(states, known, version, &by) < 0) {
            return -1;
        }
    }
    /* `.data =` gives other memory, whose elements may be the same */
    if (!known->is_new && (now->value_changed || now->value.place != known->place || !now->value.place) &&
        bp_refresh(states->tensors, known, tensor) < 0) {
        return -1;
    }
    int moved = now->value.place && now->value.place != known->place;
    known->place = now->value.place;
    int64_t number = cause->sequence >= 0 ? cause->sequence : bp_sequence_number();
    if (number < 0) {
        return -1;
    }
    if ((known->is_new || version_changed) &&
        append_version(known, (bp_version){known->is_new ? number : known->looked_at, number, version < 0 ? 0 : version}) < 0) {
        return -1;
    }
    known->looked_at = number;
    if (look_at_node(states, known, tensor, state->requires_grad && !state->is_leaf, version_changed, moved) < 0) {
        return -1;
    }
    int reads = state->is_leaf || state->retains_grad;
    PyObject *gradient = reads ? PyObject_GetAttr(tensor, bp_name_grad) : NULL;
    if (reads && gradient == NULL) {
        return -1;
    }
    if (gradient == Py_None) {
        Py_CLEAR(gradient);
    }
    now->gradient = gradient;
    int followed = state->is_leaf && state->requires_grad;
    now->grad_changed = look_at_gradient(states, known, tensor, gradient, cause, followed, followed || state->retains_grad,
                                         &now->grad);
    if (now->grad_changed < 0) {
        return -1;
    }
    state->grad = !reads ? BP_GRAD_NOT_READ : gradient == NULL ? BP_GRAD_NONE : BP_GRAD_PRESENT;
    state->grad_fn = known->grad_fn;
    state->grad_fn_read = known->grad_fn_read;
    state->version = version;
    state->known = 1;
    const bp_state *old = &known->state;
#define BP_IS_SAME(name) old->name == state->name &&
    int same = old->known && BP_STATE_FLAGS(BP_IS_SAME) old->grad == state->grad && same_text(old->grad_fn, state->grad_fn) &&
               old->grad_fn_read == state->grad_fn_read && old->version == state->version;
#undef BP_IS_SAME
    known->version = version;
    known->turn = states->turn;
    if (keep(&known->raw, &now->value) < 0) {
        return -1;
    }
    if (same && !now->value_changed && !now->grad_changed) {
        return 0;
    }
    known->is_new = 0;
    Py_XINCREF(state->grad_fn);
    PyObject *grad_fn = known->state.grad_fn;
    known->state = *state;
    Py_XDECREF(grad_fn);
    return write_snapshot(states, known, now);
}

int bp_differs(bp_known *known, PyObject *tensor)
{
    int64_t version = known->state.known ? bp_version_of(tensor) : -2;
    if (version != known->version) {
        return version == -2 && PyErr_Occurred() ? -1 : 1;
    }
    if (!known->state.retains_grad && !(known->state.is_leaf && known->state.requires_grad)) {
        return 0;
    }
    PyObject *gradient = PyObject_GetAttr(tensor, bp_name_grad);
    if (gradient == NULL) {
        return -1;
    }
    int differs;
    if (gradient == Py_None || known->grad == NULL) {
        differs = gradient != Py_None || known->grad != NULL;
    } else {
        PyObject *before = bp_weakref_get((PyObject *)known->grad);
        int64_t now = before == gradient ? bp_version_of(gradient) : known->grad_version;
        differs = now == -2 && PyErr_Occurred() ? -1 : before != gradient || now != known->grad_version;
        Py_XDECREF(before);
    }
    Py_DECREF(gradient);
    return differs;
}

int bp_look(bp_states *states, bp_known *known, PyObject *tensor, const bp_cause *cause)
{
    bp_state state = {0};
    int readable = bp_flags_of(tensor, &state);
    if (readable <= 0) {
        if (readable == 0 && known->readable) {
            known->readable = 0;
            return bp_note(states->tensors, known,
                           "its state cannot be read: it is one of several views of a base that changed");
        }
        return readable;
    }
    seen now;
    now.tensor = tensor;
    now.gradient = NULL;
    now.value.size = now.grad.size = -1;
    now.value.brought = now.grad.brought = NULL;
    int done = compare(states, known, cause, &now, &state);
    if (now.gradient != NULL && states->measured == now.gradient) {
        states->measured = NULL; /* from here on it may change */
    }
    Py_XDECREF(now.gradient);
    bp_small_done(&now.value);
    bp_small_done(&now.grad);
    return done;
}

/* ---- as Python sees it */

static int take_options(bp_states *states, PyObject *options)
{
    states->caps = PyObject_GetAttr(options, bp_name_caps);
    if (states->caps == NULL) {
        return -1;
    }
    states->most_elements = bp_integer(states->caps, bp_name_elements, 0);
    states->exact_tensors = bp_integer(states->caps, bp_name_exact_tensors, 0);
    states->limits.statistic_elements = bp_integer(states->caps, bp_name_statistic_elements, 0);
    states->limits.block_elements = bp_integer(states->caps, bp_name_block_elements, 0);
    int measures = bp_flag(options, bp_name_measures), walks = bp_flag(options, bp_name_walks);
    states->measures = (char)(measures == 1);
    states->walks = (char)(walks == 1);
    return PyErr_Occurred() ? -1 : 0;
}

static int states_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_states *states = (bp_states *)self;
    PyObject *writer, *moments, *tensors, *nodes, *options;
    if (bp_torch_ready() < 0 || !PyArg_ParseTuple(args, "OO!O!OO", &writer, &bp_moments_type, &moments, &bp_tensors_type,
                                                  &tensors, &nodes, &options)) {
        return -1;
    }
    const struct {
        bp_rows **rows;
        int table;
    } wanted[] = {
        {&states->snapshots, BP_SNAPSHOTS},       {&states->small_values, BP_SMALL_VALUES},
        {&states->inplace_events, BP_INPLACE_EVENTS}, {&states->leaf_grads, BP_LEAF_GRADS},
        {&states->tensor_nodes, BP_TENSOR_NODES},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].rows = bp_rows_of(writer, wanted[i].table);
        if (*wanted[i].rows == NULL) {
            return -1;
        }
    }
    if (states->writer != NULL || take_options(states, options) < 0) {
        return -1;
    }
    states->writer = Py_NewRef(writer);
    states->moments = (bp_moments *)Py_NewRef(moments);
    states->tensors = (bp_tensors *)Py_NewRef(tensors);
    states->nodes = Py_NewRef(nodes);
    states->options = Py_NewRef(options);
    states->touched = PySet_New(NULL);
    states->custom_call = states->came_node = -1;
    return states->touched == NULL ? -1 : 0;
}

static int states_traverse(PyObject *self, visitproc visit, void *arg)
{
    bp_states *states = (bp_states *)self;
    Py_VISIT(states->writer);
    Py_VISIT((PyObject *)states->moments);
    Py_VISIT((PyObject *)states->tensors);
    Py_VISIT(states->nodes);
    Py_VISIT(states->touched);
    return 0;
}

static int states_clear(PyObject *self)
{
    bp_states *states = (bp_states *)self;
    Py_CLEAR(states->writer);
    Py_CLEAR(states->moments);
    Py_CLEAR(states->tensors);
    Py_CLEAR(states->nodes);
    Py_CLEAR(states->options);
    Py_CLEAR(states->caps);
    Py_CLEAR(states->touched);
    return 0;
}

static void states_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    states_clear(self);
    Py_TYPE(self)->tp_free(self);
}

int bp_cause_of(PyObject *given, bp_cause *cause)
{
    cause->sequence = -1;
    cause->named = cause->late = 0;
    cause->site = bp_integer(given, bp_name_site, -1);
    cause->call = bp_integer(given, bp_name_call, -1);
    cause->step = bp_integer(given, bp_name_step, -1);
    if (PyErr_Occurred()) {
        return -1;
    }
    cause->unseen = bp_flag(given, bp_name_unseen);
    return cause->unseen < 0 ? -1 : 0;
}

static PyObject *states_look(PyObject *self, PyObject *args)
{
    PyObject *known, *tensor, *given;
    bp_cause cause;
    if (!PyArg_ParseTuple(args, "O!OO", &bp_known_type, &known, &tensor, &given) || bp_cause_of(given, &cause) < 0 ||
        bp_look((bp_states *)self, (bp_known *)known, tensor, &cause) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *states_look_many(PyObject *self, PyObject *args)
{
    PyObject *found, *given;
    bp_cause cause;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &found, &given) || bp_cause_of(given, &cause) < 0) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        PyObject *pair = Py_NewRef(PyList_GET_ITEM(found, i)), *known = NULL, *tensor = NULL;
        int done = PyTuple_Check(pair) && PyArg_ParseTuple(pair, "O!O", &bp_known_type, &known, &tensor)
                       ? bp_look((bp_states *)self, (bp_known *)known, tensor, &cause)
                       : -1;
        Py_DECREF(pair);
        if (done < 0) {
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "pairs of what is known and its tensor");
        }
    }
    Py_RETURN_NONE;
}

static PyObject *states_untouched(PyObject *self, PyObject *args)
{
    PyObject *given, *cause_given;
    bp_cause cause;
    if (!PyArg_ParseTuple(args, "O!O", &bp_known_type, &given, &cause_given) || bp_cause_of(cause_given, &cause) < 0) {
        return NULL;
    }
    bp_known *known = (bp_known *)given;
    if (write_leaf_grad((bp_states *)self, known, "untouched", &cause, known->grad, known->grad_version) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Both are asked for by the Python twin of the graph's parts. */
static PyObject *states_small_raw(PyObject *self, PyObject *args)
{
    PyObject *number, *moment, *of, *dtype, *shape, *raw;
    if (!PyArg_ParseTuple(args, "OOOOOO", &number, &moment, &of, &dtype, &shape, &raw)) {
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.snapshots");
    PyObject *done = module == NULL ? NULL
                                    : PyObject_CallMethod(module, "write_small_raw", "OOOOOOO", ((bp_states *)self)->writer,
                                                          number, moment, of, dtype, shape, raw);
    Py_XDECREF(module);
    return done;
}

static PyObject *states_statistics(PyObject *self, PyObject *args)
{
    PyObject *tensor, *raw;
    if (!PyArg_ParseTuple(args, "OO", &tensor, &raw)) {
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.tensors.snapshots");
    PyObject *given = module == NULL ? NULL
                                     : PyObject_CallMethod(module, "measure_values", "OOO", tensor, raw, ((bp_states *)self)->options);
    Py_XDECREF(module);
    return given;
}

static PyMethodDef states_methods[] = {
    {"look", states_look, METH_VARARGS, "Read a tensor's state and write down what changed since the last look."},
    {"look_many", states_look_many, METH_VARARGS, "Look at several."},
    {"record_untouched", states_untouched, METH_VARARGS, "A leaf whose `.grad` a backward call left as it was."},
    {"small_raw", states_small_raw, METH_VARARGS, "Keep elements that were read before."},
    {"statistics", states_statistics, METH_VARARGS, "A tensor reduced to numbers."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef states_members[] = {
    {"hooked", T_BOOL, offsetof(bp_states, hooked), 0, "Hooks of the program may write during a backward call."},
    {"touched", T_OBJECT_EX, offsetof(bp_states, touched), 0, "Leaves whose `.grad` changed."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject bp_states_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.States",
    .tp_doc = "Compares tensors with their last state.",
    .tp_basicsize = sizeof(bp_states),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = states_init,
    .tp_dealloc = states_dealloc,
    .tp_traverse = states_traverse,
    .tp_clear = states_clear,
    .tp_methods = states_methods,
    .tp_members = states_members,
};

int bp_add_states(PyObject *module) { return PyModule_AddType(module, &bp_states_type); }
