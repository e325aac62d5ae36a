/* The kernels once more, for the instructions that kernels.c chose by these macros:

   NAME(x)          the function's name for them
   TARGET           the attribute that lets the compiler use them
   WIDTH            bytes of a vector
   LANES            accumulators of each kind in the fast kernels
   MINIMUM, MAXIMUM of two float vectors; of equal or unordered ones the second
   MINIMUM_D, MAXIMUM_D the same of doubles
   COUNT_ZEROS(z, x), COUNT_ZEROS_D(z, x)  adds 1 to each integer of z where x is 0
   HALVES(p)        as many float16 as fit, converted; not defined where there is no such instruction

   Sums are kept in so many lanes that float32 loses nothing that matters: each adds 128 numbers at most. A part whose
   squares overflow or vanish in float32, or that holds what is not finite, is read again by the kernels that compute in
   double and mask. Only vector types of the compiler: no flag changes what the arithmetic means. */

typedef float NAME(vf) __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef double NAME(vd) __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef int32_t NAME(vi) __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef int64_t NAME(vl) __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef float NAME(hf) __attribute__((vector_size(WIDTH / 2), aligned(4), may_alias));
typedef int32_t NAME(hi) __attribute__((vector_size(WIDTH / 2), aligned(4), may_alias));

#define FLOATS (WIDTH / 4)
#define DOUBLES (WIDTH / 8)

/* float32, any content, any number: in double, what is not finite masked out and counted. */
TARGET static void NAME(f32_masked)(const float *p, int n, bp_sums *sums)
{
    typedef NAME(vd) vd;
    typedef NAME(hf) hf;
    typedef NAME(hi) hi;
    vd squares = {0}, sum = {0};
    hi nan = {0}, above = {0}, below = {0}, zeros = {0};
    hi least = (hi){0} + 0x7f800000, most = (hi){0} - 0x00800000; /* +inf, -inf */
    for (int i = 0; i < n; i += DOUBLES) {
        hi bits;
        if (n - i >= DOUBLES) {
            memcpy(&bits, p + i, sizeof bits);
        } else {
            bits = (hi){0} + 0x7fc00000; /* a NaN is masked out and comes off the count again below */
            memcpy(&bits, p + i, (size_t)(n - i) * sizeof(float));
        }
        hi size = bits & 0x7fffffff;
        hi odd = size > 0x7f7fffff;
        hi finite = bits & ~odd;
        vd wide = __builtin_convertvector((hf)finite, vd);
        squares += wide * wide;
        sum += wide;
        nan -= size > 0x7f800000;
        above -= bits == 0x7f800000;
        below -= bits == (hi){0} - 0x00800000;
        zeros -= size == 0;
        hi low = finite | (odd & 0x7f800000), high = finite | (odd & ((hi){0} - 0x00800000));
        hi less = (hf)low < (hf)least, more = (hf)high > (hf)most;
        least = (low & less) | (least & ~less);
        most = (high & more) | (most & ~more);
    }
    for (int k = 0; k < DOUBLES; k++) {
        float low = ((hf)least)[k], high = ((hf)most)[k];
        sums->squares += squares[k];
        sums->sum += sum[k];
        sums->nan += nan[k];
        sums->above += above[k];
        sums->below += below[k];
        sums->zeros += zeros[k];
        sums->min = low < sums->min ? low : sums->min;
        sums->max = high > sums->max ? high : sums->max;
    }
    sums->nan -= (DOUBLES - n % DOUBLES) % DOUBLES;
}

