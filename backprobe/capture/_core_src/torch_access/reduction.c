/* A tensor reduced to eight numbers, in blocks, whatever its layout. The Python twin is tensor_statistics.py. */

#include "kernels.h"
#include "tensor_memory.h"

#include <math.h>
#include <string.h>

static const bp_kernels *kernels;

/* ---- one block: contiguous, at most BP_BLOCK elements ---- */

/* A complex number is zero if both parts are, infinite if one is, else NaN if one is. */
static void complex_counts(double re, double im, bp_sums *sums)
{
    if (isinf(re) || isinf(im)) {
        sums->above++;
    } else if (isnan(re) || isnan(im)) {
        sums->nan++;
    } else if (re == 0 && im == 0) {
        sums->zeros++;
    }
}

static void complex_block(const char *p, int n, bp_dtype dtype, bp_sums *sums)
{
    bp_sums parts = {.min = INFINITY, .max = -INFINITY};
    for (int from = 0; from < 2 * n; from += BP_BLOCK) {
        int count = 2 * n - from < BP_BLOCK ? 2 * n - from : BP_BLOCK;
        if (dtype == BP_C64) {
            kernels->f32((const float *)p + from, count, &parts);
        } else {
            kernels->f64((const double *)p + from, count, &parts);
        }
    }
    sums->squares += parts.squares;
    double size = fmax(-parts.min, parts.max);
    sums->max = size > sums->max ? size : sums->max; /* tells later whether squares overflowed or vanished */
    if (parts.zeros + parts.nan + parts.above + parts.below == 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        if (dtype == BP_C64) {
            complex_counts(((const float *)p)[2 * i], ((const float *)p)[2 * i + 1], sums);
        } else {
            complex_counts(((const double *)p)[2 * i], ((const double *)p)[2 * i + 1], sums);
        }
    }
}

static void block(const char *p, int n, bp_dtype dtype, bp_sums *sums)
{
    float wide[BP_BLOCK] __attribute__((aligned(64)));
    switch (dtype) {
    case BP_F32: kernels->f32((const float *)p, n, sums); break;
    case BP_F64: kernels->f64((const double *)p, n, sums); break;
    case BP_F16:
        kernels->widen_f16((const uint16_t *)p, n, wide);
        kernels->f32(wide, n, sums);
        break;
    case BP_BF16:
        kernels->widen_bf16((const uint16_t *)p, n, wide);
        kernels->f32(wide, n, sums);
        break;
    case BP_C64:
    case BP_C128: complex_block(p, n, dtype, sums); break;
    case BP_I64: kernels->i64((const int64_t *)p, n, sums); break;
    case BP_I32: kernels->i32((const int32_t *)p, n, sums); break;
    case BP_I16: kernels->i16((const int16_t *)p, n, sums); break;
    case BP_I8: kernels->i8((const int8_t *)p, n, sums); break;
    case BP_U64: kernels->u64((const uint64_t *)p, n, sums); break;
    case BP_U32: kernels->u32((const uint32_t *)p, n, sums); break;
    case BP_U16: kernels->u16((const uint16_t *)p, n, sums); break;
    default: kernels->u8((const uint8_t *)p, n, sums); break;
    }
}

/* ---- any layout, block by block ---- */

static void along(const char *p, int64_t n, bp_dtype dtype, int item, bp_visit visit, void *state)
{
    while (n > 0) {
        int count = n > BP_BLOCK ? BP_BLOCK : (int)n;
        visit(p, count, dtype, state);
        p += (size_t)count * (size_t)item;
        n -= count;
    }
}

/* Sizes and strides in which no dimension is 1, repeats or could be one with its neighbour; by falling stride if
   `any_order`. Returns the number of dimensions; `*times` is how often each element is repeated. */
