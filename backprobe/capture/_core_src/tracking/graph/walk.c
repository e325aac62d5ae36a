/* One walk over an autograd graph from its roots: nodes, edges, leaves. Twin: walk.py. */

#include "nodes.h"

#include <string.h>

typedef struct {
    PyObject_HEAD
    bp_facts **met;
    size_t count, room;
    uint8_t *entered; /* one bit for each node number */
    size_t entered_bytes;
    char truncated;
} bp_walk;

typedef struct {
    PyObject **nodes;
    size_t count, room;
} node_stack;

typedef struct {
    bp_nodes *nodes;
    bp_walk *walk;
    bp_rows *edges;
    node_stack stack;
    uint32_t mark;
    bool lazily;
} sweep;

static PyObject *s_next_functions, *s_caps, *s_nodes_per_call;

static int push(node_stack *stack, PyObject *node)
{
    if (stack->count == stack->room) {
        size_t room = stack->room ? stack->room * 2 : 256;
        PyObject **nodes = PyMem_RawRealloc(stack->nodes, room * sizeof *nodes);
        if (nodes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        stack->nodes = nodes;
        stack->room = room;
    }
    stack->nodes[stack->count++] = Py_NewRef(node);
    return 0;
}

static int add_met(bp_walk *walk, bp_facts *facts)
{
    if (walk->count == walk->room) {
        size_t room = walk->room ? walk->room * 2 : 256;
        bp_facts **met = PyMem_RawRealloc(walk->met, room * sizeof *met);
        if (met == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        walk->met = met;
        walk->room = room;
    }
    walk->met[walk->count++] = bp_facts_keep(facts);
    return 0;
}

static int add_entered(bp_walk *walk, int64_t number)
{
    size_t byte = (size_t)number >> 3;
    if (byte >= walk->entered_bytes) {
        size_t bytes = byte * 2 + 64;
        uint8_t *entered = PyMem_RawRealloc(walk->entered, bytes);
        if (entered == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        memset(entered + walk->entered_bytes, 0, bytes - walk->entered_bytes);
        walk->entered = entered;
        walk->entered_bytes = bytes;
    }
    walk->entered[byte] |= (uint8_t)(1 << (number & 7));
    return 0;
}

/* `next_functions[slot]`: the node, borrowed, Py_None where no gradient is wanted; and its input. */
static PyObject *next_node(PyObject *following, Py_ssize_t slot, uint64_t *input_nr)
{
    PyObject *pair = PyTuple_GET_ITEM(following, slot);
    if (input_nr != NULL) {
        *input_nr = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(pair, 1));
    }
    return PyTuple_GET_ITEM(pair, 0);
}

/* Write a node's edges; 0 if the budget leaves one of them without its target, 1 if not, -1 with an exception. */
static int describe(sweep *over, bp_facts *facts, PyObject *following)
{
    int complete = 1;
    for (Py_ssize_t slot = 0; slot < PyTuple_GET_SIZE(following); slot++) {
        uint64_t input_nr = 0;
        PyObject *next = next_node(following, slot, &input_nr);
        bp_facts *target = next == Py_None ? NULL : bp_node_meet(over->nodes, next, NULL, over->lazily);
        if (PyErr_Occurred()) {
            return -1;
        }
        if (next != Py_None && target == NULL) {
            complete = 0;
            continue;
        }
        if (target != NULL && target->leaf && PyTuple_GET_SIZE(following) == 1) {
            facts->feeds = target->number;
        }
        if (!bp_row_begin(over->edges, input_nr ? 4 : 3)) {
            continue;
        }
        bp_put_uint(over->edges, (uint64_t)facts->number);
        bp_put_uint(over->edges, (uint64_t)slot);
        bp_put_id(over->edges, target == NULL ? -1 : target->number);
        if (input_nr) {
            bp_put_uint(over->edges, input_nr);
        }
        if (bp_row_end(over->edges) < 0) {
            return -1;
        }
    }
    return complete;
}

static int follow(sweep *over, bp_facts *facts, PyObject *node)
{
    PyObject *following = PyObject_GetAttr(node, s_next_functions);
    if (following == NULL) {
        return -1;
    }
    int done = 0;
    for (Py_ssize_t slot = PyTuple_GET_SIZE(following) - 1; done == 0 && slot >= 0; slot--) {
        PyObject *next = next_node(following, slot, NULL);
        done = next == Py_None ? 0 : push(&over->stack, next);
    }
    if (done == 0 && !facts->described) {
        done = describe(over, facts, following);
        facts->described = done > 0;
        done = done < 0 ? -1 : 0;
    }
    for (Py_ssize_t slot = 0; done == 0 && slot < PyTuple_GET_SIZE(following); slot++) {
        PyObject *next = next_node(following, slot, NULL);
        bp_facts *other = next == Py_None ? NULL : bp_node_known(over->nodes, next);
        done = other == NULL ? 0 : add_entered(over->walk, other->number);
    }
    Py_DECREF(following);
    return done;
}

/* One node: 1 to go on, 0 at a cap, -1 with an exception. */
static int visit(sweep *over, PyObject *node, PyObject *writer, Py_ssize_t cap)
{
    bp_facts *facts = bp_node_known(over->nodes, node);
    if (facts != NULL && facts->mark == over->mark) {
        return 1;
    }
    if ((Py_ssize_t)over->walk->count >= cap) {
        PyObject *done = PyObject_CallMethod(writer, "cut", "ssn", "nodes of one backward call",
                                             "a larger graph is walked in part", cap);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    facts = bp_node_meet(over->nodes, node, NULL, over->lazily);
    if (facts == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    facts->mark = over->mark;
    return add_met(over->walk, facts) < 0 || follow(over, facts, node) < 0 ? -1 : 1;
}

/* The root nodes, first one on top. */
static int push_roots(node_stack *stack, PyObject *roots)
{
    PyObject *given = PySequence_Tuple(roots);
    int done = given == NULL ? -1 : 0;
    for (Py_ssize_t i = given == NULL ? -1 : PyTuple_GET_SIZE(given) - 1; done == 0 && i >= 0; i--) {
        PyObject *root = PyTuple_GET_ITEM(given, i);
        done = root == Py_None ? 0 : push(stack, root);
    }
    Py_XDECREF(given);
    return done;
}

static Py_ssize_t most_nodes(PyObject *writer)
{
    PyObject *caps = PyObject_GetAttr(writer, s_caps), *most = caps == NULL ? NULL : PyObject_GetAttr(caps, s_nodes_per_call);
    Py_ssize_t cap = most == NULL ? -1 : PyLong_AsSsize_t(most);
    Py_XDECREF(caps);
    Py_XDECREF(most);
    return cap;
}

static int walk_from(sweep *over, PyObject *roots, PyObject *writer)
{
    Py_ssize_t cap = most_nodes(writer);
    int done = cap < 0 || push_roots(&over->stack, roots) < 0 ? -1 : 1;
    if (done > 0 && over->stack.count) {
        over->nodes->walk_moment = bp_moment_now(over->nodes->moments);
        done = over->nodes->walk_moment < 0 || bp_hooks_begin() < 0 ? -1 : 1;
        if (done > 0) {
            while (done > 0 && over->stack.count) {
                PyObject *node = over->stack.nodes[--over->stack.count];
                done = visit(over, node, writer, cap);
                Py_DECREF(node);
            }
            bp_hooks_end();
        }
        over->nodes->walk_moment = -1;
    }
    over->walk->truncated = done == 0;
    while (over->stack.count) {
        Py_DECREF(over->stack.nodes[--over->stack.count]);
    }
    PyMem_RawFree(over->stack.nodes);
    return done < 0 ? -1 : 0;
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"roots", "nodes", "writer", "whole", NULL};
    PyObject *roots, *nodes, *writer;
    int whole = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O|$p", keywords, &roots, &bp_nodes_type, &nodes, &writer, &whole)) {
        return NULL;
    }
    bp_walk *found = (bp_walk *)bp_walk_type.tp_alloc(&bp_walk_type, 0);
    sweep over = {(bp_nodes *)nodes, found, bp_rows_of(writer, BP_EDGES), {NULL, 0, 0}, 0, whole};
    over.mark = bp_nodes_sweep(over.nodes);
    if (found == NULL || over.edges == NULL || walk_from(&over, roots, writer) < 0) {
        Py_XDECREF(found);
        return NULL;
    }
    return (PyObject *)found;
}

/* ---- Walk as Python sees it */

void bp_walk_nodes(PyObject *self, bp_facts ***met, size_t *count)
{
    *met = ((bp_walk *)self)->met;
    *count = ((bp_walk *)self)->count;
}

static PyObject *walk_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"truncated", NULL};
    int truncated = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p", keywords, &truncated)) {
        return NULL;
    }
    bp_walk *made = (bp_walk *)type->tp_alloc(type, 0);
    if (made != NULL) {
        made->truncated = (char)truncated;
    }
    return (PyObject *)made;
}

