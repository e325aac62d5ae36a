/* What a Tensor row says of an object itself. */

#ifndef BACKPROBE_DESCRIBE_H
#define BACKPROBE_DESCRIBE_H

#include "tensor_registry.h"

/* Fill in a description; its base is a new reference. 0, or -1 with an exception: then it is empty. */
int bp_describe(PyObject *tensor, bp_description *is);
/* The address and bytes of its storage, asked so that nothing of ours comes to hold it; 0: none, or an exception. */
uintptr_t bp_storage_of(PyObject *tensor, int64_t *bytes);
/* The name of a tensor's device, a new reference. */
PyObject *bp_device_text(PyObject *tensor);
/* Let go of what a description holds. */
void bp_undescribe(bp_description *is);
int bp_describe_ready(void);

#endif