static int simplified(const bp_tensor_view *view, bool any_order, int64_t *size, int64_t *stride, int64_t *times)
{
    int count = 0;
    *times = 1;
    for (int i = 0; i < view->ndim; i++) {
        if (view->sizes[i] == 1) {
            continue;
        }
        if (any_order && view->strides[i] == 0) {
            *times *= view->sizes[i];
            continue;
        }
        size[count] = view->sizes[i];
        stride[count++] = view->strides[i];
    }
    for (int i = 1; any_order && i < count; i++) {
        for (int k = i; k > 0 && stride[k] > stride[k - 1]; k--) {
            int64_t other = stride[k];
            stride[k] = stride[k - 1];
            stride[k - 1] = other;
            other = size[k];
            size[k] = size[k - 1];
            size[k - 1] = other;
        }
    }
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept && stride[kept - 1] == stride[i] * size[i]) {
            size[kept - 1] *= size[i];
            stride[kept - 1] = stride[i];
        } else {
            size[kept] = size[i];
            stride[kept++] = stride[i];
        }
    }
    return kept;
}

/* Collects `n` elements that lie `step` bytes apart. */
static void gathered(char *to, const char *from, int64_t n, int64_t step, int item)
{
#define GATHER(TYPE) \
    for (int64_t i = 0; i < n; i++) { \
        memcpy(to + i * (int64_t)sizeof(TYPE), from + i * step, sizeof(TYPE)); \
    }
    switch (item) {
    case 1: GATHER(uint8_t) break;
    case 2: GATHER(uint16_t) break;
    case 4: GATHER(uint32_t) break;
    case 8: GATHER(uint64_t) break;
    default: GATHER(uint64_t[2]) break;
    }
#undef GATHER
}

/* Visits every element once and returns how often each counts. Never allocates, never copies more than a block. */
int64_t bp_each_block(const bp_tensor_view *view, bool any_order, bp_visit visit, void *state)
{
    int64_t size[BP_MOST_DIMENSIONS], stride[BP_MOST_DIMENSIONS], at[BP_MOST_DIMENSIONS] = {0}, times;
    int dims = simplified(view, any_order, size, stride, &times), item = view->item;
    if (dims == 0) {
        char one[16] __attribute__((aligned(16)));
        memcpy(one, view->data, (size_t)item);
        visit(one, 1, view->dtype, state);
        return times;
    }
    int64_t inner = size[dims - 1], step = stride[dims - 1] * item;
    bool aligned = (uintptr_t)view->data % (uintptr_t)(item < 8 ? item : 8) == 0; /* torch.frombuffer takes any address */
    if (aligned && step == item && (dims == 1 || inner >= 512)) { /* rows long enough to be read where they lie */
        const char *row = view->data;
        for (;;) {
            along(row, inner, view->dtype, item, visit, state);
            int d = dims - 2;
            for (; d >= 0 && ++at[d] == size[d]; d--) {
                row -= (at[d] - 1) * stride[d] * item;
                at[d] = 0;
            }
            if (d < 0) {
                return times;
            }
            row += stride[d] * item;
        }
    }
    char buffer[BP_BLOCK * 8] __attribute__((aligned(64)));
    int64_t room = (int64_t)sizeof buffer / item < BP_BLOCK ? (int64_t)sizeof buffer / item : BP_BLOCK, filled = 0;
    const char *row = view->data;
    for (;;) {
        for (int64_t done = 0; done < inner;) {
            int64_t count = room - filled < inner - done ? room - filled : inner - done;
            if (step == item) {
                memcpy(buffer + filled * item, row + done * step, (size_t)(count * item));
            } else {
                gathered(buffer + filled * item, row + done * step, count, step, item);
            }
            filled += count;
            done += count;
            if (filled == room) {
                visit(buffer, (int)filled, view->dtype, state);
                filled = 0;
            }
        }
        int d = dims - 2;
        for (; d >= 0 && ++at[d] == size[d]; d--) {
            row -= (at[d] - 1) * stride[d] * item;
            at[d] = 0;
        }
        if (d < 0) {
            break;
        }
        row += stride[d] * item;
    }
    if (filled) {
        visit(buffer, (int)filled, view->dtype, state);
    }
    return times;
}

/* ---- squares that no double holds ---- */

typedef struct {
    double scale, squares;
} scaled_sums;

