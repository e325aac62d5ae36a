/* The statistics for Python: what tensor_statistics.py and tensor_memory.py call, and what their tests compare. */

#include "kernels.h"
#include "tensor_memory.h"

#include <math.h>
#include <string.h>

#define BINS 32
#define LOWEST (-40) /* the first bin begins at 2^-40, each spans two octaves, the last one ends at 2^24 */

/* ---- statistics, elements, norms ---- */

static PyObject *number(bool there, float value)
{
    return there ? PyFloat_FromDouble(isnan(value) ? NAN : (double)value) : Py_NewRef(Py_None);
}

static PyObject *statistics(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        return PyErr_Format(PyExc_TypeError, "statistics(tensor, statistic_elements, block_elements)");
    }
    bp_limits limits = {PyLong_AsLongLong(args[1]), PyLong_AsLongLong(args[2])};
    if (PyErr_Occurred()) {
        return NULL;
    }
    bp_tensor_view view;
    bp_row row;
    if (!bp_view_of(args[0], &view) || !bp_stats(&view, &limits, &row)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue(
        "(NNNNLLLLO)", number(row.has_norm, row.norm), number(row.has_sum, row.sum), number(row.has_sum, row.min),
        number(row.has_sum, row.max), (long long)row.nan, (long long)row.inf, (long long)row.zeros,
        (long long)row.counted, row.sampled ? Py_True : Py_False);
}

static PyObject *elements(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "elements(tensor, most)");
    }
    int64_t most = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    bp_tensor_view view;
    if (!bp_view_of(args[0], &view)) {
        return Py_NewRef(Py_NotImplemented);
    }
    if (!bp_is_small(&view, most)) {
        Py_RETURN_NONE;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, view.numel * view.item);
    if (bytes != NULL) {
        bp_elements(&view, PyBytes_AS_STRING(bytes));
    }
    return bytes;
}

#define STRETCH (1 << 24) /* elements that are squared in one call */

/* Norm and counts of one tensor: of float32 that lies in one piece nothing but the squares is computed. */
int bp_measure_norm(const bp_tensor_view *view, bp_measures *one)
{
    if (view->dtype != BP_F32 || !bp_is_contiguous(view) || (uintptr_t)view->data % sizeof(float) || !view->numel) {
        return bp_measure(view, one);
    }
    bp_sums sums = {.min = INFINITY, .max = -INFINITY};
    for (int64_t done = 0; done < view->numel; done += STRETCH) {
        int64_t left = view->numel - done;
        bp_used_kernels()->f32_squares((const float *)view->data + done, (int)(left < STRETCH ? left : STRETCH), &sums);
    }
    one->finite_norm = sqrt(sums.squares);
    one->nan = sums.nan;
    one->inf = sums.above + sums.below;
    return 1;
}

static PyObject *norms(PyObject *Py_UNUSED(module), PyObject *tensors)
{
    PyObject *all = PySequence_Fast(tensors, "norms(tensors)");
    PyObject *unread = all == NULL ? NULL : PyList_New(0);
    double norm = 0;
    int64_t nan = 0, inf = 0;
    for (Py_ssize_t i = 0; unread != NULL && i < PySequence_Fast_GET_SIZE(all); i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(all, i);
        bp_tensor_view view;
        bp_measures one;
        if (!bp_view_of(tensor, &view)) {
            if (PyList_Append(unread, tensor) < 0) {
                Py_CLEAR(unread);
            }
        } else if (bp_measure_norm(&view, &one)) {
            norm = hypot(norm, one.finite_norm);
            nan += one.nan;
            inf += one.inf;
        }
    }
    Py_XDECREF(all);
    if (unread == NULL) {
        return NULL;
    }
    return Py_BuildValue("(dLN)", nan ? NAN : inf ? INFINITY : norm, (long long)(nan + inf), unread);
}

/* ---- histogram of sizes ---- */

typedef struct {
    int64_t by_exponent[256]; /* of float32's exponents; 0 below all of them, 255 not finite */
    int64_t zeros;
} sizes;

static void count_floats(const float *p, int n, sizes *all)
{
    uint32_t table[4][256];
    memset(table, 0, sizeof table);
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, p + i, sizeof bits);
        table[i & 3][bits >> 23 & 255]++;
        all->zeros += (bits & 0x7fffffffu) == 0;
    }
    for (int e = 0; e < 256; e++) {
        all->by_exponent[e] += (int64_t)table[0][e] + table[1][e] + table[2][e] + table[3][e];
    }
}

