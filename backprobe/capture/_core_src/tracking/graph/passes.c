/* What the sentinels of backward calls tell: which nodes ran, in which order, with which gradients. Twin: passes.py.

   1. A sentinel's body runs no Python code of ours where the gradient's memory can be read in place.
   2. Statistics are kept as the MessagePack of their row: when a pass ends they are copied, nothing is encoded again. */

#include "nodes.h"
#include "snapshots.h"
#include "torch_api.h"

#include <string.h>
#include <structmember.h>
#include <time.h>

#define MOST_SMALL 64           /* elements that are kept one by one: record/rows/fields.py SmallBytes */
#define STATISTICS_BYTES 80     /* the longest row of statistics */

typedef struct {
    char *bytes;
    size_t size, room;
} arena;

typedef struct {
    bp_facts *facts;
    size_t at; /* in the arena: for each output a length, 0 for a hole, and the MessagePack of its statistics */
    int32_t outputs;
    bool freed;
} ran_node;

typedef struct {
    int64_t tensor;
    size_t at, size; /* in the arena of small values: the MessagePack of dtype, shape, elements */
} small_value;

typedef struct {
    PyObject_HEAD
    int64_t call, task, own_ns;
    PyObject *met;
    unsigned long thread;
    ran_node *ran;
    small_value *small;
    size_t count, room, small_count, small_room;
    arena statistics, values;
    char detailed, late; /* late: gradients on another device came, whose values come over later */
    int64_t last_feeds; /* what the node that ran last leads to alone, and what it was brought */
    bp_measured_at last_at;
    bp_row last_row;
    int64_t last_node; /* on another device, where no row is known yet: the node that ran last */
} bp_pass;

struct bp_passes {
    PyObject_HEAD
    PyObject *writer, *states, *options, *guard, *unseen, *measured, *complete, *open, *arrive;
    bp_nodes *nodes;
    bp_rows *rows, *values;
    bp_limits limits;
    int64_t most_small, most_kept; /* most_kept: as the options say, of another device */
    char measures;
};

static PyTypeObject pass_type, passes_type;
static PyObject *current_pass, *s_run, *s_note;

void bp_walk_nodes(PyObject *walk, bp_facts ***met, size_t *count);
bool bp_walk_has(PyObject *walk, int64_t number);

/* ---- memory that grows */

static char *grow(arena *in, size_t more)
{
    if (in->size + more > in->room) {
        size_t room = in->room ? in->room * 2 : 4096;
        while (room < in->size + more) {
            room *= 2;
        }
        char *bytes = PyMem_RawRealloc(in->bytes, room);
        if (bytes == NULL) {
            return NULL;
        }
        in->bytes = bytes;
        in->room = room;
    }
    return in->bytes + in->size;
}

static int one_more(void **items, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return 0;
    }
    size_t wider = *room ? *room * 2 : 256;
    void *more = PyMem_RawRealloc(*items, wider * size);
    if (more == NULL) {
        return -1;
    }
    *items = more;
    *room = wider;
    return 0;
}

static char *pack_float(char *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *at++ = (char)0xCA;
    for (int shift = 24; shift >= 0; shift -= 8) {
        *at++ = (char)(bits >> shift);
    }
    return at;
}

static char *pack_text(char *at, const char *text)
{
    size_t length = strlen(text); /* below 32 */
    *at++ = (char)(0xA0 | length);
    memcpy(at, text, length);
    return at + length;
}

static char *pack_statistics(char *at, const bp_row *row)
{
    *at++ = (char)(0x90 | (row->sampled ? 9 : 8));
    if (row->has_norm) {
        at = pack_float(at, row->norm);
    } else {
        *at++ = (char)0xC0;
    }
    const float three[] = {row->sum, row->min, row->max};
    for (int i = 0; i < 3; i++) {
        if (row->has_sum) {
            at = pack_float(at, three[i]);
        } else {
            *at++ = (char)0xC0;
        }
    }
    at = bp_pack_uint(at, (uint64_t)row->nan);
    at = bp_pack_uint(at, (uint64_t)row->inf);
    at = bp_pack_uint(at, (uint64_t)row->zeros);
    at = bp_pack_uint(at, (uint64_t)row->counted);
    return row->sampled ? pack_text(at, "sampled") : at;
}

/* ---- an arrival */