/* So many that a lane takes at most 128. */
TARGET static void NAME(f32_chunk)(const float *p, int n, bp_sums *sums)
{
    typedef NAME(vf) vf;
    typedef NAME(vi) vi;
    int fast = n < 512 ? 0 : n - n % (LANES * FLOATS); /* below it, double costs no more than it is worth */
    if (fast) {
        vf squares[LANES], sum[LANES], least[LANES], most[LANES];
        vi zeros[LANES];
        for (int k = 0; k < LANES; k++) {
            squares[k] = sum[k] = (vf){0};
            zeros[k] = (vi){0};
            least[k] = most[k] = *(const vf *)p;
        }
        for (int i = 0; i < fast; i += LANES * FLOATS) {
#pragma GCC unroll 4
            for (int k = 0; k < LANES; k++) {
                vf x = *(const vf *)(p + i + k * FLOATS);
                squares[k] += x * x;
                sum[k] += x;
                least[k] = MINIMUM(x, least[k]);
                most[k] = MAXIMUM(x, most[k]);
                COUNT_ZEROS(zeros[k], x);
            }
        }
        float low = least[0][0], high = most[0][0];
        double all_squares = 0, total = 0;
        int64_t none = 0;
        for (int k = 1; k < LANES; k++) {
            zeros[0] += zeros[k];
            least[0] = MINIMUM(least[k], least[0]);
            most[0] = MAXIMUM(most[k], most[0]);
        }
        for (int j = 0; j < FLOATS; j++) {
            for (int k = 0; k < LANES; k++) {
                all_squares += squares[k][j];
                total += sum[k][j];
            }
            none += zeros[0][j];
            low = least[0][j] < low ? least[0][j] : low;
            high = most[0][j] > high ? most[0][j] : high;
        }
        float size = -low > high ? -low : high;
        bool fits = isfinite(all_squares) && isfinite(total) && (size >= 1e-15f || none == fast);
        if (fits) {
            sums->squares += all_squares;
            sums->sum += total;
            sums->zeros += none;
            sums->min = low < sums->min ? low : sums->min;
            sums->max = high > sums->max ? high : sums->max;
        } else {
            NAME(f32_masked)(p, fast, sums);
        }
    }
    if (n > fast) {
        NAME(f32_masked)(p + fast, n - fast, sums);
    }
}

TARGET static void NAME(f32)(const float *p, int n, bp_sums *sums)
{
    const int chunk = 128 * LANES * FLOATS;
    for (; n > chunk; n -= chunk, p += chunk) {
        NAME(f32_chunk)(p, chunk, sums);
    }
    NAME(f32_chunk)(p, n, sums);
}

/* The squares of any number; of a part that was read again in double the rest as well, but never its zeros alone. */
TARGET static void NAME(f32_squares)(const float *p, int n, bp_sums *sums)
{
    typedef NAME(vf) vf;
    const int chunk = 128 * LANES * FLOATS;
    for (; n > 0; n -= chunk, p += chunk) {
        int count = n < chunk ? n : chunk, fast = count - count % (LANES * FLOATS);
        vf squares[LANES];
        double total = 0;
        for (int k = 0; k < LANES; k++) {
            squares[k] = (vf){0};
        }
        for (int i = 0; i < fast; i += LANES * FLOATS) {
#pragma GCC unroll 4
            for (int k = 0; k < LANES; k++) {
                vf x = *(const vf *)(p + i + k * FLOATS);
                squares[k] += x * x;
            }
        }
        for (int j = 0; j < FLOATS; j++) {
            for (int k = 0; k < LANES; k++) {
                total += squares[k][j];
            }
        }
        if (!isfinite(total) || total < 1e-24) { /* below it, the squares of others may have vanished */
            uint32_t any = 0;
            for (int i = 0; i < fast; i++) {
                uint32_t bits;
                memcpy(&bits, p + i, sizeof bits);
                any |= bits & 0x7fffffffu;
            }
            fast = any ? 0 : fast;
            total = 0;
        }
        sums->squares += total;
        if (count > fast) {
            NAME(f32_masked)(p + fast, count - fast, sums);
        }
    }
}

