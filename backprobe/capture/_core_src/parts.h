/* One line for each part, in the order in which they are loaded: `int bp_add_NAME(PyObject *module)`, 0 or -1 with an
   exception set. A part's file declares nothing here; core.h declares the functions by this same list. */
PART(bp_add_reader)
PART(bp_add_statistics)
PART(bp_add_rows)
PART(bp_add_timeline)
PART(bp_add_identities)
PART(bp_add_tensors)
PART(bp_add_hooks)
PART(bp_add_saved)
PART(bp_add_nodes)
PART(bp_add_walk)
PART(bp_add_passes)