/* The statistics of one output, with their length in front. */
static int add_statistics(bp_pass *pass, const char *bytes, size_t size)
{
    char *at = grow(&pass->statistics, size + 1);
    if (at == NULL) {
        return -1;
    }
    *at = (char)size;
    memcpy(at + 1, bytes, size);
    pass->statistics.size += size + 1;
    return 0;
}

static const char NIL[] = {(char)0xC0};

/* Keep `dtype, shape, elements` of a small tensor. */
static int add_small(bp_pass *pass, int64_t tensor, const bp_tensor_view *view)
{
    size_t bytes = (size_t)(view->numel * view->item);
    if (one_more((void **)&pass->small, pass->small_count, &pass->small_room, sizeof *pass->small) < 0) {
        return -1;
    }
    char *start = grow(&pass->values, bytes + 64 + 9 * (size_t)view->ndim), *at = start;
    if (start == NULL) {
        return -1;
    }
    at = pack_text(at, bp_dtype_label(view->dtype));
    if (view->ndim < 16) {
        *at++ = (char)(0x90 | view->ndim);
    } else {
        *at++ = (char)0xDC;
        *at++ = 0;
        *at++ = (char)view->ndim;
    }
    for (int i = 0; i < view->ndim; i++) {
        at = bp_pack_uint(at, (uint64_t)view->sizes[i]);
    }
    *at++ = (char)0xC5;
    *at++ = (char)(bytes >> 8);
    *at++ = (char)bytes;
    bp_elements(view, at);
    at += bytes;
    pass->small[pass->small_count++] = (small_value){tensor, (size_t)(start - pass->values.bytes), (size_t)(at - start)};
    pass->values.size += (size_t)(at - start);
    return 0;
}

/* The gradient that a leaf was brought, for the look at its `.grad`. */
static void keep_arrival(bp_passes *passes, const bp_facts *facts, bp_arrival arrival)
{
    if (facts->variable < 0 || Py_TYPE(passes->states) != &bp_states_type) {
        return;
    }
    bp_known *known = bp_known_at(((bp_states *)passes->states)->tensors, facts->variable);
    if (known != NULL && known->arrival == NULL) {
        known->arrival = PyMem_RawMalloc(sizeof *known->arrival);
    }
    if (known != NULL && known->arrival != NULL) {
        *known->arrival = arrival;
    }
}