TARGET static void NAME(f64_masked)(const double *p, int n, bp_sums *sums)
{
    typedef NAME(vd) vd;
    typedef NAME(vl) vl;
    const int64_t infinity = 0x7ff0000000000000, negative = (int64_t)0xfff0000000000000;
    vd squares = {0}, sum = {0};
    vl nan = {0}, above = {0}, below = {0}, zeros = {0};
    vl least = (vl){0} + infinity, most = (vl){0} + negative;
    for (int i = 0; i < n; i += DOUBLES) {
        vl bits;
        if (n - i >= DOUBLES) {
            memcpy(&bits, p + i, sizeof bits);
        } else {
            bits = (vl){0} + 0x7ff8000000000000;
            memcpy(&bits, p + i, (size_t)(n - i) * sizeof(double));
        }
        vl size = bits & 0x7fffffffffffffff;
        vl odd = size >= infinity;
        vl finite = bits & ~odd;
        vd wide = (vd)finite;
        squares += wide * wide;
        sum += wide;
        nan -= size > infinity;
        above -= bits == infinity;
        below -= bits == negative;
        zeros -= size == 0;
        vl low = finite | (odd & infinity), high = finite | (odd & negative);
        vl less = (vd)low < (vd)least, more = (vd)high > (vd)most;
        least = (low & less) | (least & ~less);
        most = (high & more) | (most & ~more);
    }
    for (int k = 0; k < DOUBLES; k++) {
        double low = ((vd)least)[k], high = ((vd)most)[k];
        sums->squares += squares[k];
        sums->sum += sum[k];
        sums->nan += nan[k];
        sums->above += above[k];
        sums->below += below[k];
        sums->zeros += zeros[k];
        sums->min = low < sums->min ? low : sums->min;
        sums->max = high > sums->max ? high : sums->max;
    }
    sums->nan -= (DOUBLES - n % DOUBLES) % DOUBLES;
}

TARGET static void NAME(f64)(const double *p, int n, bp_sums *sums)
{
    typedef NAME(vd) vd;
    typedef NAME(vl) vl;
    int fast = n < 64 ? 0 : n - n % (LANES * DOUBLES);
    if (fast) {
        vd squares[LANES], sum[LANES], least[LANES], most[LANES];
        vl zeros[LANES];
        for (int k = 0; k < LANES; k++) {
            squares[k] = sum[k] = (vd){0};
            zeros[k] = (vl){0};
            least[k] = most[k] = *(const vd *)p;
        }
        for (int i = 0; i < fast; i += LANES * DOUBLES) {
#pragma GCC unroll 4
            for (int k = 0; k < LANES; k++) {
                vd x = *(const vd *)(p + i + k * DOUBLES);
                squares[k] += x * x;
                sum[k] += x;
                least[k] = MINIMUM_D(x, least[k]);
                most[k] = MAXIMUM_D(x, most[k]);
                COUNT_ZEROS_D(zeros[k], x);
            }
        }
        double low = least[0][0], high = most[0][0], all_squares = 0, total = 0;
        int64_t none = 0;
        for (int k = 0; k < LANES; k++) {
            for (int j = 0; j < DOUBLES; j++) {
                all_squares += squares[k][j];
                total += sum[k][j];
                none += zeros[k][j];
                low = least[k][j] < low ? least[k][j] : low;
                high = most[k][j] > high ? most[k][j] : high;
            }
        }
        if (isfinite(all_squares) && isfinite(total)) {
            sums->squares += all_squares;
            sums->sum += total;
            sums->zeros += none;
            sums->min = low < sums->min ? low : sums->min;
            sums->max = high > sums->max ? high : sums->max;
        } else {
            NAME(f64_masked)(p, fast, sums);
        }
    }
    if (n > fast) {
        NAME(f64_masked)(p + fast, n - fast, sums);
    }
}

