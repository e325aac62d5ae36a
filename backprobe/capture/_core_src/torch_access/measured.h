/* What a record keeps of a tensor's elements: those of a small one, and the statistics of any. */

#ifndef BACKPROBE_MEASURED_H
#define BACKPROBE_MEASURED_H

#include "hot.h"
#include "reduction.h"

#define BP_MOST_RAW 1024

/* The elements of a small tensor. */
typedef struct {
    int64_t size; /* bytes; -1: not small, or not readable */
    int32_t ndim;
    bp_dtype dtype;
    const void *data; /* where the elements lie; NULL: not told */
    uintptr_t place;  /* what changes if it gets other memory: `data`, or the storage on another device; 0: not told */
    PyObject *brought; /* from another device: the bytes that Python read, owned; then only `raw` is filled beside it */
    int64_t dims[BP_MOST_DIMENSIONS];
    unsigned char raw[BP_MOST_RAW];
} bp_small;

/* Read the elements if there are at most `most` (-1: none, only where they lie); 0, or -1 with an exception. */
int bp_read_small(PyObject *tensor, int64_t most, bp_small *small);
static inline void bp_small_done(bp_small *small) { Py_CLEAR(small->brought); }

/* 1: the row is filled; 0: statistics are not defined or not measured; -1 with an exception. */
int bp_measure_tensor(PyObject *tensor, const bp_limits *limits, PyObject *caps, bp_row *row);
/* Put what bp_measure gave: a Statistics row, or nil. */
void bp_put_measured(bp_rows *rows, int measured, const bp_row *row);
/* The record's name of a dtype, "float32". */
const char *bp_dtype_text(bp_dtype dtype);

#endif
