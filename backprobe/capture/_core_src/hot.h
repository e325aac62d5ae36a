/* What the parts of the compiled core share: rows on their way out, the timeline of sequence numbers, moments, tensors.

   1. Between bp_row_begin and bp_row_end no Python code may run: another row of the same table could begin inside.
   2. A number that is not known is -1; functions that return int and can fail return -1 with an exception set. */

#ifndef BACKPROBE_HOT_H
#define BACKPROBE_HOT_H

#include "core.h"

/* The tables whose rows the core writes itself (ROWS in row_buffer.c names their fields). */
enum {
    BP_STACKS,
    BP_MODULE_CALLS,
    BP_MOMENTS,
    BP_TENSORS,
    BP_NODES,
    BP_TENSOR_NODES,
    BP_EDGES,
    BP_SAVED,
    BP_BINDINGS,
    BP_SNAPSHOTS,
    BP_SMALL_VALUES,
    BP_NODE_PASSES,
    BP_LEAF_GRADS,
    BP_INPLACE_EVENTS,
    BP_HOT_TABLES
};

/* ---- rows (row_buffer.c) */

typedef struct bp_rows bp_rows;

/* The rows of one table behind a Writer; borrowed, NULL with an exception if the writer has no compiled buffer. */
bp_rows *bp_rows_of(PyObject *writer, int table);
/* 1: a row of so many fields begins; 0: the writer is closed, leave the row out. */
int bp_row_begin(bp_rows *rows, int fields);
/* The row is complete; 0, or -1 with an exception: it is dropped. */
int bp_row_end(bp_rows *rows);

/* What is left out so often that only a number is kept here; the first time it is told to the writer. */
enum { BP_CUT_BINDINGS, BP_CUT_MODULE_CALLS, BP_CUTS };
int bp_cut(bp_rows *rows, PyObject *writer, int which);

void bp_put_nil(bp_rows *rows);
void bp_put_bool(bp_rows *rows, int value);
void bp_put_uint(bp_rows *rows, uint64_t value);
void bp_put_int(bp_rows *rows, int64_t value);
void bp_put_id(bp_rows *rows, int64_t value); /* below 0: nil */
void bp_put_f32(bp_rows *rows, float value);
void bp_put_f64(bp_rows *rows, double value);
void bp_put_str(bp_rows *rows, const char *text, Py_ssize_t length);
void bp_put_text(bp_rows *rows, PyObject *text); /* a str that was cut to its cap; NULL or None: nil */
void bp_put_bin(bp_rows *rows, const void *bytes, Py_ssize_t length);
void bp_put_array(bp_rows *rows, uint32_t length);
void bp_put_raw(bp_rows *rows, const void *bytes, Py_ssize_t length); /* msgpack that was made before */

/* ---- the timeline of sequence numbers, moments (timeline.c) */

typedef struct {
    int64_t site, call, module_call, thread; /* -1: None */
} bp_owner;

/* Who issued a sequence number; `thread` is the calling one where nobody or several did. */
int bp_owner_of(PyObject *threads, uint64_t number, bp_owner *owner);
/* The current moment, written if it was not yet; -1 with an exception. */
int64_t bp_moment_now(PyObject *moments);

/* ---- tensors (tensor_registry.c) */

/* The number of a tensor that was met and lives; -1: never met. */
int64_t bp_find(PyObject *tensors, PyObject *tensor);
/* The tensor that a node holds: the object itself, else the one of its memory and shape that an operator made. */
int64_t bp_find_held(PyObject *tensors, PyObject *content, uintptr_t storage);
/* The same of a plain one (layout.h). */
int64_t bp_find_held_impl(PyObject *tensors, uintptr_t impl);
/* `_version` when a sequence number was issued; -1: not known. */
int64_t bp_version_at(PyObject *tensors, int64_t tensor, uint64_t number);
/* The number of the storage at an address (`_cdata`), if a numbered tensor holds it; else -1. */
int64_t bp_storage_number(PyObject *tensors, uintptr_t storage);

#endif
