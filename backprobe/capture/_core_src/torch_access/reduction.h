/* Reads the memory of a tensor and reduces it to numbers, without running a torch operation.

   Meaning of every number: tensor_statistics.py and tensor_memory.py, the twins. Nothing here makes a copy-on-write
   tensor real, allocates, keeps a reference, or leaves a Python exception set. The GIL is held throughout. */

#ifndef BACKPROBE_STATS_H
#define BACKPROBE_STATS_H

#include "core.h"

#include <stdbool.h>

typedef enum {
    BP_F32, BP_F64, BP_F16, BP_BF16, BP_C64, BP_C128,
    BP_I64, BP_I32, BP_I16, BP_I8, BP_U64, BP_U32, BP_U16, BP_U8, BP_BOOL,
    BP_DTYPES
} bp_dtype;

#define BP_MOST_DIMENSIONS 64

/* A tensor's memory on the CPU. Valid while the tensor lives and no Python code runs. */
typedef struct {
    const char *data;       /* of the first element; NULL only where numel is 0 */
    const int64_t *sizes;   /* ndim of each; strides in elements */
    const int64_t *strides;
    int64_t numel;
    int32_t ndim;
    int32_t item;           /* bytes of an element */
    bp_dtype dtype;
    bool conj, neg;         /* lazily conjugated, negated: the memory holds the other */
    int64_t room[2 * BP_MOST_DIMENSIONS]; /* sizes and strides where torch does not lend its own */
} bp_tensor_view;

/* The eight statistics, rounded to float32 as a record keeps them. */
typedef struct {
    float norm, sum, min, max;
    int64_t nan, inf, zeros, counted;
    bool has_norm;  /* false for integers and bool: None in the record */
    bool has_sum;   /* false for complex: sum, min, max are None */
    bool sampled;   /* kind "sampled": over one block */
} bp_row;

typedef struct {
    int64_t statistic_elements; /* options.Caps */
    int64_t block_elements;
} bp_limits;

/* 1: the view is filled. 0: the elements cannot be read in place (another device, layout, fake, functorch, ...). */
int bp_view_of(PyObject *tensor, bp_tensor_view *view);

/* The same without the elements (`data` is NULL), which suffices for a plain tensor of another device too. */
int bp_shape_of(PyObject *tensor, bp_tensor_view *view);

/* A plain tensor that is known to lie on another device. */
int bp_is_away(PyObject *tensor);

/* Which elements were reduced. The same place with the same `_version` holds the same ones, while its memory lives and
   nothing writes past the counter; `samples` are bytes of 64 of them. */
typedef struct {
    const char *data;
    int64_t numel, version;
    uint64_t samples;
    bp_dtype dtype;
} bp_measured_at;

/* Where a view lies: 1; 0 if it is so small that nothing is saved, or has holes, or is lazily changed. */
int bp_place_of(const bp_tensor_view *view, int64_t version, bp_measured_at *place);
/* The same of a plain tensor on another device: `data` is its storage's address, which is no address of elements, and
   `samples` the offset in it. */
int bp_place_away(PyObject *tensor, bp_measured_at *place);
static inline bool bp_same_place(const bp_measured_at *one, const bp_measured_at *other)
{
    return one->data != NULL && one->data == other->data && one->numel == other->numel && one->version >= 0 &&
           one->version == other->version && one->dtype == other->dtype && one->samples == other->samples;
}

/* The dtype's own word for a record is Python's business; this is its size. */
int bp_item_size(bp_dtype dtype);

/* 1: the row is filled. 0: there is nothing to reduce (no elements). */
int bp_stats(const bp_tensor_view *view, const bp_limits *limits, bp_row *row);

/* The elements row-major, contiguous, conjugation and negation applied; `out` holds view->numel * view->item bytes. */
void bp_elements(const bp_tensor_view *view, char *out);

/* Whether `tensor_memory.elements(tensor, most)` would give bytes: so many elements at most, an empty shape counted as if 1. */
bool bp_is_small(const bp_tensor_view *view, int64_t most);

/* Both at once, for whoever has a tensor and wants what a record keeps of it.
   1: filled; `*size` is the number of bytes in `raw` (room for `most` elements of 16 bytes), -1 if it is not small.
   0: cannot be read in place. row->counted is 0 where there is nothing to reduce. */
int bp_read(PyObject *tensor, const bp_limits *limits, int64_t most, bp_row *row, char *raw, int64_t *size);

#endif
