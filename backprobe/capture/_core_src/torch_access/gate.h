/* The gate that bodies of ours pass one at a time. */

#ifndef BACKPROBE_GATE_H
#define BACKPROBE_GATE_H

#include "core.h"

typedef struct {
    PyObject_HEAD
    unsigned long owner; /* the thread inside; 0: none */
    int64_t since, own_ns;
    Py_ssize_t without_room;
    PyObject *hidden; /* the context in which no __torch_function__ runs, while one is open */
    char shields;
} bp_gate;

extern PyTypeObject bp_gate_type;

/* 1: inside; 0: not, without an exception: entered again, traced, no room, another thread stays too long. */
int bp_gate_enter(bp_gate *gate);
void bp_gate_leave(bp_gate *gate);
/* A tensor of a subclass was met; -1 with an exception. Inside only. */
int bp_gate_shield(bp_gate *gate);

#endif