static void walk_dealloc(PyObject *self)
{
    bp_walk *done = (bp_walk *)self;
    for (size_t i = 0; i < done->count; i++) {
        bp_facts_drop(done->met[i]);
    }
    PyMem_RawFree(done->met);
    PyMem_RawFree(done->entered);
    Py_TYPE(self)->tp_free(self);
}

static Py_ssize_t walk_length(PyObject *self) { return (Py_ssize_t)((bp_walk *)self)->count; }

bool bp_walk_has(PyObject *self, int64_t number)
{
    bp_walk *done = (bp_walk *)self;
    for (size_t i = 0; i < done->count; i++) {
        if (done->met[i]->number == number) {
            return true;
        }
    }
    return false;
}

static PyObject *walk_has_met(PyObject *self, PyObject *given)
{
    long long number = PyLong_AsLongLong(given);
    return number == -1 && PyErr_Occurred() ? NULL : PyBool_FromLong(bp_walk_has(self, number));
}

static PyObject *walk_enters(PyObject *self, PyObject *given)
{
    bp_walk *done = (bp_walk *)self;
    long long number = PyLong_AsLongLong(given);
    if (number < 0) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    size_t byte = (size_t)number >> 3;
    return PyBool_FromLong(byte < done->entered_bytes && done->entered[byte] >> (number & 7) & 1);
}

