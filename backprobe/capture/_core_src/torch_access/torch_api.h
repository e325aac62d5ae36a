/* What the core asks of torch, looked up once: attributes by interned names, functions, types. */

#ifndef BACKPROBE_TORCH_API_H
#define BACKPROBE_TORCH_API_H

#include "core.h"
#include "state_flags.h"

typedef struct {
    PyTypeObject *tensor, *parameter, *module, *optimizer;
    PyObject *strided, *functorch_wrapped, *legacy_batched, *uninitialized;
    PyObject *sequence_number, *tracing_state, *function_modes, *grad_enabled, *inference_enabled, *autocast_enabled,
        *autocast_dtype;
    PyObject *cpu, *cuda, *inference, *strided_text;
} bp_torch_api;

extern bp_torch_api bp_torch;

/* Every interned name that the core reads, as `bp_name_X`. */
#define BP_NAMES(X) \
    BP_STATE_FLAGS(X) X(_post_accumulate_grad_hooks) X(_version) X(grad) X(grad_fn) X(output_nr) X(layout) \
    X(is_nested) X(is_quantized) X(_is_view) X(_base) X(is_inference) X(untyped_storage) X(_cdata) \
    X(nbytes) X(name) X(number) X(tensors) X(meet) X(refuse) X(has_room) X(row) X(buffer) X(add) \
    X(cut) X(caps) X(training) X(site) X(call) X(creates) X(step) X(elements) X(exact_tensors) \
    X(site_times) X(operation_times) X(function_times) X(call_times) X(walks) X(measures) X(tuple_elements) \
    X(eager_statements) X(flush) X(flush_if_due) X(flush_seconds) X(facts) X(f_back) X(is_cpu) X(is_meta) X(is_conj) X(is_neg) X(device) X(_is_zerotensor) X(dtype) X(shape) X(stride) X(storage_offset) X(made) X(statistic_elements) X(block_elements) X(unseen) X(keeps_call) X(calls) X(label) X(is_library) X(ref) X(went_on) X(bury) X(__compiled_fn) X(__dict__) X(__dataclass_fields__)

#define BP_DECLARE(text) extern PyObject *bp_name_##text;
BP_NAMES(BP_DECLARE)
#undef BP_DECLARE

/* Look everything up, once; 0 or -1 with an exception. torch is imported by then. */
int bp_torch_ready(void);
/* The sequence number that this thread's next node will have; -1 with an exception. */
int64_t bp_sequence_number(void);
/* Something is traced: a read of ours would join the trace. An error counts as not. */
int bp_is_tracing(void);
/* What a call without arguments says: 1, 0; an error counts as 0. */
int bp_truth_of_call(PyObject *function);

/* 1 if autograd records operations now: grad mode is on and inference mode is off, whatever `enable_grad` inside it says. */
int bp_autograd_records(void);
/* A method without arguments, called. */
PyObject *bp_method(PyObject *object, PyObject *name);
/* A bool attribute: 1, 0, or -1 with an exception. */
int bp_flag(PyObject *object, PyObject *name);
/* An int attribute; -1 with an exception. None gives `absent`. */
int64_t bp_integer(PyObject *object, PyObject *name, int64_t absent);

static inline int bp_is_exact(PyObject *value)
{
    return Py_TYPE(value) == bp_torch.tensor || Py_TYPE(value) == bp_torch.parameter;
}

static inline int bp_is_tensor(PyObject *value)
{
    return bp_is_exact(value) || PyType_IsSubtype(Py_TYPE(value), bp_torch.tensor);
}

/* A type whose values a tap passes on at once. */
static inline int bp_is_plain(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBool_Type ||
           value == Py_None || type == &PyRange_Type || type == &PyBytes_Type || type == &PyComplex_Type;
}

#endif
