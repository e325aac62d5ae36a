/* The state of a tensor, compared with its last one. */

#ifndef BACKPROBE_STATES_H
#define BACKPROBE_STATES_H

#include "reduction.h"
#include "tensor_registry.h"

/* What just happened, to which a change is put down; -1: none. `sequence`: the next sequence number, -1 to ask for it. */
typedef struct {
    int64_t site, call, step, sequence;
    int unseen; /* it came about while nothing was looked at */
    int named;  /* the statement names the tensor, and may have changed it */
    int late;   /* it was found later than at its own statement */
} bp_cause;

typedef struct {
    PyObject_HEAD
    PyObject *writer, *nodes, *options, *caps, *touched;
    bp_moments *moments;
    bp_tensors *tensors;
    bp_rows *snapshots, *small_values, *inplace_events, *leaf_grads, *tensor_nodes;
    int64_t inplace_count, leaf_grad_count, most_elements, exact_tensors;
    bp_limits limits;
    int64_t turn, since, full, quick; /* see the twin */
    char measures, walks;
    char hooked;              /* hooks of the program may write while a backward call runs */
    int64_t custom_call;      /* the last backward call that ran Python code of the program's own functions */
    PyObject *measured;       /* the gradient of the look in progress, borrowed, and what it measured */
    bp_row measured_row;
    int measured_has;
    int64_t came_call, came_node; /* on another device: where its values were asked for; -1: they were not */
} bp_states;

extern PyTypeObject bp_states_type;

/* The Cause of Python. */
int bp_cause_of(PyObject *given, bp_cause *cause);
/* A quick look: another `_version`, or a leaf's `.grad` is another or has another. 1, 0, or -1 with an exception. */
int bp_differs(bp_known *known, PyObject *tensor);
/* Read a tensor's state and write down what changed since the last look; -1 with an exception. */
int bp_look(bp_states *states, bp_known *known, PyObject *tensor, const bp_cause *cause);

#endif