static PyObject *walk_grad_order(PyObject *self, void *Py_UNUSED(closure))
{
    bp_walk *done = (bp_walk *)self;
    int64_t highest = 0;
    for (size_t i = 0; i < done->count; i++) {
        highest = done->met[i]->grad_order > highest ? done->met[i]->grad_order : highest;
    }
    return PyLong_FromLongLong(highest);
}

static PyObject *walk_held_totals(PyObject *self, void *Py_UNUSED(closure))
{
    bp_walk *done = (bp_walk *)self;
    int64_t nodes = 0, bytes = 0;
    if (bp_held(done->met, done->count, &nodes, &bytes) < 0) {
        return NULL;
    }
    return Py_BuildValue("LL", (long long)nodes, (long long)bytes);
}

static PyObject *walk_state(PyObject *self, void *Py_UNUSED(closure))
{
    bp_walk *done = (bp_walk *)self;
    size_t saving = 0, freed = 0;
    int64_t last = -1;
    for (size_t i = 0; i < done->count; i++) {
        if (done->met[i]->saves) {
            saving++;
            freed += done->met[i]->freed_by >= 0;
            last = done->met[i]->freed_by > last ? done->met[i]->freed_by : last;
        }
    }
    if (!saving || !freed) {
        return Py_BuildValue("sO", saving ? "held" : "released", Py_None);
    }
    return Py_BuildValue("sL", freed == saving ? "freed" : "partly-freed", (long long)last);
}

static PyObject *walk_truncated(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((bp_walk *)self)->truncated);
}

static PyMethodDef walk_methods[] = {
    {"has_met", walk_has_met, METH_O, "It met a node of the record."},
    {"enters", walk_enters, METH_O, "An edge inside the walk leads to a node of the record."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef walk_getset[] = {
    {"truncated", walk_truncated, NULL, "The node budget or the cap of one call stopped it.", NULL},
    {"grad_order", walk_grad_order, NULL, "The highest order of derivation of its nodes.", NULL},
    {"held_totals", walk_held_totals, NULL,
     "Nodes that hold saved tensors still, and the bytes of their distinct storages.", NULL},
    {"state", walk_state, NULL, "What became of what its nodes saved, and the last call that freed some.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods walk_sequence = {.sq_length = walk_length};

PyTypeObject bp_walk_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.Walk",
    .tp_doc = "What a walk met.",
    .tp_basicsize = sizeof(bp_walk),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = walk_new,
    .tp_dealloc = walk_dealloc,
    .tp_methods = walk_methods,
    .tp_getset = walk_getset,
    .tp_as_sequence = &walk_sequence,
};

static PyMethodDef functions[] = {
    {"walk", (PyCFunction)(void (*)(void))walk, METH_VARARGS | METH_KEYWORDS, "Follow next_functions from root nodes once."},
    {NULL, NULL, 0, NULL},
};

int bp_add_walk(PyObject *module)
{
    s_next_functions = PyUnicode_InternFromString("next_functions");
    s_caps = PyUnicode_InternFromString("caps");
    s_nodes_per_call = PyUnicode_InternFromString("nodes_per_call");
    if (s_next_functions == NULL || s_caps == NULL || s_nodes_per_call == NULL || PyModule_AddType(module, &bp_walk_type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