static void scaled_block(const char *p, int n, bp_dtype dtype, void *state)
{
    scaled_sums *sums = state;
    int count = dtype == BP_C128 ? 2 * n : n;
    for (int i = 0; i < count; i++) {
        double x = ((const double *)p)[i] * sums->scale;
        sums->squares += isfinite(x) ? x * x : 0;
    }
}

/* sqrt of the sum of squares; a second pass where squares of doubles overflowed, or are too small to be exact. */
static double norm_of(const bp_tensor_view *view, const bp_sums *sums, int64_t times)
{
    double size = fmax(-sums->min, sums->max);
    bool wide = view->dtype == BP_F64 || view->dtype == BP_C128;
    if (wide && size > 0 && (isinf(sums->squares) || size < 1e-140)) {
        int exponent;
        frexp(size, &exponent);
        scaled_sums scaled = {ldexp(1.0, exponent < -1000 ? 1000 : -exponent), 0}; /* 2^1074 would be infinite */
        bp_each_block(view, true, scaled_block, &scaled);
        return sqrt(scaled.squares * (double)times) / scaled.scale;
    }
    return sqrt(sums->squares * (double)times);
}

/* ---- the eight numbers ---- */

static void sum_block(const char *p, int n, bp_dtype dtype, void *state)
{
    block(p, n, dtype, state);
}

int bp_measure(const bp_tensor_view *view, bp_measures *out)
{
    bp_sums sums = {.min = INFINITY, .max = -INFINITY};
    if (view->numel == 0) {
        return 0;
    }
    int64_t times = bp_each_block(view, true, sum_block, &sums);
    bool real = view->dtype != BP_C64 && view->dtype != BP_C128, some = sums.min <= sums.max;
    out->nan = sums.nan * times;
    out->inf = (sums.above + sums.below) * times;
    out->zeros = sums.zeros * times;
    out->counted = view->numel;
    out->has_norm = view->dtype <= BP_C128;
    out->has_sum = real;
    out->finite_norm = out->has_norm ? norm_of(view, &sums, times) : 0;
    out->norm = out->nan ? NAN : out->inf ? INFINITY : out->finite_norm;
    double sum = sums.sum * (double)times;
    out->sum = out->nan || (sums.above && sums.below) ? NAN : sums.above ? INFINITY : sums.below ? -INFINITY : sum;
    out->min = sums.below ? -INFINITY : some ? sums.min : sums.above ? INFINITY : NAN;
    out->max = sums.above ? INFINITY : some ? sums.max : sums.below ? -INFINITY : NAN;
    if (view->neg) {
        double low = out->min;
        out->sum = -out->sum;
        out->min = -out->max;
        out->max = -low;
    }
    return 1;
}

#define FEWEST 1024 /* elements whose place is remembered */

int bp_place_of(const bp_tensor_view *view, int64_t version, bp_measured_at *place)
{
    int64_t last = 0;
    place->data = NULL;
    if (view->numel < FEWEST || view->conj || view->neg || version < 0) {
        return 0;
    }
    for (int i = 0; i < view->ndim; i++) {
        if (view->sizes[i] > 1 && view->strides[i] <= 0) {
            return 0;
        }
        last += view->sizes[i] > 1 ? (view->sizes[i] - 1) * view->strides[i] : 0;
    }
    if (last + 1 != view->numel) {
        return 0;
    }
    uint64_t samples = 0xCBF29CE484222325ULL;
    for (int64_t i = 0; i < 64; i++) {
        const unsigned char *at = (const unsigned char *)view->data + (i * view->numel / 64) * view->item;
        for (int byte = 0; byte < view->item; byte++) {
            samples = (samples ^ at[byte]) * 0x100000001B3ULL;
        }
    }
    *place = (bp_measured_at){view->data, view->numel, version, samples, view->dtype};
    return 1;
}

