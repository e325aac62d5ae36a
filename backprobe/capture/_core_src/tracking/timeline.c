/* The timelines of sequence numbers, per thread, and the moments of a run. The Python twins are timeline.py and
   moments.py, which say what each thing means. */

#include "timeline.h"

#include <structmember.h>
#include <string.h>
#include <time.h>

#include "torch_api.h"

#define MOST_RANGES 200000

int64_t bp_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- one thread */

static int append_range(bp_timeline *timeline, bp_range range)
{
    if (timeline->range_count == timeline->range_room) {
        size_t room = timeline->range_room ? timeline->range_room * 2 : 256;
        bp_range *ranges = PyMem_RawRealloc(timeline->ranges, room * sizeof(bp_range));
        if (ranges == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        timeline->ranges = ranges;
        timeline->range_room = room;
    }
    timeline->ranges[timeline->range_count++] = range;
    if (timeline->range_count > MOST_RANGES) {
        size_t gone = MOST_RANGES / 2;
        timeline->range_count -= gone;
        memmove(timeline->ranges, timeline->ranges + gone, timeline->range_count * sizeof(bp_range));
    }
    return 0;
}

int64_t bp_close(bp_timeline *timeline, int64_t site)
{
    int64_t now = bp_sequence_number();
    if (now < 0 || now == timeline->last) {
        return now;
    }
    int64_t call = -1;
    Py_ssize_t open = PyList_GET_SIZE(timeline->calls);
    if (open) {
        call = PyLong_AsLongLong(PyList_GET_ITEM(timeline->calls, open - 1));
        if (call == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    bp_range range = {timeline->last, site, call < 0 ? -1 : call, bp_module_call(timeline)};
    if (append_range(timeline, range) < 0) {
        return -1;
    }
    timeline->last = now;
    return now;
}

static const bp_range *range_of(const bp_timeline *timeline, int64_t number)
{
    if (!timeline->range_count || number < timeline->ranges[0].low || number >= timeline->last) {
        return NULL;
    }
    size_t low = 0, high = timeline->range_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (timeline->ranges[middle].low <= number) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &timeline->ranges[low];
}

static bp_timeline *new_timeline(int64_t thread, uint64_t state)
{
    int64_t last = bp_sequence_number();
    bp_timeline *timeline = last < 0 ? NULL : PyObject_New(bp_timeline, &bp_timeline_type);
    if (timeline == NULL) {
        return NULL;
    }
    memset((char *)timeline + sizeof(PyObject), 0, sizeof(bp_timeline) - sizeof(PyObject));
    timeline->thread = thread;
    timeline->state = state;
    timeline->last = last;
    timeline->calls = PyList_New(0);
    timeline->entries = PyList_New(0);
    timeline->grad_bases = PyList_New(0);
    if (timeline->calls == NULL || timeline->entries == NULL || timeline->grad_bases == NULL) {
        Py_DECREF(timeline);
        return NULL;
    }
    return timeline;
}

static void timeline_dealloc(PyObject *self)
{
    bp_timeline *timeline = (bp_timeline *)self;
    for (size_t i = 0; i < timeline->opened_count; i++) {
        Py_XDECREF(timeline->opened[i].chain);
    }
    PyMem_RawFree(timeline->opened);
    PyMem_RawFree(timeline->ranges);
    Py_XDECREF(timeline->calls);
    Py_XDECREF(timeline->entries);
    Py_XDECREF(timeline->grad_bases);
    PyObject_Free(self);
}

/* The site that Python gives: None is -1; -2 with an exception. */
static int64_t site_given(PyObject *site)
{
    if (site == Py_None) {
        return -1;
    }
    int64_t number = PyLong_AsLongLong(site);
    return number == -1 && PyErr_Occurred() ? -2 : number;
}

static PyObject *timeline_close(PyObject *self, PyObject *site)
{
    bp_timeline *timeline = (bp_timeline *)self;
    int64_t number = site_given(site), before = timeline->last;
    if (number == -2 || bp_close(timeline, number) < 0) {
        return NULL;
    }
    return PyBool_FromLong(timeline->last != before);
}

static PyObject *timeline_modules(PyObject *self, void *Py_UNUSED(closure))
{
    bp_timeline *timeline = (bp_timeline *)self;
    PyObject *list = PyList_New((Py_ssize_t)timeline->opened_count);
    for (size_t i = 0; list != NULL && i < timeline->opened_count; i++) {
        int64_t number = timeline->opened[i].number;
        PyObject *item = number < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(number);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyMethodDef timeline_methods[] = {
    {"close", timeline_close, METH_O, "Give the numbers issued since the last tap to a statement."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef timeline_members[] = {
    {"thread", T_LONGLONG, offsetof(bp_timeline, thread), READONLY, "Number of the thread in the record."},
    {"last", T_LONGLONG, offsetof(bp_timeline, last), READONLY, "The first number that is not yet owned."},
    {"calls", T_OBJECT, offsetof(bp_timeline, calls), READONLY, "Backward calls open in this thread."},
    {"entries", T_OBJECT, offsetof(bp_timeline, entries), READONLY, "Entries open in this thread."},
    {"grad_bases", T_OBJECT, offsetof(bp_timeline, grad_bases), READONLY, "Of what `.grad` is being read."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef timeline_getset[] = {
    {"modules", timeline_modules, NULL, "The numbers of the module calls open in this thread, a new list.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject bp_timeline_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Timeline",
    .tp_doc = "The sequence numbers of one thread.",
    .tp_basicsize = sizeof(bp_timeline),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = timeline_dealloc,
    .tp_methods = timeline_methods,
    .tp_members = timeline_members,
    .tp_getset = timeline_getset,
};

/* ---- all threads */

static int threads_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_threads *threads = (bp_threads *)self;
    PyObject *writer;
    if (bp_torch_ready() < 0 || !PyArg_ParseTuple(args, "O", &writer)) {
        return -1;
    }
    Py_XSETREF(threads->writer, Py_NewRef(writer));
    return 0;
}

static int threads_clear(PyObject *self)
{
    bp_threads *threads = (bp_threads *)self;
    Py_CLEAR(threads->writer);
    while (threads->count) {
        Py_DECREF(threads->all[--threads->count]);
    }
    PyMem_RawFree(threads->all);
    threads->all = NULL;
    return 0;
}

static int threads_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((bp_threads *)self)->writer);
    return 0;
}

static void threads_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    threads_clear(self);
    Py_TYPE(self)->tp_free(self);
}

/* The row of a new thread, by the twin's own function: it happens once in a thread. */
static int write_thread(bp_threads *threads, bp_timeline *timeline)
{
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.timeline");
    PyObject *done = module == NULL ? NULL
                                    : PyObject_CallMethod(module, "write_thread", "OLL", threads->writer,
                                                          (long long)timeline->thread, (long long)timeline->last);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

bp_timeline *bp_here(bp_threads *threads)
{
    uint64_t state = PyThreadState_GetID(PyThreadState_Get());
    for (size_t i = threads->count; i > 0; i--) {
        if (threads->all[i - 1]->state == state) {
            return threads->all[i - 1];
        }
    }
    bp_timeline **all = PyMem_RawRealloc(threads->all, (threads->count + 1) * sizeof *all);
    if (all == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    threads->all = all;
    bp_timeline *timeline = new_timeline((int64_t)threads->count, state);
    if (timeline == NULL) {
        return NULL;
    }
    threads->all[threads->count++] = timeline;
    return write_thread(threads, timeline) < 0 ? NULL : timeline;
}

static PyObject *threads_here(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return Py_XNewRef((PyObject *)bp_here((bp_threads *)self));
}

int bp_owner_of(PyObject *self, uint64_t number, bp_owner *owner)
{
    bp_threads *threads = (bp_threads *)self;
    *owner = (bp_owner){-1, -1, -1, -1};
    if (!PyObject_TypeCheck(self, &bp_threads_type)) {
        PyErr_SetString(PyExc_TypeError, "these are not the core's threads");
        return -1;
    }
    const bp_range *found = NULL;
    int several = 0;
    for (size_t i = 0; i < threads->count; i++) {
        const bp_range *range = number > INT64_MAX ? NULL : range_of(threads->all[i], (int64_t)number);
        if (range != NULL) {
            several = found != NULL;
            found = range;
            owner->thread = threads->all[i]->thread;
            if (several) {
                break;
            }
        }
    }
    if (found == NULL || several) {
        bp_timeline *here = threads->count == 1 ? threads->all[0] : bp_here(threads);
        if (here == NULL) {
            return -1;
        }
        owner->thread = here->thread;
        return 0;
    }
    owner->site = found->site;
    owner->call = found->call;
    owner->module_call = found->module_call;
    return 0;
}

static PyObject *or_none(int64_t number)
{
    return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(number);
}

/* For the Python twin of the graph's parts: (Owner, thread). */
static PyObject *threads_owner(PyObject *self, PyObject *number)
{
    bp_owner owner;
    uint64_t value = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() || bp_owner_of(self, value, &owner) < 0) {
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.timeline");
    PyObject *found = module == NULL ? NULL
                                     : PyObject_CallMethod(module, "Owner", "NNN", or_none(owner.site),
                                                           or_none(owner.call), or_none(owner.module_call));
    Py_XDECREF(module);
    return found == NULL ? NULL : Py_BuildValue("(NL)", found, (long long)owner.thread);
}

static PyMethodDef threads_methods[] = {
    {"here", threads_here, METH_NOARGS, "This thread's timeline."},
    {"owner", threads_owner, METH_O, "Who issued a number, and in which thread."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject bp_threads_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Threads",
    .tp_doc = "The timelines of all threads.",
    .tp_basicsize = sizeof(bp_threads),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = threads_init,
    .tp_dealloc = threads_dealloc,
    .tp_traverse = threads_traverse,
    .tp_clear = threads_clear,
    .tp_methods = threads_methods,
};

/* ---- moments */

static int moments_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_moments *moments = (bp_moments *)self;
    PyObject *writer, *threads, *stacks;
    if (bp_torch_ready() < 0 || !PyArg_ParseTuple(args, "OO!O!", &writer, &bp_threads_type, &threads, &bp_stacks_type,
                                                  &stacks)) {
        return -1;
    }
    moments->rows = bp_rows_of(writer, BP_MOMENTS);
    if (moments->rows == NULL) {
        return -1;
    }
    Py_XSETREF(moments->writer, Py_NewRef(writer));
    Py_XSETREF(moments->threads, (bp_threads *)Py_NewRef(threads));
    Py_XSETREF(moments->stacks, (bp_stacks *)Py_NewRef(stacks));
    PyObject *age = PyObject_CallMethod(writer, "time_ns", NULL);
    if (age == NULL) {
        return -1;
    }
    moments->start_ns = bp_now_ns() - PyLong_AsLongLong(age);
    Py_DECREF(age);
    moments->last = -1;
    moments->steps = 0;
    bp_close_statement(moments);
    return PyErr_Occurred() ? -1 : 0;
}

static int moments_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((bp_moments *)self)->writer);
    Py_VISIT((PyObject *)((bp_moments *)self)->threads);
    Py_VISIT((PyObject *)((bp_moments *)self)->stacks);
    return 0;
}

static int moments_clear(PyObject *self)
{
    Py_CLEAR(((bp_moments *)self)->writer);
    Py_CLEAR(((bp_moments *)self)->threads);
    Py_CLEAR(((bp_moments *)self)->stacks);
    return 0;
}

static void moments_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    moments_clear(self);
    Py_XDECREF(((bp_moments *)self)->row.autocast);
    Py_TYPE(self)->tp_free(self);
}

/* The dtype per device under autocast as text: a new reference, None if it is off. */
static PyObject *autocast(void)
{
    PyObject *devices[] = {bp_torch.cpu, bp_torch.cuda};
    int on = 0;
    for (int i = 0; i < 2; i++) {
        PyObject *answer = PyObject_CallOneArg(bp_torch.autocast_enabled, devices[i]);
        if (answer == NULL) {
            return NULL;
        }
        on |= answer == Py_True;
        Py_DECREF(answer);
    }
    if (!on) {
        return Py_NewRef(Py_None);
    }
    PyObject *module = PyImport_ImportModule("backprobe.capture.tracking.moments");
    PyObject *text = module == NULL ? NULL : PyObject_CallMethod(module, "autocast", NULL);
    Py_XDECREF(module);
    return text;
}

/* Write the newest moment's row; 0, or -1 with an exception. */
static int put_moment(bp_moments *moments)
{
    const bp_moment *moment = &moments->row;
    bp_rows *rows = moments->rows;
    if (!bp_row_begin(rows, 12)) {
        return 0;
    }
    bp_put_uint(rows, (uint64_t)moment->number);
    bp_put_str(rows, moment->kind, (Py_ssize_t)strlen(moment->kind));
    bp_put_uint(rows, (uint64_t)(moment->time_ns < 0 ? 0 : moment->time_ns));
    bp_put_uint(rows, (uint64_t)moment->k);
    bp_put_id(rows, moment->site);
    bp_put_uint(rows, (uint64_t)moment->thread);
    bp_put_id(rows, moment->module_call);
    bp_put_uint(rows, (uint64_t)moment->step);
    bp_put_bool(rows, moment->grad_mode);
    bp_put_bool(rows, moment->inference_mode);
    bp_put_text(rows, moment->autocast);
    bp_put_id(rows, moment->stack);
    return bp_row_end(rows);
}

/* The names that kinds of moments have, which outlive what Python handed in. */
static const char *kept_kind(const char *kind)
{
    static const char *const kinds[] = {"after-statement", "before-backward", "after-backward", "optimizer-step", "end"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(kind, kinds[i])) {
            return kinds[i];
        }
    }
    return NULL;
}

static int64_t write_moment(bp_moments *moments, const char *kind, int64_t site, int64_t k)
{
    bp_timeline *timeline = bp_here(moments->threads);
    kind = kept_kind(kind);
    if (kind == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "there is no such kind of moment");
    }
    int64_t stack = timeline == NULL || kind == NULL ? -2 : bp_stack_here(moments->stacks, site);
    PyObject *cast = stack == -2 ? NULL : autocast(); /* both may run Python code, and with it another thread */
    if (cast == NULL) {
        return -1;
    }
    bp_moment *moment = &moments->row;
    Py_XSETREF(moment->autocast, cast);
    moment->kind = kind;
    moment->number = moments->last + 1;
    moment->time_ns = bp_now_ns() - moments->start_ns;
    moment->k = k;
    moment->site = site;
    moment->thread = timeline->thread;
    moment->module_call = bp_module_call(timeline);
    moment->step = moments->steps;
    moment->grad_mode = bp_autograd_records();
    moment->inference_mode = bp_truth_of_call(bp_torch.inference_enabled);
    moment->stack = stack;
    if (put_moment(moments) < 0) {
        return -1;
    }
    return moments->last = moment->number;
}

int bp_moment_again(bp_moments *moments)
{
    bp_moment *moment = &moments->row;
    bp_timeline *timeline = moment->autocast == NULL ? NULL : bp_here(moments->threads);
    if (timeline == NULL || timeline->thread != moment->thread) {
        return moment->autocast != NULL && timeline == NULL ? -1 : 0;
    }
    PyObject *cast = autocast();
    if (cast == NULL) {
        return -1;
    }
    int grad_mode = bp_autograd_records();
    int inference_mode = bp_truth_of_call(bp_torch.inference_enabled);
    int same = PyObject_RichCompareBool(cast, moment->autocast, Py_EQ), done = same;
    if (same == 0 || (same > 0 && (grad_mode != moment->grad_mode || inference_mode != moment->inference_mode))) {
        moment->grad_mode = grad_mode;
        moment->inference_mode = inference_mode;
        Py_SETREF(moment->autocast, Py_NewRef(cast));
        done = put_moment(moments);
    }
    Py_DECREF(cast);
    return done < 0 ? -1 : 0;
}

int64_t bp_moment_now(PyObject *self)
{
    if (Py_TYPE(self) != &bp_moments_type) {
        PyErr_SetString(PyExc_TypeError, "these are not the core's moments");
        return -1;
    }
    bp_moments *moments = (bp_moments *)self;
    if (!moments->pending) {
        return moments->last < 0 ? write_moment(moments, "after-statement", -1, 0) : moments->last;
    }
    int64_t number = write_moment(moments, "after-statement", moments->open_site, 0);
    if (number >= 0) {
        moments->pending = 0;
    }
    return number;
}

static PyObject *moments_now(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int64_t number = bp_moment_now(self);
    return number < 0 ? NULL : PyLong_FromLongLong(number);
}

static PyObject *moments_new(PyObject *self, PyObject *args)
{
    const char *kind;
    PyObject *site;
    long long k = 0;
    if (!PyArg_ParseTuple(args, "sO|L", &kind, &site, &k)) {
        return NULL;
    }
    int64_t at = site_given(site);
    bp_close_statement((bp_moments *)self);
    int64_t number = at == -2 ? -1 : write_moment((bp_moments *)self, kind, at, k);
    return number < 0 ? NULL : PyLong_FromLongLong(number);
}

static PyObject *moments_statement(PyObject *self, PyObject *site)
{
    int64_t at = site_given(site);
    if (at == -2) {
        return NULL;
    }
    bp_moments *moments = (bp_moments *)self;
    if (at >= 0) {
        if (bp_statement(moments, at) < 0) {
            return NULL;
        }
    } else { /* without a site each is a statement of its own */
        moments->pending = 1;
        moments->open = 0;
        moments->open_site = -1;
    }
    Py_RETURN_NONE;
}

static PyObject *moments_close_statement(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bp_close_statement((bp_moments *)self);
    Py_RETURN_NONE;
}

static PyMethodDef moments_methods[] = {
    {"now", moments_now, METH_NOARGS, "The moment that is current, written if it was not yet."},
    {"new", moments_new, METH_VARARGS, "A moment of its own, at once."},
    {"statement", moments_statement, METH_O, "A statement is at its tap."},
    {"close_statement", moments_close_statement, METH_NOARGS, "The statement is over."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef moments_members[] = {
    {"last", T_LONGLONG, offsetof(bp_moments, last), READONLY, "The newest moment; -1 before the first."},
    {"steps", T_LONGLONG, offsetof(bp_moments, steps), 0, "Optimizer steps finished."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject bp_moments_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Moments",
    .tp_doc = "Hands out moments in order.",
    .tp_basicsize = sizeof(bp_moments),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = moments_init,
    .tp_dealloc = moments_dealloc,
    .tp_traverse = moments_traverse,
    .tp_clear = moments_clear,
    .tp_methods = moments_methods,
    .tp_members = moments_members,
};

int bp_add_timeline(PyObject *module)
{
    if (PyType_Ready(&bp_timeline_type) < 0 || PyModule_AddType(module, &bp_threads_type) < 0 ||
        PyModule_AddType(module, &bp_moments_type) < 0) {
        return -1;
    }
    return 0;
}
