/* The tensors that were seen, as the parts of the hot path share them. */

#ifndef BACKPROBE_TENSORS_H
#define BACKPROBE_TENSORS_H

#include "map.h"
#include "state_flags.h"
#include "reduction.h"
#include "timeline.h"

/* A weak reference that remembers which tensor it was. */
typedef struct {
    PyWeakReference weak;
    uintptr_t key, storage; /* storage 0: none */
    int64_t number;
} bp_ref;

typedef struct {
    int64_t number;
    bp_ref **holders; /* by their tensors' numbers, ascending; borrowed, a reference that goes is taken out before */
    size_t count, room;
} bp_storage;

typedef struct {
    PyObject_HEAD
    bp_map refs;     /* address of a tensor -> bp_ref, owned */
    bp_map storages; /* address of a storage -> bp_storage, owned */
    int64_t next, next_storage;
    PyObject *buried; /* the callback of every reference */
    bp_ref **dead;
    size_t dead_count, dead_room;
    char closed;
} bp_identities;

typedef struct {
    unsigned char *bytes;
    Py_ssize_t length; /* -1: not read */
} bp_raw;

typedef struct {
    int64_t unsure_from, since, version;
} bp_version;

/* What a Tensor row says of an object itself. */
typedef struct {
    int ndim;      /* -1: its shape cannot be told */
    int64_t *dims; /* ndim sizes, then ndim strides where it has them */
    char has_stride, has_offset, exact;
    int64_t numel, size_bytes, offset, storage_bytes; /* storage_bytes -1: it has no storage */
    uintptr_t address;
    PyObject *dtype, *device, *layout, *special; /* special NULL: None */
    PyObject *base;                              /* the tensor that it is a view of, NULL: none */
} bp_description;

enum { BP_BY_OP, BP_BY_USER, BP_BY_LIBRARY, BP_BY_UNKNOWN };
enum { BP_SEEN, BP_RANGE, BP_SOURCE, BP_UNKNOWN };
enum { BP_NO_ROLE, BP_PARAMETER, BP_BUFFER, BP_OPTIMIZER_ONLY, BP_GRADIENT };
enum { BP_GRAD_NONE, BP_GRAD_PRESENT, BP_GRAD_NOT_READ };

#define BP_FLAG(name) char name;
typedef struct {
    BP_STATE_FLAGS(BP_FLAG)
    char grad, grad_fn_read, known;
    PyObject *grad_fn; /* borrowed from the known tensor for as long as the two are compared; owned in a known tensor */
    int64_t version;
} bp_state;
#undef BP_FLAG

/* The gradient that a backward call brought a leaf, as it was measured on arrival. */
typedef struct {
    bp_measured_at at;
    bp_row row;
    int64_t call, node; /* node: on another device, where the row is not known yet, that which it reached; else -1 */
} bp_arrival;

typedef struct {
    PyObject_HEAD
    bp_ref *ref;
    bp_arrival *arrival; /* NULL: none was kept */
    int64_t number, moment, storage, view_of, site, died;
    bp_description is;
    PyObject *cls, *created_how, *fqn;
    char created_by, proof, role;
    char is_new, readable, failed, grad_fn_read;
    bp_state state;
    int64_t version; /* -1: none */
    uintptr_t place; /* where it lay at the last look (bp_small); 0: not told */
    bp_raw raw, grad_raw;
    bp_ref *grad;
    int64_t grad_version, node, looked_at, turn; /* turn: that of its last look */
    PyObject *grad_fn, *name;
    bp_version *versions;
    size_t version_count, version_room;
} bp_known;

typedef struct {
    PyObject_HEAD
    bp_identities *ids;
    PyObject *live; /* number -> Known */
    PyObject *writer;
    bp_moments *moments;
    bp_rows *rows;
    int64_t seen, most;
} bp_tensors;

extern PyTypeObject bp_ref_type, bp_identities_type, bp_known_type, bp_tensors_type;

/* The reference of a tensor: made on first sight (bp_ref_of), or NULL without an exception (bp_ref_find). Borrowed. */
bp_ref *bp_ref_of(bp_identities *ids, PyObject *tensor);
bp_ref *bp_ref_find(bp_identities *ids, PyObject *tensor);
void bp_forget(bp_identities *ids, bp_ref *ref);
/* The number of the storage at an address, which the tensor holds from now on; -1 with an exception. */
int64_t bp_hold_storage(bp_identities *ids, bp_ref *ref, uintptr_t address);
/* Its tensor lives; a numbered tensor that lives holds the storage. */
int bp_ref_lives(bp_ref *ref);
int bp_is_held(const bp_storage *storage);
bp_identities *bp_new_identities(void);
void bp_close_identities(bp_identities *ids);

/* What is known of a tensor, borrowed; NULL without an exception if it was never met. */
bp_known *bp_known_find(bp_tensors *tensors, PyObject *tensor);
bp_known *bp_known_at(bp_tensors *tensors, int64_t number);
/* The same from now on; NULL without an exception for one that is not recorded. `how` may be NULL. A new reference. */
bp_known *bp_meet(bp_tensors *tensors, PyObject *tensor, int64_t site, PyObject *how);
/* Write the row of a known tensor. */
int bp_write_tensor(bp_tensors *tensors, bp_known *known);
/* Write the row again if `.data =` or `set_` gave the object another shape, dtype, device or storage. */
int bp_refresh(bp_tensors *tensors, bp_known *known, PyObject *tensor);
int bp_note(bp_tensors *tensors, bp_known *known, const char *why);
int bp_bury(bp_tensors *tensors);
/* Read its flags into a state; 0 where torch refuses to answer, -1 with an exception. */
int bp_flags_of(PyObject *tensor, bp_state *state);
/* The flags as a tuple of Python, in their order. */
PyObject *bp_flags_tuple(const bp_state *state);
/* `_version`; -1: an inference tensor; -2 with an exception. */
extern int bp_inference_was_seen; /* a tensor made in inference mode was met in this process */
int64_t bp_version_of(PyObject *tensor);

static inline void bp_put_dims(bp_rows *rows, const int64_t *dims, int count)
{
    bp_put_array(rows, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        bp_put_int(rows, dims[i]);
    }
}

#endif
