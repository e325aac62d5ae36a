/* Names: which tensor each holds, and what the rewriter knows of each statement. */

#ifndef BACKPROBE_NAMES_H
#define BACKPROBE_NAMES_H

#include "tensor_registry.h"

/* A name of a function: its place in every table of names. */
typedef struct {
    PyObject *name;             /* as written */
    PyObject *text, *function;  /* cut to what a row allows */
    int64_t held;               /* number of the tensor it holds; -1: none */
} bp_name;

/* How often a name was bound at a site. */
typedef struct {
    int slot;
    int64_t times;
} bp_times;

enum { BP_OTHER_SITE, BP_RETURN_SITE, BP_INPLACE_SITE };

/* A site while the program runs, from its SiteFacts. */
typedef struct {
    PyObject *facts, *targets, *how, *scope, *grad_use;
    PyObject *slots; /* name -> slot, of this site's scope */
    int64_t number, runs;
    int *keys, *reads, *operands, *target_slots; /* target_slots: -1 where a target is no plain name */
    int key_count, read_count, operand_count;
    bp_times *times;
    int times_count, times_room;
    char kind, is_inert, top, once;
} bp_site;

typedef struct {
    PyObject_HEAD
    PyObject *writer, *index; /* index: (function, name) -> slot */
    bp_moments *moments;
    bp_rows *rows;
    bp_name *names;
    int count, room;
    int64_t next, site_times;
    bp_site **sites;
    size_t site_count;
    PyObject *facts; /* the list of all SiteFacts */
} bp_names;

extern PyTypeObject bp_names_type;

/* A site's facts, made on its first run; NULL with an exception. */
bp_site *bp_site_at(bp_names *names, int64_t number);
/* The slot of a name written at a site; -1 with an exception. */
int bp_slot_of(bp_names *names, bp_site *site, PyObject *name);
/* A name holds a tensor from now on. */
int bp_bind_name(bp_names *names, bp_site *site, int slot, bp_known *known, const int64_t *parents, int count);
/* The tensors that slots hold, each once, at most `most`; how many. */
int bp_held_by(const bp_names *names, const int *slots, int slot_count, int64_t *found, int most, int already);
/* Whether the `times`-th (from 1) of a kind is kept: the first `in_full`, then 1-2-5 per decade. */
int bp_is_kept(int64_t times, int64_t in_full);

#endif
