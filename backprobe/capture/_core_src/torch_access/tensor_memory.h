/* What tensor_memory.c offers to the files of statistics; everybody else includes reduction.h. */

#ifndef BACKPROBE_READER_H
#define BACKPROBE_READER_H

#include "reduction.h"

/* In the sense of numpy: strides of sizes of 1 do not count. */
bool bp_is_contiguous(const bp_tensor_view *view);

/* Read by the DLPack exchange API, if torch has it. 1: it is used. 0: not. -1: an exception is set. */
int bp_use_exchange(bool on);

/* The numbers before they are rounded; `finite_norm` leaves out what is not finite. */
typedef struct {
    double norm, finite_norm, sum, min, max;
    int64_t nan, inf, zeros, counted;
    bool has_norm, has_sum;
} bp_measures;

/* 1: filled; 0: there is no element. */
int bp_measure(const bp_tensor_view *view, bp_measures *out);

/* Norm and counts alone: of float32 that lies in one piece nothing but the squares is computed. As `bp_measure`. */
int bp_measure_norm(const bp_tensor_view *view, bp_measures *out);

/* Blocks of at most BP_BLOCK contiguous elements in any order; returns how often each element is repeated. */
typedef void (*bp_visit)(const char *p, int n, bp_dtype dtype, void *state);
int64_t bp_each_block(const bp_tensor_view *view, bool any_order, bp_visit visit, void *state);

/* Uses the kernels of a name from now on, the widest for NULL; NULL, and no change, if the machine lacks them. */
struct bp_kernels;
const struct bp_kernels *bp_use_kernels(const char *name);
const struct bp_kernels *bp_used_kernels(void);

#endif