static void count_double(double x, sizes *all)
{
    int exponent;
    if (!isfinite(x)) {
        all->by_exponent[255]++;
    } else if (x == 0) {
        all->by_exponent[0]++;
        all->zeros++;
    } else {
        frexp(x, &exponent);
        exponent += 126; /* 1.0 is 0.5 x 2^1 to frexp, and has 127 in a float32 */
        all->by_exponent[exponent < 0 ? 0 : exponent > 254 ? 254 : exponent]++;
    }
}

static void sizes_block(const char *p, int n, bp_dtype dtype, void *state)
{
    float wide[BP_BLOCK] __attribute__((aligned(64)));
    sizes *all = state;
#define DOUBLES(TYPE) \
    for (int i = 0; i < n; i++) { \
        count_double((double)((const TYPE *)p)[i], all); \
    } \
    break
    switch (dtype) {
    case BP_F32: count_floats((const float *)p, n, all); break;
    case BP_F16:
        bp_used_kernels()->widen_f16((const uint16_t *)p, n, wide);
        count_floats(wide, n, all);
        break;
    case BP_BF16:
        bp_used_kernels()->widen_bf16((const uint16_t *)p, n, wide);
        count_floats(wide, n, all);
        break;
    case BP_F64: DOUBLES(double);
    case BP_I64: DOUBLES(int64_t);
    case BP_I32: DOUBLES(int32_t);
    case BP_I16: DOUBLES(int16_t);
    case BP_I8: DOUBLES(int8_t);
    case BP_U64: DOUBLES(uint64_t);
    case BP_U32: DOUBLES(uint32_t);
    case BP_U16: DOUBLES(uint16_t);
    default: DOUBLES(uint8_t);
    }
#undef DOUBLES
}

static PyObject *histogram(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    bp_tensor_view view;
    sizes all = {{0}, 0};
    if (!bp_view_of(tensor, &view) || view.numel == 0 || view.dtype == BP_C64 || view.dtype == BP_C128) {
        Py_RETURN_NONE;
    }
    int64_t times = bp_each_block(&view, true, sizes_block, &all);
    int64_t bins[BINS] = {0}, below = 0, above = 0;
    for (int e = 0; e < 255; e++) {
        int bin = e - 127 - LOWEST;
        if (bin < 0) {
            below += all.by_exponent[e];
        } else if (bin >= 2 * BINS) {
            above += all.by_exponent[e];
        } else {
            bins[bin / 2] += all.by_exponent[e];
        }
    }
    PyObject *counts = PyTuple_New(BINS);
    for (int i = 0; counts != NULL && i < BINS; i++) {
        PyObject *one = PyLong_FromLongLong(bins[i] * times);
        if (one == NULL) {
            Py_CLEAR(counts);
            break;
        }
        PyTuple_SET_ITEM(counts, i, one);
    }
    if (counts == NULL) {
        return NULL;
    }
    return Py_BuildValue(
        "(NLLLL)", counts, (long long)(all.zeros * times), (long long)((below - all.zeros) * times),
        (long long)(above * times), (long long)(all.by_exponent[255] * times));
}

/* ---- the choice of instructions ---- */

static PyObject *use_instructions(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
    if (text == NULL && name != Py_None) {
        return NULL;
    }
    const bp_kernels *used = bp_use_kernels(text);
    if (used == NULL) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(used->name);
}

static PyMethodDef methods[] = {
    {"statistics", (PyCFunction)(void (*)(void))statistics, METH_FASTCALL,
     "statistics(tensor, statistic_elements, block_elements): norm, sum, min, max, nan, inf, zeros, counted, sampled."},
    {"elements", (PyCFunction)(void (*)(void))elements, METH_FASTCALL,
     "elements(tensor, most): bytes; None if there are more; NotImplemented if they cannot be read in place."},
    {"norms", norms, METH_O, "norms(tensors): L2 norm of all, elements not finite, tensors that could not be read."},
    {"histogram", histogram, METH_O,
     "histogram(tensor): counts by size in bins of two octaves from 2^-40, then zeros, below, above, not finite."},
    {"use_instructions", use_instructions, METH_O, "Use avx512, avx2, sse2 or plain; None for the widest there is."},
    {NULL, NULL, 0, NULL},
};

int bp_add_statistics(PyObject *module)
{
    bp_use_kernels(NULL);
    if (PyModule_AddIntConstant(module, "API", 4) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, methods);
}