int bp_stats(const bp_tensor_view *view, const bp_limits *limits, bp_row *row)
{
    bp_measures all;
    bp_tensor_view part;
    int64_t size[BP_MOST_DIMENSIONS], one = 1;
    row->sampled = view->numel > limits->statistic_elements;
    if (row->sampled) {
        part = *view;
        if (bp_is_contiguous(view)) {
            part.ndim = 1;
            part.numel = limits->block_elements < view->numel ? limits->block_elements : view->numel;
            part.sizes = &part.numel;
            part.strides = &one;
        } else {
            memcpy(size, view->sizes, (size_t)view->ndim * sizeof *size);
            part.numel /= size[0];
            size[0] = 1;
            part.sizes = size;
        }
        view = &part;
    }
    if (!bp_measure(view, &all)) {
        row->counted = 0;
        return 0;
    }
    row->norm = (float)all.norm;
    row->sum = (float)all.sum;
    row->min = (float)all.min;
    row->max = (float)all.max;
    row->nan = all.nan;
    row->inf = all.inf;
    row->zeros = all.zeros;
    row->counted = all.counted;
    row->has_norm = all.has_norm;
    row->has_sum = all.has_sum;
    return 1;
}

/* ---- elements ---- */

typedef struct {
    char *to;
    int item;
} copying;

static void copy_block(const char *p, int n, bp_dtype Py_UNUSED(dtype), void *state)
{
    copying *copy = state;
    size_t bytes = (size_t)n * (size_t)copy->item;
    memcpy(copy->to, p, bytes);
    copy->to += bytes;
}

/* Negation as arithmetic has it: the sign bit of a float, the two's complement of an integer. */
static void negated(char *p, int64_t n, bp_dtype dtype, bool every_other)
{
    int64_t step = every_other ? 2 : 1;
    for (int64_t i = every_other; i < n; i += step) {
        switch (dtype) {
        case BP_F64: ((uint64_t *)p)[i] ^= 0x8000000000000000u; break;
        case BP_F32: ((uint32_t *)p)[i] ^= 0x80000000u; break;
        case BP_F16:
        case BP_BF16: ((uint16_t *)p)[i] ^= 0x8000u; break;
        case BP_I64:
        case BP_U64: ((uint64_t *)p)[i] = -((uint64_t *)p)[i]; break;
        case BP_I32:
        case BP_U32: ((uint32_t *)p)[i] = -((uint32_t *)p)[i]; break;
        case BP_I16:
        case BP_U16: ((uint16_t *)p)[i] = (uint16_t)-((uint16_t *)p)[i]; break;
        default: ((uint8_t *)p)[i] = (uint8_t)-((uint8_t *)p)[i]; break;
        }
    }
}

void bp_elements(const bp_tensor_view *view, char *out)
{
    if (view->numel == 0) {
        return;
    }
    if (bp_is_contiguous(view)) {
        memcpy(out, view->data, (size_t)view->numel * (size_t)view->item);
    } else {
        copying copy = {out, view->item};
        bp_each_block(view, false, copy_block, &copy);
    }
    bool complex = view->dtype == BP_C64 || view->dtype == BP_C128;
    bp_dtype part = view->dtype == BP_C64 ? BP_F32 : view->dtype == BP_C128 ? BP_F64 : view->dtype;
    int64_t parts = complex ? 2 * view->numel : view->numel;
    if (view->conj) {
        negated(out, parts, part, true);
    }
    if (view->neg) {
        negated(out, parts, part, false);
    }
}

bool bp_is_small(const bp_tensor_view *view, int64_t most)
{
    int64_t extent = 1;
    for (int i = 0; i < view->ndim && view->numel == 0; i++) {
        extent *= view->sizes[i] > 1 ? view->sizes[i] : 1;
        if (extent > most) {
            return false;
        }
    }
    return view->numel <= most;
}

int bp_read(PyObject *tensor, const bp_limits *limits, int64_t most, bp_row *row, char *raw, int64_t *size)
{
    bp_tensor_view view;
    *size = -1;
    if (!bp_view_of(tensor, &view)) {
        return 0;
    }
    if (bp_is_small(&view, most)) {
        bp_elements(&view, raw);
        *size = view.numel * view.item;
    }
    if (!bp_stats(&view, limits, row)) {
        row->counted = 0;
    }
    return 1;
}

const bp_kernels *bp_use_kernels(const char *name)
{
    const bp_kernels *found = bp_kernels_named(name);
    if (found != NULL) {
        kernels = found;
    }
    return found;
}

const bp_kernels *bp_used_kernels(void)
{
    return kernels;
}
