/* The chains of calls that were met, numbered. The Python twin is stacks.py, which says what they are. */

#include "stacks.h"

#include "torch_api.h"

#define DEPTH 32
#define FRAMES 256
#define MOST 5000

static PyObject *top_level;

/* A frame runs what `torch.compile` made of its function: all of that stands at the line of its `def`. */
static int is_compiled_region(PyCodeObject *code, int line)
{
    int found = 0;
    for (Py_ssize_t i = 0; line == code->co_firstlineno && !found && i < PyTuple_GET_SIZE(code->co_names); i++) {
        found = PyUnicode_Tailmatch(PyTuple_GET_ITEM(code->co_names, i), bp_name___compiled_fn, 0, PY_SSIZE_T_MAX, -1) == 1;
    }
    return found;
}

/* An instruction whose site is known; it keeps the code, so that no other one gets its address. */
typedef struct {
    PyObject *code;
    int lasti;
    int64_t site;
} placed;

static void forget_placed(bp_stacks *stacks)
{
    bp_map old = stacks->placed;
    stacks->placed = (bp_map){NULL, 0, 0}; /* first: freeing a code may run Python code */
    for (size_t i = 0; i < old.room; i++) {
        placed *one = old.entries[i].key ? old.entries[i].value : NULL;
        if (one != NULL) {
            Py_DECREF(one->code);
            PyMem_RawFree(one);
        }
    }
    bp_map_free(&old);
}

static int64_t asked_site(bp_stacks *stacks, PyFrameObject *frame, PyCodeObject *code, int lasti)
{
    int line = PyFrame_GetLineNumber(frame);
    if (is_compiled_region(code, line)) {
        return BP_NOT_USERS;
    }
    PyObject *site = PyObject_CallMethod(stacks->sites, "at_instruction", "Oii", code, lasti, line);
    int64_t number = site == NULL ? -2 : site == Py_None ? -1 : PyLong_AsLongLong(site);
    Py_XDECREF(site);
    return number;
}

static int64_t site_of(bp_stacks *stacks, PyFrameObject *frame, PyCodeObject *code)
{
    if (PyDict_GetItemWithError(stacks->sources, code->co_filename) == NULL) {
        return PyErr_Occurred() ? -2 : BP_NOT_USERS;
    }
    if (stacks->placed_at != PyList_GET_SIZE(stacks->facts)) {
        forget_placed(stacks);
        stacks->placed_at = PyList_GET_SIZE(stacks->facts);
    }
    int lasti = PyFrame_GetLasti(frame);
    uintptr_t key = (uintptr_t)code + ((uintptr_t)(lasti + 1) << 40);
    placed *known = bp_map_get(&stacks->placed, key);
    if (known != NULL && known->code == (PyObject *)code && known->lasti == lasti) {
        return known->site;
    }
    Py_ssize_t asked_at = stacks->placed_at;
    int64_t site = asked_site(stacks, frame, code, lasti);
    if (site == -2 || asked_at != PyList_GET_SIZE(stacks->facts) || bp_map_get(&stacks->placed, key) != NULL) {
        return site;
    }
    placed *one = PyMem_RawMalloc(sizeof *one);
    if (one == NULL || bp_map_set(&stacks->placed, key, one) < 0) {
        PyMem_RawFree(one);
        PyErr_Clear();
        return site;
    }
    *one = (placed){Py_NewRef((PyObject *)code), lasti, site};
    return site;
}

int64_t bp_site_of_frame(bp_stacks *stacks, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int64_t site = site_of(stacks, frame, code);
    Py_DECREF(code);
    return site;
}

/* The statements of the user's frames, innermost first; how many, -1 with an exception. */
static int chain_of(bp_stacks *stacks, int64_t *chain)
{
    int count = 0, is_over = 0;
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int i = 0; frame != NULL && i < FRAMES && !is_over; i++) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int64_t site = site_of(stacks, frame, code);
        if (site == -2) {
            count = -1;
        } else if (site >= 0 && (count == 0 || chain[count - 1] != site)) {
            chain[count++] = site;
        }
        is_over = count < 0 || count > DEPTH ||
                  (site != BP_NOT_USERS && PyUnicode_Compare(code->co_name, top_level) == 0);
        Py_DECREF(code);
        PyFrameObject *back = is_over ? NULL : PyFrame_GetBack(frame);
        Py_SETREF(frame, back);
    }
    Py_XDECREF(frame);
    return count;
}