/* Integers: exact sums, which the compiler spreads over vectors by itself. No squares: a record keeps no norm of them. */
#define SMALL_INTEGERS(NAME_, TYPE) \
    TARGET static void NAME_(const TYPE *p, int n, bp_sums *sums) \
    { \
        TYPE low = p[0], high = p[0]; \
        int32_t sum = 0, zeros = 0; \
        for (int i = 0; i < n; i++) { \
            low = p[i] < low ? p[i] : low; \
            high = p[i] > high ? p[i] : high; \
            sum += p[i]; \
            zeros += p[i] == 0; \
        } \
        sums->sum += sum; \
        sums->zeros += zeros; \
        sums->min = (double)low < sums->min ? (double)low : sums->min; \
        sums->max = (double)high > sums->max ? (double)high : sums->max; \
    }
#define LARGE_INTEGERS(NAME_, TYPE) \
    TARGET static void NAME_(const TYPE *p, int n, bp_sums *sums) \
    { \
        TYPE low = p[0], high = p[0]; \
        int64_t upper = 0, lower = 0, zeros = 0; \
        for (int i = 0; i < n; i++) { \
            low = p[i] < low ? p[i] : low; \
            high = p[i] > high ? p[i] : high; \
            upper += (int64_t)(p[i] >> (sizeof(TYPE) * 4)); \
            lower += (int64_t)(p[i] & (((TYPE)1 << (sizeof(TYPE) * 4)) - 1)); \
            zeros += p[i] == 0; \
        } \
        sums->sum += (double)upper * (double)((uint64_t)1 << (sizeof(TYPE) * 4)) + (double)lower; \
        sums->zeros += zeros; \
        sums->min = (double)low < sums->min ? (double)low : sums->min; \
        sums->max = (double)high > sums->max ? (double)high : sums->max; \
    }

LARGE_INTEGERS(NAME(i64), int64_t)
LARGE_INTEGERS(NAME(i32), int32_t)
LARGE_INTEGERS(NAME(u64), uint64_t)
LARGE_INTEGERS(NAME(u32), uint32_t)
SMALL_INTEGERS(NAME(i16), int16_t)
SMALL_INTEGERS(NAME(u16), uint16_t)
SMALL_INTEGERS(NAME(i8), int8_t)
SMALL_INTEGERS(NAME(u8), uint8_t)

TARGET static void NAME(widen_bf16)(const uint16_t *p, int n, float *to)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)p[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Without an instruction for it by integers, so that it is exact everywhere: a denormal half is a count of 2^-24. */
TARGET static void NAME(widen_f16)(const uint16_t *p, int n, float *to)
{
    int i = 0;
#ifdef HALVES
    for (; i + FLOATS <= n; i += FLOATS) {
        *(NAME(vf) *)(to + i) = HALVES(p + i);
    }
#endif
    for (; i < n; i++) {
        uint32_t half = p[i], sign = (half & 0x8000u) << 16, rank = half & 0x7c00u, rest = (half & 0x7fffu) << 13;
        float count = (float)(int32_t)(half & 0x3ffu) * 0x1p-24f;
        uint32_t small;
        memcpy(&small, &count, sizeof small);
        uint32_t bits = rank == 0 ? small : rank == 0x7c00u ? rest | 0x7f800000u : rest + 0x38000000u;
        bits |= sign;
        memcpy(to + i, &bits, sizeof bits);
    }
}

static const bp_kernels NAME(kernels) = {
    TEXT(ISA), NAME(f32), NAME(f32_squares), NAME(f64), NAME(i64), NAME(i32), NAME(i16), NAME(i8),
    NAME(u64), NAME(u32), NAME(u16), NAME(u8), NAME(widen_f16), NAME(widen_bf16),
};

#undef FLOATS
#undef DOUBLES
#undef SMALL_INTEGERS
#undef LARGE_INTEGERS
#undef ISA
#undef TARGET
#undef WIDTH
#undef LANES
#undef MINIMUM
#undef MAXIMUM
#undef MINIMUM_D
#undef MAXIMUM_D
#undef COUNT_ZEROS
#undef HALVES
#undef COUNT_ZEROS_D
