/* What the core asks of torch, looked up once. */

#include "torch_api.h"

bp_torch_api bp_torch;

#define BP_DEFINE(text) PyObject *bp_name_##text;
BP_NAMES(BP_DEFINE)
#undef BP_DEFINE

/* `root.a.b`, a new reference. */
static PyObject *dotted(PyObject *root, const char *path)
{
    PyObject *text = PyUnicode_FromString(path), *parts = text == NULL ? NULL : PyObject_CallMethod(text, "split", "s", ".");
    PyObject *found = parts == NULL ? NULL : Py_NewRef(root);
    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(parts); i++) {
        PyObject *next = PyObject_GetAttr(found, PyList_GET_ITEM(parts, i));
        Py_DECREF(found);
        found = next;
    }
    Py_XDECREF(parts);
    Py_XDECREF(text);
    return found;
}

int bp_torch_ready(void)
{
    static int ready = 0;
    if (ready) {
        return 0;
    }
    PyObject *torch = PyImport_ImportModule("torch");
    if (torch == NULL) {
        return -1;
    }
    const struct {
        PyObject **slot;
        const char *path;
    } wanted[] = {
        {(PyObject **)&bp_torch.tensor, "Tensor"},
        {(PyObject **)&bp_torch.parameter, "nn.Parameter"},
        {(PyObject **)&bp_torch.module, "nn.Module"},
        {(PyObject **)&bp_torch.optimizer, "optim.Optimizer"},
        {&bp_torch.strided, "strided"},
        {&bp_torch.functorch_wrapped, "_C._functorch.is_functorch_wrapped_tensor"},
        {&bp_torch.legacy_batched, "_C._functorch.is_legacy_batchedtensor"},
        {&bp_torch.uninitialized, "nn.parameter.UninitializedTensorMixin"},
        {&bp_torch.sequence_number, "_C._autograd._get_sequence_nr"},
        {&bp_torch.tracing_state, "_C._get_tracing_state"},
        {&bp_torch.function_modes, "_C._len_torch_function_stack"},
        {&bp_torch.grad_enabled, "is_grad_enabled"},
        {&bp_torch.inference_enabled, "is_inference_mode_enabled"},
        {&bp_torch.autocast_enabled, "is_autocast_enabled"},
        {&bp_torch.autocast_dtype, "get_autocast_dtype"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].slot = dotted(torch, wanted[i].path);
        if (*wanted[i].slot == NULL) {
            Py_DECREF(torch);
            return -1;
        }
    }
    Py_DECREF(torch);
    bp_torch.cpu = PyUnicode_InternFromString("cpu");
    bp_torch.cuda = PyUnicode_InternFromString("cuda");
    bp_torch.inference = PyUnicode_InternFromString("inference");
    bp_torch.strided_text = PyUnicode_InternFromString("strided");
    if (bp_torch.cpu == NULL || bp_torch.cuda == NULL || bp_torch.inference == NULL || bp_torch.strided_text == NULL) {
        return -1;
    }
#define BP_INTERN(text) \
    if ((bp_name_##text = PyUnicode_InternFromString(#text)) == NULL) { \
        return -1; \
    }
    BP_NAMES(BP_INTERN)
#undef BP_INTERN
    ready = 1;
    return 0;
}

int64_t bp_sequence_number(void)
{
    PyObject *answer = PyObject_CallNoArgs(bp_torch.sequence_number);
    if (answer == NULL) {
        return -1;
    }
    int64_t number = PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    return number;
}

int bp_is_tracing(void)
{
    PyObject *state = PyObject_CallNoArgs(bp_torch.tracing_state);
    if (state == NULL) {
        PyErr_Clear();
        return 0;
    }
    int tracing = state != Py_None;
    Py_DECREF(state);
    return tracing;
}

int bp_truth_of_call(PyObject *function)
{
    PyObject *answer = PyObject_CallNoArgs(function);
    int truth = answer == NULL ? -1 : answer == Py_True ? 1 : answer == Py_False ? 0 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (truth < 0) {
        PyErr_Clear();
        return 0;
    }
    return truth;
}

int bp_autograd_records(void)
{
    return bp_truth_of_call(bp_torch.grad_enabled) && !bp_truth_of_call(bp_torch.inference_enabled);
}

PyObject *bp_method(PyObject *object, PyObject *name)
{
    return PyObject_CallMethodNoArgs(object, name);
}

int bp_flag(PyObject *object, PyObject *name)
{
    PyObject *answer = PyObject_GetAttr(object, name);
    if (answer == NULL) {
        return -1;
    }
    int truth = answer == Py_True ? 1 : answer == Py_False ? 0 : PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return truth;
}

int64_t bp_integer(PyObject *object, PyObject *name, int64_t absent)
{
    PyObject *answer = PyObject_GetAttr(object, name);
    if (answer == NULL) {
        return -1;
    }
    int64_t value = answer == Py_None ? absent : PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    return value;
}
