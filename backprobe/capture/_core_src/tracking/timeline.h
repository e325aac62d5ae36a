/* Threads, their timelines, and moments, as the other parts see them. */

#ifndef BACKPROBE_TIMELINE_H
#define BACKPROBE_TIMELINE_H

#include "hot.h"
#include "stacks.h"

/* A range of sequence numbers that begins at `low` and ends where the next one begins. */
typedef struct {
    int64_t low, site, call, module_call;
} bp_range;

/* A module call in progress; one that is not recorded (`own` 0) carries the number of the one around it. */
typedef struct {
    int64_t number, module, k, parent, site, lo;
    PyObject *chain;
    char own, training, grad_mode, recompute;
} bp_opened;

typedef struct {
    PyObject_HEAD
    int64_t thread, last;
    uint64_t state; /* id of the PyThreadState it belongs to */
    PyObject *calls, *entries, *grad_bases;
    bp_range *ranges;
    size_t range_count, range_room;
    bp_opened *opened;
    size_t opened_count, opened_room;
    size_t library;   /* see the twin */
    char modules_ran;
} bp_timeline;

typedef struct {
    PyObject_HEAD
    PyObject *writer;
    bp_timeline **all;
    size_t count;
    unsigned long main;
} bp_threads;

typedef struct {
    const char *kind;
    PyObject *autocast; /* its text, or None; NULL: no moment was written yet */
    int64_t number, time_ns, k, site, thread, module_call, step, stack;
    int grad_mode, inference_mode;
} bp_moment;

typedef struct {
    PyObject_HEAD
    bp_threads *threads;
    bp_stacks *stacks;
    bp_rows *rows;
    PyObject *writer;
    int64_t last, steps;
    int64_t start_ns;
    int pending;          /* the open statement has no moment yet */
    int open;             /* a statement is open, at `open_site` */
    int64_t open_site;
    bp_moment row; /* the newest one as it was written */
} bp_moments;

extern PyTypeObject bp_timeline_type, bp_threads_type, bp_moments_type;

/* This thread's timeline, borrowed; NULL with an exception. */
bp_timeline *bp_here(bp_threads *threads);
/* Give the numbers issued since the last tap to a statement (-1: none); the next number, or -1 with an exception. */
int64_t bp_close(bp_timeline *timeline, int64_t site);
/* The tensors were compared with their last state; a library's module that is open goes on. */
static inline void bp_compared(bp_timeline *timeline)
{
    timeline->modules_ran = timeline->opened_count > 0 && timeline->opened_count == timeline->library;
}
/* The innermost open module call, -1 if there is none. */
static inline int64_t bp_module_call(const bp_timeline *timeline)
{
    return timeline->opened_count ? timeline->opened[timeline->opened_count - 1].number : -1;
}
/* The moment was written inside its statement, where the modes may have been others: now they are its own. */
int bp_moment_again(bp_moments *moments);
/* A statement is at its tap: its moment is written once something is known of it. */
static inline int bp_statement(bp_moments *moments, int64_t site)
{
    if (!moments->pending && moments->open && moments->open_site == site) {
        return bp_moment_again(moments);
    }
    moments->pending = moments->open = 1;
    moments->open_site = site;
    return 0;
}
static inline void bp_close_statement(bp_moments *moments)
{
    moments->pending = moments->open = 0;
}
int64_t bp_now_ns(void);

#endif