static int64_t number_of(bp_stacks *stacks, int64_t parent, int64_t site)
{
    uintptr_t key = ((uintptr_t)(parent + 1) << 32) | (uintptr_t)(site + 1);
    intptr_t known = (intptr_t)bp_map_get(&stacks->known, key);
    if (known) {
        return known - 1;
    }
    if (stacks->count >= MOST) {
        PyObject *done = PyObject_CallMethod(stacks->writer, "cut", "ssi", "stacks",
                                             "more chains of calls than are kept", MOST);
        Py_XDECREF(done);
        return done == NULL ? -2 : -1;
    }
    int64_t number = stacks->count++;
    if (bp_map_set(&stacks->known, key, (void *)(intptr_t)(number + 1)) < 0) {
        return -2;
    }
    if (bp_row_begin(stacks->rows, 3)) {
        bp_put_uint(stacks->rows, (uint64_t)number);
        bp_put_uint(stacks->rows, (uint64_t)site);
        bp_put_id(stacks->rows, parent);
        if (bp_row_end(stacks->rows) < 0) {
            return -2;
        }
    }
    return number;
}

int64_t bp_stack_here(bp_stacks *stacks, int64_t site)
{
    int64_t chain[DEPTH + 2], number = -1;
    int count = chain_of(stacks, chain), first = 1;
    for (int i = 0; site >= 0 && i < count; i++) {
        if (chain[i] == site) {
            first = i + 1;
            break;
        }
    }
    for (int i = count - 1; i >= first; i--) {
        number = number_of(stacks, number, chain[i]);
        if (number < 0) {
            return number;
        }
    }
    return count < 0 ? -2 : number;
}

/* ---- as Python sees it */

static int stacks_init(PyObject *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    bp_stacks *stacks = (bp_stacks *)self;
    PyObject *writer, *sites;
    if (bp_torch_ready() < 0 || !PyArg_ParseTuple(args, "OO", &writer, &sites)) {
        return -1;
    }
    Py_XSETREF(stacks->sources, PyObject_GetAttrString(sites, "sources"));
    Py_XSETREF(stacks->facts, PyObject_GetAttrString(sites, "facts"));
    if (stacks->sources == NULL || stacks->facts == NULL) {
        return -1;
    }
    if (!PyDict_Check(stacks->sources) || !PyList_Check(stacks->facts)) {
        PyErr_SetString(PyExc_TypeError, "the sites' sources and facts are no dict and list");
        return -1;
    }
    Py_XSETREF(stacks->writer, Py_NewRef(writer));
    Py_XSETREF(stacks->sites, Py_NewRef(sites));
    stacks->rows = bp_rows_of(writer, BP_STACKS);
    return stacks->rows == NULL ? -1 : 0;
}

static int stacks_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((bp_stacks *)self)->writer);
    Py_VISIT(((bp_stacks *)self)->sites);
    Py_VISIT(((bp_stacks *)self)->sources);
    Py_VISIT(((bp_stacks *)self)->facts);
    return 0;
}

static int stacks_clear(PyObject *self)
{
    Py_CLEAR(((bp_stacks *)self)->writer);
    Py_CLEAR(((bp_stacks *)self)->sites);
    Py_CLEAR(((bp_stacks *)self)->sources);
    Py_CLEAR(((bp_stacks *)self)->facts);
    forget_placed((bp_stacks *)self);
    return 0;
}

static void stacks_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    stacks_clear(self);
    bp_map_free(&((bp_stacks *)self)->known);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject bp_stacks_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Stacks",
    .tp_doc = "Numbers the chains of calls that were met.",
    .tp_basicsize = sizeof(bp_stacks),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = stacks_init,
    .tp_dealloc = stacks_dealloc,
    .tp_traverse = stacks_traverse,
    .tp_clear = stacks_clear,
};

int bp_add_stacks(PyObject *module)
{
    top_level = PyUnicode_InternFromString("<module>");
    return top_level == NULL ? -1 : PyModule_AddType(module, &bp_stacks_type);
}