/* A gradient on another device: its values come over later, and are asked for once if the node before had the same. */
static int take_away(bp_passes *passes, bp_pass *pass, bp_facts *facts, PyObject *gradient)
{
    bp_measured_at at;
    int output = (int)pass->ran[pass->count - 1].outputs, there = bp_place_away(gradient, &at);
    /* of a small one the elements are kept in their order, which a view may have turned */
    bool again = there && at.numel > passes->most_kept && facts->leaf && pass->last_node >= 0 &&
                 pass->last_feeds == facts->number && bp_same_place(&at, &pass->last_at);
    PyObject *args[] = {
        passes->guard, passes->arrive, PyLong_FromLongLong(pass->call), PyLong_FromLongLong(facts->number),
        PyLong_FromLong(output), gradient, again ? PyLong_FromLongLong(pass->last_node) : Py_NewRef(Py_None)};
    PyObject *done = args[2] == NULL || args[3] == NULL || args[4] == NULL || args[6] == NULL
                         ? NULL
                         : PyObject_VectorcallMethod(s_run, args, 7 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    for (int i = 2; i < 7; i++) {
        if (i != 5) {
            Py_XDECREF(args[i]);
        }
    }
    pass->late = true;
    pass->last_feeds = pass->last_node = -1;
    if (done == NULL) {
        return -1;
    }
    Py_DECREF(done);
    if (there && !facts->leaf && facts->kind->custom == NULL) {
        pass->last_feeds = facts->feeds;
        pass->last_at = at;
        pass->last_node = facts->number;
    } else if (there && facts->leaf) {
        bp_row none = {0};
        keep_arrival(passes, facts, (bp_arrival){at, none, pass->call, facts->number});
    }
    return add_statistics(pass, NIL, 1);
}

/* A gradient that cannot be read in place: the twin's own words for it, in the guard. */
static int take_slowly(bp_passes *passes, bp_pass *pass, bp_facts *facts, int64_t tensor, PyObject *gradient)
{
    bool counts = facts != NULL;
    PyObject *place = !counts ? Py_NewRef(Py_None)
                              : Py_BuildValue("(LLi)", (long long)pass->call, (long long)facts->number,
                                              (int)pass->ran[pass->count - 1].outputs);
    if (place == NULL) {
        return -1;
    }
    PyObject *args[] = {passes->guard, passes->measured, passes->states, passes->options, gradient, passes->writer, place};
    PyObject *told = PyObject_VectorcallMethod(s_run, args, 7 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(place);
    if (told == NULL) {
        return -1;
    }
    int done = 0;
    pass->late = pass->late || counts;
    const char *statistics = NIL, *small = NULL;
    Py_ssize_t size = 1, small_size = 0;
    if (told != Py_None && !PyArg_ParseTuple(told, "y#z#", &statistics, &size, &small, &small_size)) {
        done = -1;
    }
    if (done == 0 && counts) {
        done = add_statistics(pass, statistics, (size_t)(size > 255 ? 0 : size));
    }
    if (done == 0 && small != NULL && tensor >= 0) {
        char *at = one_more((void **)&pass->small, pass->small_count, &pass->small_room, sizeof *pass->small) < 0
                       ? NULL
                       : grow(&pass->values, (size_t)small_size);
        done = at == NULL ? -1 : 0;
        if (at != NULL) {
            memcpy(at, small, (size_t)small_size);
            pass->small[pass->small_count++] = (small_value){tensor, pass->values.size, (size_t)small_size};
            pass->values.size += (size_t)small_size;
        }
    }
    Py_DECREF(told);
    return done;
}

/* The statistics of a gradient. What a node leads to alone may be handed the same elements, turned: it runs next.
   1: filled, 0: there is nothing to reduce. */
static int reduce(bp_passes *passes, bp_pass *pass, bp_facts *facts, PyObject *gradient, const bp_tensor_view *view,
                  bp_row *row)
{
    bp_measured_at at;
    int there = bp_place_of(view, bp_version_of(gradient), &at), done = 1;
    PyErr_Clear(); /* a version that cannot be read is none */
    if (there && facts->leaf && pass->last_feeds == facts->number && bp_same_place(&at, &pass->last_at)) {
        *row = pass->last_row;
    } else {
        done = bp_stats(view, &passes->limits, row);
    }
    pass->last_feeds = -1;
    if (!there || !done || row->sampled) {
        return done;
    }
    if (!facts->leaf) {
        pass->last_feeds = facts->kind->custom == NULL ? facts->feeds : -1;
        pass->last_at = at;
        pass->last_row = *row;
        pass->last_node = -1;
    } else {
        keep_arrival(passes, facts, (bp_arrival){at, *row, pass->call, -1});
    }
    return done;
}

/* One gradient: its statistics if it `counts`, its elements if it is small and a tensor of the record awaits it. */
static int take(bp_passes *passes, bp_pass *pass, bp_facts *facts, int64_t tensor, PyObject *gradient)
{
    bp_tensor_view view;
    if (!bp_is_exact(gradient) || !bp_view_of(gradient, &view)) {
        bool tells = facts != NULL && facts->untold && bp_is_exact(gradient) && bp_shape_of(gradient, &view);
        if (tells) {
            bp_node_output_is(facts, gradient, &view);
        } else if (facts != NULL && facts->untold) {
            passes->nodes->eager = true; /* they do not tell shapes here: from now on they are read at the walk */
        }
        if (passes->measures && passes->arrive != NULL && bp_is_away(gradient)) {
            return facts == NULL ? 0 : take_away(passes, pass, facts, gradient);
        }
        return passes->measures ? take_slowly(passes, pass, facts, tensor, gradient)
               : facts != NULL  ? add_statistics(pass, NIL, 1)
                                : 0;
    }
    if (facts != NULL && facts->untold) {
        bp_node_output_is(facts, gradient, &view);
    }
    if (!passes->measures) {
        return facts != NULL ? add_statistics(pass, NIL, 1) : 0;
    }
    if (facts != NULL) {
        bp_row row;
        char bytes[STATISTICS_BYTES];
        size_t size = 1;
        bytes[0] = (char)0xC0;
        if (reduce(passes, pass, facts, gradient, &view, &row)) {
            size = (size_t)(pack_statistics(bytes, &row) - bytes);
        }
        if (add_statistics(pass, bytes, size) < 0) {
            return -1;
        }
    }
    if (tensor >= 0 && bp_is_small(&view, passes->most_small)) {
        return add_small(pass, tensor, &view);
    }
    return 0;
}

static int64_t task_now(void)
{
    PyObject *answer = PyObject_CallNoArgs(current_pass);
    int64_t task = answer == NULL ? -1 : PyLong_AsLongLong(answer);
    Py_XDECREF(answer);
    PyErr_Clear();
    return task;
}

/* The pass that runs in this thread, or that a device's own thread works for; borrowed. */
static bp_pass *pass_of(bp_passes *passes, int64_t number, int64_t task)
{
    unsigned long me = PyThread_get_thread_ident();
    bp_pass *own = NULL, *fresh = NULL, *met = NULL;
    size_t fresh_count = 0, met_count = 0;
    for (Py_ssize_t i = PyList_GET_SIZE(passes->open) - 1; i >= 0; i--) {
        bp_pass *one = (bp_pass *)PyList_GET_ITEM(passes->open, i);
        if (one->task >= 0) {
            if (one->task == task) {
                return one;
            }
            continue;
        }
        if (one->thread == me && own == NULL) {
            own = one;
        }
        fresh = one;
        fresh_count++;
        if (fresh_count > 1 || PyList_GET_SIZE(passes->open) > 1) {
            met_count += bp_walk_has(one->met, number) ? 1 : 0;
            met = met == NULL && met_count ? one : met;
        }
    }
    bp_pass *found = own != NULL ? own : fresh_count == 1 ? fresh : met_count == 1 ? met : NULL;
    if (found != NULL) {
        found->task = task;
    }
    return found;
}

static int add_ran(bp_passes *passes, bp_pass *pass, bp_facts *facts, PyObject *gradients)
{
    if (one_more((void **)&pass->ran, pass->count, &pass->room, sizeof *pass->ran) < 0) {
        return -1;
    }
    Py_ssize_t outputs = PyTuple_Check(gradients) ? PyTuple_GET_SIZE(gradients) : 0;
    ran_node *ran = &pass->ran[pass->count++];
    *ran = (ran_node){bp_facts_keep(facts), pass->statistics.size, 0, false};
    if (facts->kind->custom != NULL && Py_TYPE(passes->states) == &bp_states_type) {
        ((bp_states *)passes->states)->custom_call = pass->call;
    }
    if (!pass->detailed) {
        return 0;
    }
    if (!facts->leaf || outputs != 1) {
        pass->last_feeds = -1;
    }
    if (outputs > 1) {
        facts->kind->several = true;
    }
    bool only = outputs == 1;
    for (Py_ssize_t i = 0; i < outputs; i++) {
        PyObject *gradient = PyTuple_GET_ITEM(gradients, i);
        int64_t tensor = i < facts->tensor_room ? facts->tensors[i] : facts->leaf && i == 0 ? facts->variable : -1;
        int done;
        if (!bp_is_tensor(gradient)) {
            char *at = grow(&pass->statistics, 1);
            done = at == NULL ? -1 : 0;
            if (at != NULL) {
                *at = 0;
                pass->statistics.size++;
            }
        } else {
            bool was = facts->untold;
            facts->untold = was && only;
            done = take(passes, pass, facts, tensor, gradient);
            if (was && !only) {
                facts->untold = true; /* one of several: the others are read from the node */
            }
        }
        if (done < 0) {
            return -1;
        }
        pass->ran[pass->count - 1].outputs = (int32_t)i + 1;
    }
    return 0;
}

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Tell the guard of an error of ours; at the program's own limits nothing is said. */
static void report(bp_passes *passes)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && !PyErr_GivenExceptionMatches(type, PyExc_RecursionError) &&
        !PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
        Py_XDECREF(PyObject_CallMethodOneArg(passes->guard, s_note, value));
        PyErr_Clear();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

void bp_arrived(bp_passes *passes, bp_facts *facts, PyObject *gradients)
{
    int64_t started = clock_ns();
    bp_facts_keep(facts);
    Py_INCREF(passes);
    bp_pass *pass = pass_of(passes, facts->number, task_now());
    Py_XINCREF(pass);
    if (pass == NULL) {
        PyObject *opened = PyObject_CallMethodOneArg(passes->guard, s_run, passes->unseen);
        if (opened != NULL && Py_TYPE(opened) == &pass_type) {
            pass = (bp_pass *)Py_NewRef(opened);
            pass->task = task_now();
        }
        Py_XDECREF(opened);
    }
    if (pass != NULL && pass->call >= 0 && add_ran(passes, pass, facts, gradients) < 0 && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    if (PyErr_Occurred()) {
        report(passes);
    }
    if (pass != NULL) {
        pass->own_ns += clock_ns() - started;
        Py_DECREF(pass);
    }
    Py_DECREF(passes);
    bp_facts_drop(facts);
}

/* ---- the rows of a pass */

/* A row without the values of its gradient: they come over from another device, if they lie there. */
static int complete(bp_passes *passes, const bp_pass *pass, const ran_node *ran, int32_t output, size_t position,
                    int64_t moment)
{
    const bp_facts *facts = ran->facts;
    int64_t tensor = output < facts->tensor_room         ? facts->tensors[output]
                     : facts->leaf && output == 0 ? facts->variable
                                                  : -1;
    PyObject *done = PyObject_CallFunction(passes->complete, "O(LLinO)LL", passes->writer, (long long)pass->call,
                                           (long long)facts->number, (int)output, (Py_ssize_t)position,
                                           ran->freed ? Py_True : Py_False, (long long)tensor, (long long)moment);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int write_ran(bp_passes *passes, const bp_pass *pass, const ran_node *ran, size_t position, int64_t moment)
{
    bp_rows *rows = passes->rows;
    int32_t told = ran->outputs, outputs = told ? told : ran->facts->output_count;
    const unsigned char *at = told ? (const unsigned char *)pass->statistics.bytes + ran->at : NULL;
    outputs = outputs < 1 ? 1 : outputs;
    for (int32_t i = 0; i < outputs; i++) {
        size_t size = at == NULL ? 1 : *at;
        bool hole = size == 0;
        const char *statistics = at == NULL ? NIL : (const char *)at + 1;
        at = at == NULL ? NULL : at + 1 + size;
        bool measured = !hole && !(size == 1 && statistics[0] == NIL[0]);
        if (!bp_row_begin(rows, measured ? 7 : hole ? 6 : ran->freed ? 5 : 4)) {
            continue;
        }
        bp_put_uint(rows, (uint64_t)pass->call);
        bp_put_uint(rows, (uint64_t)ran->facts->number);
        bp_put_uint(rows, (uint64_t)i);
        bp_put_uint(rows, (uint64_t)position);
        if (measured || hole || ran->freed) {
            bp_put_bool(rows, ran->freed);
        }
        if (measured || hole) {
            bp_put_bool(rows, hole);
        }
        if (measured) {
            bp_put_raw(rows, statistics, (Py_ssize_t)size);
        }
        if (bp_row_end(rows) < 0 ||
            (pass->late && told && !measured && !hole && complete(passes, pass, ran, i, position, moment) < 0)) {
            return -1;
        }
    }
    return 0;
}

static int write_not_run(bp_passes *passes, const bp_pass *pass, uint32_t mark)
{
    bp_facts **met = NULL;
    size_t count = 0;
    bp_walk_nodes(pass->met, &met, &count);
    for (size_t i = 0; i < count; i++) {
        if (met[i]->mark == mark || !bp_row_begin(passes->rows, 2)) {
            continue;
        }
        bp_put_uint(passes->rows, (uint64_t)pass->call);
        bp_put_uint(passes->rows, (uint64_t)met[i]->number);
        if (bp_row_end(passes->rows) < 0) {
            return -1;
        }
    }
    return 0;
}

static int write_small(bp_passes *passes, const bp_pass *pass, int64_t moment)
{
    for (size_t i = 0; i < pass->small_count; i++) {
        if (!bp_row_begin(passes->values, 6)) {
            continue;
        }
        bp_put_uint(passes->values, (uint64_t)pass->small[i].tensor);
        bp_put_uint(passes->values, (uint64_t)moment);
        bp_put_str(passes->values, "arrived", 7);
        bp_put_raw(passes->values, pass->values.bytes + pass->small[i].at, (Py_ssize_t)pass->small[i].size);
        if (bp_row_end(passes->values) < 0) {
            return -1;
        }
    }
    return 0;
}

static int mark_freed(bp_pass *pass, bool keeps, bool raised, int64_t *freed)
{
    size_t done = raised && pass->count ? pass->count - 1 : pass->count;
    for (size_t i = 0; i < pass->count; i++) {
        bp_facts *facts = pass->ran[i].facts;
        if (i < done && !keeps && facts->saves && facts->freed_by < 0) {
            facts->freed_by = pass->call;
            facts->stale = true;
            pass->ran[i].freed = true;
            ++*freed;
        }
        if (facts->stale && facts->nodes != NULL && bp_node_row(facts->nodes, facts) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *passes_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"", "", "keeps", "raised", NULL};
    bp_passes *passes = (bp_passes *)self;
    PyObject *given;
    long long moment;
    int keeps, raised;
    int64_t freed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!L$pp", keywords, &pass_type, &given, &moment, &keeps, &raised)) {
        return NULL;
    }
    bp_pass *pass = (bp_pass *)given;
    if (mark_freed(pass, keeps, raised, &freed) < 0) {
        return NULL;
    }
    uint32_t mark = bp_nodes_sweep(passes->nodes);
    for (size_t i = 0; i < pass->count; i++) {
        if (pass->ran[i].facts->mark == mark) {
            continue; /* a node runs once in a pass */
        }
        pass->ran[i].facts->mark = mark;
        if (write_ran(passes, pass, &pass->ran[i], i, moment) < 0) {
            return NULL;
        }
    }
    if (write_not_run(passes, pass, mark) < 0 || write_small(passes, pass, moment) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(freed);
}

/* ---- Pass as Python sees it */

static PyObject *new_pass(PyObject *call, PyObject *met, int detailed)
{
    long long number = call == Py_None ? -1 : PyLong_AsLongLong(call);
    if (PyErr_Occurred() || Py_TYPE(met) != &bp_walk_type) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "not a compiled Walk");
        }
        return NULL;
    }
    bp_pass *pass = (bp_pass *)pass_type.tp_alloc(&pass_type, 0);
    if (pass != NULL) {
        pass->call = number;
        pass->last_feeds = pass->last_node = -1;
        pass->task = -1;
        pass->thread = PyThread_get_thread_ident();
        pass->met = Py_NewRef(met);
        pass->detailed = (char)detailed;
    }
    return (PyObject *)pass;
}

static void pass_dealloc(PyObject *self)
{
    bp_pass *pass = (bp_pass *)self;
    for (size_t i = 0; i < pass->count; i++) {
        bp_facts_drop(pass->ran[i].facts);
    }
    PyMem_RawFree(pass->ran);
    PyMem_RawFree(pass->small);
    PyMem_RawFree(pass->statistics.bytes);
    PyMem_RawFree(pass->values.bytes);
    Py_XDECREF(pass->met);
    Py_TYPE(self)->tp_free(self);
}

static Py_ssize_t pass_length(PyObject *self)
{
    bp_pass *pass = (bp_pass *)self;
    return (Py_ssize_t)pass->count;
}

static PyObject *pass_ran_with_saved(PyObject *self, PyObject *given)
{
    bp_pass *pass = (bp_pass *)self;
    long long number = PyLong_AsLongLong(given);
    if (number == -1 && PyErr_Occurred()) {
        return NULL;
    }
    for (size_t i = 0; i < pass->count; i++) {
        if (pass->ran[i].facts->number == number) {
            return PyBool_FromLong(pass->ran[i].facts->saves > 0);
        }
    }
    Py_RETURN_FALSE;
}

static PyObject *pass_call(PyObject *self, void *Py_UNUSED(closure))
{
    bp_pass *pass = (bp_pass *)self;
    return pass->call < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(pass->call);
}

static PyMethodDef pass_methods[] = {
    {"ran_with_saved", pass_ran_with_saved, METH_O, "A node ran in it that held saved tensors when it was met."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef pass_members[] = {
    {"walk", T_OBJECT, offsetof(bp_pass, met), READONLY, "What was walked before it."},
    {"detailed", T_BOOL, offsetof(bp_pass, detailed), READONLY, "Its gradients are measured."},
    {"task", T_LONGLONG, offsetof(bp_pass, task), READONLY, "The engine's number of the pass; -1 before it is known."},
    {"own_ns", T_LONGLONG, offsetof(bp_pass, own_ns), READONLY, "Time spent in its sentinels, in nanoseconds."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef pass_getset[] = {
    {"call", pass_call, NULL, "Number of the backward call; None for one of which nothing is recorded.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods pass_sequence = {.sq_length = pass_length};

static PyTypeObject pass_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Pass",
    .tp_doc = "One pass of the engine as its sentinels see it.",
    .tp_basicsize = sizeof(bp_pass),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = pass_dealloc,
    .tp_methods = pass_methods,
    .tp_members = pass_members,
    .tp_getset = pass_getset,
    .tp_as_sequence = &pass_sequence,
};

/* ---- Passes as Python sees it */

static int64_t integer_of(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    int64_t number = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return number;
}

static int read_options(bp_passes *passes, PyObject *options)
{
    PyObject *caps = PyObject_GetAttrString(options, "caps"), *measures = PyObject_GetAttrString(options, "measures");
    if (caps != NULL && measures != NULL) {
        passes->measures = PyObject_IsTrue(measures) == 1;
        passes->limits.statistic_elements = integer_of(caps, "statistic_elements");
        passes->limits.block_elements = integer_of(caps, "block_elements");
        passes->most_kept = integer_of(caps, "elements");
        passes->most_small = passes->most_kept > MOST_SMALL ? MOST_SMALL : passes->most_kept;
    }
    Py_XDECREF(caps);
    Py_XDECREF(measures);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *passes_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *writer, *nodes, *states, *options, *guard;
    if (!PyArg_ParseTuple(args, "OO!OOO", &writer, &bp_nodes_type, &nodes, &states, &options, &guard)) {
        return NULL;
    }
    bp_passes *passes = (bp_passes *)type->tp_alloc(type, 0);
    if (passes == NULL) {
        return NULL;
    }
    PyObject *twin = PyImport_ImportModule("backprobe.capture.tracking.graph.passes");
    passes->measured = twin == NULL ? NULL : PyObject_GetAttrString(twin, "measure_gradient");
    Py_XDECREF(twin);
    twin = passes->measured == NULL ? NULL : PyImport_ImportModule("backprobe.capture.tracking.completion");
    passes->complete = twin == NULL ? NULL : PyObject_GetAttrString(twin, "complete_pass");
    Py_XDECREF(twin);
    passes->writer = Py_NewRef(writer);
    passes->nodes = (bp_nodes *)Py_NewRef(nodes);
    passes->states = Py_NewRef(states);
    passes->options = Py_NewRef(options);
    passes->guard = Py_NewRef(guard);
    passes->unseen = Py_NewRef(Py_None);
    passes->open = PyList_New(0);
    passes->rows = bp_rows_of(writer, BP_NODE_PASSES);
    passes->values = passes->rows == NULL ? NULL : bp_rows_of(writer, BP_SMALL_VALUES);
    PyObject *values = passes->complete == NULL ? NULL : PyObject_GetAttrString(writer, "values");
    passes->arrive = values == NULL ? NULL : PyObject_GetAttrString(values, "arrive");
    Py_XDECREF(values);
    if (passes->arrive == NULL || passes->open == NULL || passes->values == NULL || read_options(passes, options) < 0) {
        Py_DECREF(passes);
        return NULL;
    }
    passes->nodes->passes = passes;
    return (PyObject *)passes;
}

static int passes_traverse(PyObject *self, visitproc visit, void *arg)
{
    bp_passes *passes = (bp_passes *)self;
    Py_VISIT(passes->writer);
    Py_VISIT(passes->states);
    Py_VISIT(passes->options);
    Py_VISIT(passes->guard);
    Py_VISIT(passes->unseen);
    Py_VISIT(passes->open);
    Py_VISIT(passes->arrive);
    Py_VISIT((PyObject *)passes->nodes);
    return 0;
}

static int passes_clear(PyObject *self)
{
    bp_passes *passes = (bp_passes *)self;
    if (passes->nodes != NULL && passes->nodes->passes == passes) {
        passes->nodes->passes = NULL; /* sentinels find nobody from here on */
    }
    Py_CLEAR(passes->unseen);
    Py_CLEAR(passes->states);
    Py_CLEAR(passes->nodes);
    return 0;
}

static void passes_dealloc(PyObject *self)
{
    bp_passes *passes = (bp_passes *)self;
    PyObject_GC_UnTrack(self);
    passes_clear(self);
    Py_CLEAR(passes->writer);
    Py_CLEAR(passes->options);
    Py_CLEAR(passes->guard);
    Py_CLEAR(passes->open);
    Py_CLEAR(passes->measured);
    Py_CLEAR(passes->complete);
    Py_CLEAR(passes->arrive);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *passes_open(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"", "", "detailed", NULL};
    bp_passes *passes = (bp_passes *)self;
    PyObject *call, *met;
    int detailed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$p", keywords, &call, &met, &detailed)) {
        return NULL;
    }
    PyObject *pass = new_pass(call, met, detailed);
    if (pass != NULL && PyList_Append(passes->open, pass) < 0) {
        Py_CLEAR(pass);
    }
    return pass;
}

static PyObject *passes_close(PyObject *self, PyObject *pass)
{
    bp_passes *passes = (bp_passes *)self;
    unsigned long me = PyThread_get_thread_ident();
    for (Py_ssize_t i = PyList_GET_SIZE(passes->open) - 1; i >= 0; i--) {
        bp_pass *one = (bp_pass *)PyList_GET_ITEM(passes->open, i);
        if ((PyObject *)one == pass || (pass == Py_None && one->call < 0 && one->thread == me)) {
            return PyList_SetSlice(passes->open, i, i + 1, NULL) < 0 ? NULL : Py_NewRef(Py_None);
        }
    }
    PyErr_SetString(PyExc_ValueError, "this pass is not open");
    return NULL;
}

static PyObject *passes_returned(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || Py_TYPE(args[0]) != &pass_type) {
        PyErr_SetString(PyExc_TypeError, "returned(passed, tensor, gradient)");
        return NULL;
    }
    long long tensor = PyLong_AsLongLong(args[1]);
    bp_passes *passes = (bp_passes *)self;
    bp_tensor_view view;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (!passes->measures) {
        Py_RETURN_NONE;
    }
    int done = 0;
    if (bp_is_exact(args[2]) && bp_view_of(args[2], &view)) {
        done = bp_is_small(&view, passes->most_small) ? add_small((bp_pass *)args[0], tensor, &view) : 0;
    } else {
        PyObject *told = PyObject_CallFunctionObjArgs(passes->measured, passes->states, passes->options, args[2], NULL);
        const char *statistics, *small = NULL;
        Py_ssize_t size, small_size = 0;
        bp_pass *pass = (bp_pass *)args[0];
        if (told == NULL || !PyArg_ParseTuple(told, "y#z#", &statistics, &size, &small, &small_size)) {
            Py_XDECREF(told);
            return NULL;
        }
        if (small != NULL) {
            char *at = one_more((void **)&pass->small, pass->small_count, &pass->small_room, sizeof *pass->small) < 0
                           ? NULL
                           : grow(&pass->values, (size_t)small_size);
            done = at == NULL ? -1 : 0;
            if (at != NULL) {
                memcpy(at, small, (size_t)small_size);
                pass->small[pass->small_count++] = (small_value){tensor, pass->values.size, (size_t)small_size};
                pass->values.size += (size_t)small_size;
            }
        }
        Py_DECREF(told);
    }
    return done < 0 ? PyErr_NoMemory() : Py_NewRef(Py_None);
}

static PyMethodDef passes_methods[] = {
    {"open", (PyCFunction)(void (*)(void))passes_open, METH_VARARGS | METH_KEYWORDS, "A pass begins, in this thread."},
    {"close", passes_close, METH_O, "A pass is over; None: this thread's newest silent one."},
    {"record_returned", (PyCFunction)(void (*)(void))passes_returned, METH_FASTCALL, "A gradient was returned for an input."},
    {"write", (PyCFunction)(void (*)(void))passes_write, METH_VARARGS | METH_KEYWORDS, "Write a pass's rows."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef passes_members[] = {
    {"unseen", T_OBJECT, offsetof(bp_passes, unseen), 0, "Opens a pass for a sentinel that speaks for none."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject passes_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Passes",
    .tp_doc = "The passes that are open, in all threads.",
    .tp_basicsize = sizeof(bp_passes),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = passes_new,
    .tp_dealloc = passes_dealloc,
    .tp_traverse = passes_traverse,
    .tp_clear = passes_clear,
    .tp_methods = passes_methods,
    .tp_members = passes_members,
};

int bp_add_passes(PyObject *module)
{
    PyObject *private_names = PyImport_ImportModule("backprobe.capture.torch_access.torch_internals");
    current_pass = private_names == NULL ? NULL : PyObject_GetAttrString(private_names, "current_pass");
    Py_XDECREF(private_names);
    s_run = PyUnicode_InternFromString("run");
    s_note = PyUnicode_InternFromString("note");
    if (current_pass == NULL || s_run == NULL || s_note == NULL || PyType_Ready(&pass_type) < 0) {
        return -1;
    }
    return PyModule_AddType(module, &passes_type);
}
