/* The gradients of a step that is not taken in full. The Python twin is gradients.py. */

#include <math.h>

#include "kernels.h"
#include "map.h"
#include "tensor_memory.h"
#include "torch_api.h"

#define STRIPE 1024     /* elements of a stripe: a page of float32 */
#define SHORT (1 << 16) /* elements that are always read as a whole */

/* Norm and counts of every `of`-th stripe of a long tensor, from the one numbered `first`. */
static int measure_stripes(const bp_tensor_view *view, int64_t first, int64_t of, bool *whole, bp_measures *one)
{
    if (of < 2 || view->numel <= SHORT || !bp_is_contiguous(view)) {
        return bp_measure_norm(view, one);
    }
    bool fast = view->dtype == BP_F32 && (uintptr_t)view->data % sizeof(float) == 0;
    bp_sums sums = {.min = INFINITY, .max = -INFINITY};
    bp_measures stripe;
    double norm = 0;
    int64_t length = STRIPE, step = 1;
    bp_tensor_view part = *view;
    part.ndim = 1;
    part.sizes = &length;
    part.strides = &step;
    *whole = false;
    *one = (bp_measures){0};
    for (int64_t at = first * STRIPE; at < view->numel; at += of * STRIPE) {
        length = view->numel - at < STRIPE ? view->numel - at : STRIPE;
        part.numel = length;
        part.data = (char *)view->data + at * view->item;
        if (fast) {
            bp_used_kernels()->f32_squares((const float *)part.data, (int)length, &sums);
        } else if (bp_measure(&part, &stripe)) {
            norm = hypot(norm, stripe.finite_norm);
            one->nan += stripe.nan;
            one->inf += stripe.inf;
        }
    }
    one->nan += sums.nan;
    one->inf += sums.above + sums.below;
    one->finite_norm = hypot(norm, sqrt(sums.squares));
    return 1;
}

/* The gradient of a tensor that has one, a new reference; NULL: it has none, or an exception is set. */
static PyObject *gradient_of(PyObject *tensor)
{
    int leaf = bp_flag(tensor, bp_name_is_leaf);
    if (leaf == 0 && (leaf = bp_flag(tensor, bp_name_retains_grad)) == 0) {
        return NULL; /* torch would warn */
    }
    PyObject *gradient = leaf < 0 ? NULL : PyObject_GetAttr(tensor, bp_name_grad);
    if (gradient == Py_None) {
        Py_CLEAR(gradient);
    }
    return gradient;
}

static bool is_inexact(bp_dtype dtype)
{
    return dtype == BP_F32 || dtype == BP_F64 || dtype == BP_F16 || dtype == BP_BF16;
}

typedef struct {
    int64_t first, of, odd;
    double norm;
    bool nan, any, unread, whole;
} gradients_sum;

static int add_gradient(PyObject *gradient, gradients_sum *sum)
{
    bp_tensor_view view;
    bp_measures one;
    if ((PyTypeObject *)Py_TYPE(gradient) != bp_torch.tensor || !bp_view_of(gradient, &view)) {
        sum->unread = true; /* the twin says what is to be done with it */
        return PyErr_Occurred() ? -1 : 0;
    }
    if (is_inexact(view.dtype) && !sum->unread && measure_stripes(&view, sum->first, sum->of, &sum->whole, &one)) {
        sum->norm = hypot(sum->norm, one.finite_norm);
        sum->nan |= one.nan > 0;
        sum->odd += one.nan + one.inf;
    }
    sum->any |= is_inexact(view.dtype);
    return 0;
}

