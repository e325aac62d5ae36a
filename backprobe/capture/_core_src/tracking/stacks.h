/* The calls in the user's files that lead to the function that runs now. */

#ifndef BACKPROBE_STACKS_H
#define BACKPROBE_STACKS_H

#include "hot.h"
#include "map.h"

typedef struct {
    PyObject_HEAD
    PyObject *writer, *sites, *sources, *facts; /* sources: the dict of the user's files; facts: the list of sites */
    bp_rows *rows;
    bp_map known; /* (parent, site) to the number above 0 */
    int64_t count;
    bp_map placed; /* instructions whose sites were asked for, as long as no site is added */
    Py_ssize_t placed_at;
} bp_stacks;

extern PyTypeObject bp_stacks_type;

/* A frame that is not the user's, or runs what a compiler made of its function. */
#define BP_NOT_USERS (-3)
/* The site of the statement that a frame is in; -1: none, -2 with an exception. */
int64_t bp_site_of_frame(bp_stacks *stacks, PyFrameObject *frame);
/* The stack of the function that `site` stands in; -1: the user's files did not call it, -2 with an exception. */
int64_t bp_stack_here(bp_stacks *stacks, int64_t site);

#endif
