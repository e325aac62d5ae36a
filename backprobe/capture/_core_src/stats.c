/* Statistics of tensors. */

#include "core.h"

int bp_add_stats(PyObject *module)
{
    return PyModule_AddIntConstant(module, "API", 1);
}
