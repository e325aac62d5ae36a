/* The kernels of kernels_body.h, compiled for each set of instructions, and the choice among them at run time.

   By attributes of single functions, so that no flag of the build decides it and nothing wider than the machine has is
   ever executed. */

#include "kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define NAME(x) JOIN(x, ISA)

/* Any machine: the compiler's vectors of 16 bytes, chosen among by masks. */
#define SELECT(INT, FLOAT, a, b, op) \
    ({ \
        INT chosen = (INT)((a) op (b)); \
        (FLOAT)(((INT)(a) & chosen) | ((INT)(b) & ~chosen)); \
    })
#define ISA plain
#define TARGET
#define WIDTH 16
#define LANES 2
#define MINIMUM(a, b) SELECT(NAME(vi), NAME(vf), a, b, <)
#define MAXIMUM(a, b) SELECT(NAME(vi), NAME(vf), a, b, >)
#define MINIMUM_D(a, b) SELECT(NAME(vl), NAME(vd), a, b, <)
#define MAXIMUM_D(a, b) SELECT(NAME(vl), NAME(vd), a, b, >)
#define COUNT_ZEROS(z, x) (z -= (x) == 0)
#define COUNT_ZEROS_D(z, x) (z -= (x) == 0)
#include "kernels_body.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define ISA sse2
#define TARGET
#define WIDTH 16
#define LANES 2
#define MINIMUM(a, b) ((NAME(vf))_mm_min_ps((__m128)(a), (__m128)(b)))
#define MAXIMUM(a, b) ((NAME(vf))_mm_max_ps((__m128)(a), (__m128)(b)))
#define MINIMUM_D(a, b) ((NAME(vd))_mm_min_pd((__m128d)(a), (__m128d)(b)))
#define MAXIMUM_D(a, b) ((NAME(vd))_mm_max_pd((__m128d)(a), (__m128d)(b)))
#define COUNT_ZEROS(z, x) (z -= (x) == 0)
#define COUNT_ZEROS_D(z, x) (z -= (x) == 0)
#include "kernels_body.h"

#define ISA avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define WIDTH 32
#define LANES 2
#define MINIMUM(a, b) ((NAME(vf))_mm256_min_ps((__m256)(a), (__m256)(b)))
#define MAXIMUM(a, b) ((NAME(vf))_mm256_max_ps((__m256)(a), (__m256)(b)))
#define MINIMUM_D(a, b) ((NAME(vd))_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#define MAXIMUM_D(a, b) ((NAME(vd))_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define COUNT_ZEROS(z, x) (z -= (x) == 0)
#define COUNT_ZEROS_D(z, x) (z -= (x) == 0)
#define HALVES(p) ((NAME(vf))_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(p))))
#include "kernels_body.h"

#define ISA avx512
#define TARGET __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")))
#define WIDTH 64
#define LANES 4
#define MINIMUM(a, b) ((NAME(vf))_mm512_min_ps((__m512)(a), (__m512)(b)))
#define MAXIMUM(a, b) ((NAME(vf))_mm512_max_ps((__m512)(a), (__m512)(b)))
#define MINIMUM_D(a, b) ((NAME(vd))_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#define MAXIMUM_D(a, b) ((NAME(vd))_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define COUNT_ZEROS(z, x) \
    (z = (NAME(vi))_mm512_mask_add_epi32( \
         (__m512i)(z), _mm512_cmp_ps_mask((__m512)(x), _mm512_setzero_ps(), _CMP_EQ_OQ), (__m512i)(z), \
         _mm512_set1_epi32(1)))
#define COUNT_ZEROS_D(z, x) \
    (z = (NAME(vl))_mm512_mask_add_epi64( \
         (__m512i)(z), _mm512_cmp_pd_mask((__m512d)(x), _mm512_setzero_pd(), _CMP_EQ_OQ), (__m512i)(z), \
         _mm512_set1_epi64(1)))
#define HALVES(p) ((NAME(vf))_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(p))))
#include "kernels_body.h"
#endif

const bp_kernels *bp_kernels_named(const char *name)
{
    const bp_kernels *there[4] = {NULL};
    int count = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
        there[count++] = &kernels_avx512;
    }
    if (avx2) {
        there[count++] = &kernels_avx2;
    }
    there[count++] = &kernels_sse2;
#endif
    there[count++] = &kernels_plain;
    for (int i = 0; i < count; i++) {
        if (name == NULL || strcmp(name, there[i]->name) == 0) {
            return there[i];
        }
    }
    return NULL;
}
