/* One block of elements reduced, by the widest instructions the machine has. */

#ifndef BACKPROBE_KERNELS_H
#define BACKPROBE_KERNELS_H

#include <stdint.h>

#define BP_BLOCK 4096 /* elements: 16 KiB of float32, which stays in a first-level cache for a second pass */

/* What is added up: of the finite elements but for the counts. min > max while there was no finite one. */
typedef struct {
    double squares, sum, min, max;
    int64_t nan, above, below, zeros; /* above, below: infinities */
} bp_sums;

/* Each adds `n` elements (at most BP_BLOCK, but of `f32_squares`) to `sums`; `f32_squares` no sum, extremes and zeros. */
typedef struct bp_kernels {
    const char *name;
    void (*f32)(const float *, int, bp_sums *);
    void (*f32_squares)(const float *, int, bp_sums *);
    void (*f64)(const double *, int, bp_sums *);
    void (*i64)(const int64_t *, int, bp_sums *);
    void (*i32)(const int32_t *, int, bp_sums *);
    void (*i16)(const int16_t *, int, bp_sums *);
    void (*i8)(const int8_t *, int, bp_sums *);
    void (*u64)(const uint64_t *, int, bp_sums *);
    void (*u32)(const uint32_t *, int, bp_sums *);
    void (*u16)(const uint16_t *, int, bp_sums *);
    void (*u8)(const uint8_t *, int, bp_sums *);
    void (*widen_f16)(const uint16_t *, int, float *); /* converts, exactly */
    void (*widen_bf16)(const uint16_t *, int, float *);
} bp_kernels;

/* The kernels of a name ("avx512", "avx2", "sse2", "plain"), NULL if the machine has not got them; those of the widest
   instructions for NULL. */
const bp_kernels *bp_kernels_named(const char *name);

#endif