/* Of one list: a byte for each tensor that was not met before, 1 if it has a gradient. */
static int add_list(PyObject *list, bp_map *met, PyObject *present, gradients_sum *sum)
{
    PyObject *all = PySequence_Fast(list, "gradients(lists, first, of)");
    int done = all == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PySequence_Fast_GET_SIZE(all); i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(all, i);
        if (bp_map_get(met, (uintptr_t)tensor) != NULL) {
            continue;
        }
        if (bp_map_set(met, (uintptr_t)tensor, met) < 0) {
            done = -1;
            break;
        }
        Py_INCREF(tensor); /* its class may be the user's, whose code could change the list */
        PyObject *gradient = gradient_of(tensor);
        Py_DECREF(tensor);
        Py_ssize_t size = PyByteArray_GET_SIZE(present);
        if ((gradient == NULL && PyErr_Occurred()) || PyByteArray_Resize(present, size + 1) < 0) {
            done = -1;
        } else {
            PyByteArray_AS_STRING(present)[size] = gradient != NULL;
            done = gradient == NULL ? 0 : add_gradient(gradient, sum);
        }
        Py_XDECREF(gradient);
    }
    Py_XDECREF(all);
    return done;
}

static PyObject *gradients(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *lists;
    long long first, of;
    if (!PyArg_ParseTuple(args, "OLL", &lists, &first, &of)) {
        return NULL;
    }
    if (bp_torch_ready() < 0) {
        return NULL;
    }
    gradients_sum sum = {.first = first, .of = of, .whole = true};
    bp_map met = {NULL, 0, 0};
    PyObject *all = PySequence_Fast(lists, "gradients(lists, first, of)");
    PyObject *present = all == NULL ? NULL : PyByteArray_FromStringAndSize(NULL, 0);
    int done = present == NULL ? -1 : 0;
    Py_ssize_t count = all == NULL ? 0 : PySequence_Fast_GET_SIZE(all);
    for (Py_ssize_t i = 0; done == 0 && i < count; i++) {
        done = add_list(PySequence_Fast_GET_ITEM(all, i), &met, present, &sum);
    }
    bp_map_free(&met);
    Py_XDECREF(all);
    if (done < 0) {
        Py_XDECREF(present);
        return NULL;
    }
    if (sum.unread) {
        return Py_BuildValue("(ONOO)", Py_NotImplemented, present, Py_False, Py_False);
    }
    double norm = sum.nan ? NAN : sum.odd ? INFINITY : sum.norm;
    PyObject *told = sum.any ? PyFloat_FromDouble(norm) : Py_NewRef(Py_None);
    return Py_BuildValue("(NNOO)", told, present, sum.odd ? Py_True : Py_False, sum.whole ? Py_True : Py_False);
}

static PyObject *without_gradient(PyObject *Py_UNUSED(module), PyObject *lists)
{
    PyObject *all = bp_torch_ready() < 0 ? NULL : PySequence_Fast(lists, "without_gradient(lists)");
    Py_ssize_t missing = 0;
    int done = all == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PySequence_Fast_GET_SIZE(all); i++) {
        PyObject *tensors = PySequence_Fast(PySequence_Fast_GET_ITEM(all, i), "without_gradient(lists)");
        done = tensors == NULL ? -1 : 0;
        for (Py_ssize_t k = 0; done == 0 && k < PySequence_Fast_GET_SIZE(tensors); k++) {
            PyObject *tensor = Py_NewRef(PySequence_Fast_GET_ITEM(tensors, k));
            int leaf = bp_flag(tensor, bp_name_is_leaf);
            PyObject *gradient = leaf == 1 ? PyObject_GetAttr(tensor, bp_name_grad) : NULL;
            done = leaf < 0 || (leaf == 1 && gradient == NULL) ? -1 : 0;
            missing += gradient == Py_None;
            Py_XDECREF(gradient);
            Py_DECREF(tensor);
        }
        Py_XDECREF(tensors);
    }
    Py_XDECREF(all);
    return done < 0 ? NULL : PyLong_FromSsize_t(missing);
}

static PyMethodDef methods[] = {
    {"gradients", gradients, METH_VARARGS,
     "gradients(lists, first, of): norm of the gradients (None: none; NotImplemented: not all can be read in place), a "
     "byte for each distinct tensor, 1 if it has one, whether anything was not finite, whether all was read. Of long "
     "ones every `of`-th stripe is read, from the one numbered `first`."},
    {"without_gradient", without_gradient, METH_O, "without_gradient(lists): how many leaves have none."},
    {NULL, NULL, 0, NULL},
};

int bp_add_gradients(PyObject *module) { return PyModule_AddFunctions(module, methods); }
