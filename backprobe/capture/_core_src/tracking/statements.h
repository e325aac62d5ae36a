/* What statement and module taps do. */

#ifndef BACKPROBE_STATEMENTS_H
#define BACKPROBE_STATEMENTS_H

#include "gate.h"
#include "bindings.h"
#include "snapshots.h"

typedef struct {
    PyObject_HEAD
    PyObject *calls, *operations, *ended; /* ended: the dict of statements whose values' parts were seen */
    PyObject *recorder, *guard, *writer, *sites, *nodes, *modules, *optimizers, *failures, *sampler;
    PyObject *sources;            /* the dict of the user's files */
    PyObject *raised, *open_steps; /* lists that are empty almost always */
    bp_gate *gate;
    bp_threads *threads;
    bp_moments *moments;
    bp_tensors *tensors;
    bp_states *states;
    bp_names *names;
    bp_rows *module_calls;
    PyObject *known_modules;
    int64_t site_times, operation_most, function_times, exact_tensors, tuple_elements, eager_statements, tops;
    uint32_t *operation_times;
    size_t operation_room;
    int64_t flush_ns, flushed_ns, next_module_call;
} bp_statements;

extern PyTypeObject bp_statements_type;

/* Meet a tensor and look at its state: a new reference; NULL without an exception if it is not recorded. */
bp_known *bp_see(bp_statements *statements, PyObject *tensor, int64_t site, PyObject *how);
/* 1: a new tensor of a statement or call that ran often, where no graph is made, is not recorded; -1 with an exception. */
int bp_passes_over(bp_statements *statements, PyObject *tensor, int64_t times);
/* Compare one tensor with its last state; an error of ours costs what it would have told, not the others. */
int bp_look_safely(bp_statements *statements, bp_known *known, PyObject *tensor, const bp_cause *cause);
/* Compare all live tensors, or those that were leaves. */
int bp_look_at_all(bp_statements *statements, const bp_cause *cause, int leaves_only);
/* The site of the user's innermost frame from `frame` on; -1: none, -2 with an exception. Takes over the frame. */
int64_t bp_calling_site(bp_statements *statements, PyFrameObject *frame);
/* Give a value, or what a short tuple, list, dict or dataclass holds, the names that a target says. */
int bp_bind_value(bp_statements *statements, bp_site *site, PyObject *target, PyObject *value, const int64_t *parents,
                  int count, int depth);
/* The values of a class are looked into field by field. */
int bp_is_dataclass(PyTypeObject *kind);
/* The exception that is set ended a body of ours: counted unless the program is at its limit. 0: swallowed; -1: it is the
   user's own, and still set. */
int bp_swallow(bp_statements *statements);
int bp_bury_all(bp_statements *statements);
/* nodes.c: nodes died of which nothing is written yet. */
int bp_nodes_wait(PyObject *nodes);
int bp_flush_if_due(bp_statements *statements);
static inline int bp_is_few(const bp_statements *statements)
{
    return PyDict_GET_SIZE(statements->tensors->live) <= statements->exact_tensors;
}

/* The bodies of the taps; 0, or -1 with an exception. */
int bp_end_statement(bp_statements *statements, int64_t site, PyObject *const *values, Py_ssize_t count);
int bp_value(bp_statements *statements, int64_t site, PyObject *given, PyObject *const *containers, Py_ssize_t count);
int bp_passing(bp_statements *statements, int64_t site);
int bp_enter(bp_statements *statements, int64_t site, PyObject *const *arguments, Py_ssize_t count);
int bp_module_enter(bp_statements *statements, PyObject *module);
int bp_module_left(bp_statements *statements);
int bp_modules_rest(bp_statements *statements);
int bp_modules_resume(bp_statements *statements, int64_t open_calls);
int bp_module_returned(bp_statements *statements, PyObject *module, PyObject *given);
/* 1: this time an operation is looked at; -1 with an exception. */
int bp_is_followed(bp_statements *statements, int64_t number);
/* Look at what an operation gave. */
int bp_operation(bp_statements *statements, int64_t number, PyObject *given);
/* 1: nothing that a record holds can have changed at this statement. */
int bp_is_idle(bp_statements *statements, bp_site *site, PyObject *const *values, Py_ssize_t count);

#endif
