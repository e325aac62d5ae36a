/* The autograd nodes that were met, and what the parts that walk, describe and follow them share.

   1. `bp_facts` belong to no Python object: a sentinel, a walk and a pass each hold a count of them.
   2. A sentinel's death is its node's death. It may come at any point at which Python code may run, also in here:
      no place in a table is kept across such a point, only facts. */

#ifndef BACKPROBE_GRAPH_H
#define BACKPROBE_GRAPH_H

#include "hot.h"
#include "reduction.h"

#include <stdbool.h>

/* Where the nodes of a kind hold a saved tensor, from the node's own address; sure once several nodes agreed. */
typedef struct {
    int32_t offset; /* -1: they do not agree */
    int32_t seen;
} bp_place;

/* What all nodes of one name have in common. */
typedef struct {
    PyObject_HEAD
    PyObject *name;       /* str, as in the record */
    PyObject *custom;     /* str: the user's autograd.Function; NULL: none */
    PyObject *attributes; /* tuple of str: the `_raw_saved_*` of the type, NULL: not asked yet */
    PyObject *labels;     /* tuple of str: torch's names for them */
    bp_place *places;     /* where each of them lies in a node; NULL: not looked for */
    bool several;         /* a node of it had other than one output */
    bool varies;          /* it may have another number of outputs each time */
    bool shared;          /* nodes of other names have this type */
} bp_kind;

typedef struct {
    uintptr_t address;
    int64_t size;
} bp_held_storage;

typedef struct bp_nodes bp_nodes;

/* A node as long as it lives, and until everything that was to be told of it is. */
typedef struct bp_facts {
    bp_nodes *nodes; /* NULL once nobody listens any more */
    struct bp_facts *next_dead;
    bp_kind *kind;
    const void *key; /* what stays the same of it while it lives */
    PyObject *hook; /* the sentinel, borrowed: valid while the node lives */
    uint64_t seq;
    int64_t number, thread, first_seen, site, module_call, born_call, grad_order, variable, freed_by, died;
    int64_t feeds; /* the AccumulateGrad that is all it leads to; -1: another node, or several */
    uint64_t saved_bytes;
    bp_held_storage *storages;
    char *outputs; /* msgpack; NULL: not known yet */
    int64_t *tensors; /* by output number, -1: none */
    int32_t storage_count, outputs_size, output_count, tensor_room;
    int32_t saves, refs;
    uint32_t mark; /* the last sweep that saw it */
    bool leaf, backward, described, is_dead;
    bool untold; /* its outputs are still to come */
    bool stale;  /* its row does not say everything that is known */
} bp_facts;

/* A pre-hook of a node. `hooks` is the dict that holds it, borrowed: the node holds the dict, and nothing else the hook. */
typedef struct {
    PyObject_HEAD
    bp_facts *facts;
    PyObject *hooks;
    long long key;
    vectorcallfunc call;
} bp_sentinel;

typedef struct bp_passes bp_passes;

struct bp_nodes {
    PyObject_HEAD
    PyObject *writer, *threads, *moments, *order_of_call, *saved, *see, *kinds;
    bp_passes *passes; /* borrowed: it takes itself out */
    bp_rows *rows;
    bp_facts **table; /* open addressing by key */
    size_t room, live;
    bp_facts *dead_first, *dead_last;
    Py_ssize_t budget;
    int64_t next, untold; /* nodes whose outputs are still to come */
    int64_t walk_moment; /* the moment of the walk in progress, -1: none */
    uint32_t mark;
    bool eager; /* gradients do not tell the outputs here: they are read when a node is met */
};

extern PyTypeObject bp_nodes_type, bp_sentinel_type, bp_saved_type, bp_walk_type;

/* Holds a place for facts; the last one to let go frees them. */
static inline bp_facts *bp_facts_keep(bp_facts *facts)
{
    facts->refs++;
    return facts;
}
void bp_facts_drop(bp_facts *facts);

/* The facts of a node that was met and lives; NULL: it was not. */
bp_facts *bp_node_known(bp_nodes *nodes, PyObject *node);
/* The facts of a node, borrowed, which is numbered and watched from now on.
   NULL: past the budget, or with an exception. `output`: a tensor that tells its output where
   it has one, or NULL; `lazily`: its outputs may be told by the gradient that arrives. */
bp_facts *bp_node_meet(bp_nodes *nodes, PyObject *node, PyObject *output, bool lazily);
/* Write a node's row (again); 0, or -1 with an exception. */
int bp_node_row(bp_nodes *nodes, bp_facts *facts);
/* Read a node's outputs; 0, or -1 with an exception. */
int bp_node_outputs(bp_facts *facts, PyObject *node);
/* Take what a gradient tells of the one output of a node. */
void bp_node_output_is(bp_facts *facts, PyObject *tensor, const bp_tensor_view *view);
/* Nodes died of which nothing is written yet. */
int bp_nodes_wait(PyObject *nodes);
/* Count a node that was left alone. */
int bp_nodes_refuse(bp_nodes *nodes);
/* A sweep that no fact carries the mark of yet. */
uint32_t bp_nodes_sweep(bp_nodes *nodes);

/* Meet the node that made a tensor of the record: the node's number; -2: no room, which was counted; -1 with an
   exception. `tensor` tells the output where it is the only one, NULL: the node is asked. `type` is its name, borrowed. */
int64_t bp_nodes_meet_producer(PyObject *nodes, PyObject *node, PyObject *tensor, int64_t number, int64_t output_nr,
                               PyObject **type);

/* Nodes that hold saved tensors still, and the bytes of their distinct storages. */
int bp_held(bp_facts *const *facts, size_t count, int64_t *nodes, int64_t *bytes);

/* The word of a record for a dtype of reduction.h. */
const char *bp_dtype_label(int dtype);

/* ---- saved_tensors.c: write what a node saves; 0, or -1 with an exception */
int bp_saved_describe(PyObject *saved, bp_facts *facts, PyObject *node);

/* ---- node_hooks.c: a hook before a node, put without the Python code that torch has for it */
int bp_hooks_ready(void);
int bp_hooks_begin(void);
void bp_hooks_end(void);
int bp_hook_before(PyObject *node, PyObject *hook);
/* Take a hook out of the dict that holds it. */
void bp_hook_off(PyObject *hook, PyObject *hooks);

/* ---- passes.c */
void bp_arrived(bp_passes *passes, bp_facts *facts, PyObject *gradients);

/* ---- MessagePack into memory that has room */

static inline char *bp_pack_uint(char *at, uint64_t value)
{
    int bytes = value < 0x80 ? 0 : value <= 0xFF ? 1 : value <= 0xFFFF ? 2 : value <= 0xFFFFFFFF ? 4 : 8;
    if (!bytes) {
        *at++ = (char)value;
        return at;
    }
    *at++ = (char)(bytes == 1 ? 0xCC : bytes == 2 ? 0xCD : bytes == 4 ? 0xCE : 0xCF);
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
        *at++ = (char)(value >> shift);
    }
    return at;
}

#define BP_NAME_BYTES 2048 /* a name of 512 characters */

#endif
