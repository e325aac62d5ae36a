/* Where this torch keeps what the core reads most often of a plain tensor: learned by comparison, or not used at all.

   1. A plain tensor: exactly torch's own class, strided, on the CPU, with no lazy bit, wrapper, mode or transform.
      Everything else, and every torch whose memory is not as expected, is asked by attributes as before.
   2. A told tensor: a plain one, or one of another device whose keys were learned. Of it everything but the elements
      can be read: they lie where this process may have no memory. Elements are read of plain ones alone.
   3. Keys of another device are learned from tensors that were asked by attributes first (bp_learn_keys): SURE of them
      have to hold at every offset what they say, and one that does not rules the keys out for good.
   4. Nothing here is written to, and no reference is kept. */

#ifndef BACKPROBE_LAYOUT_H
#define BACKPROBE_LAYOUT_H

#include "reduction.h"

#define BP_MOST_KEYS 4 /* kinds of devices beside the CPU */

/* Offsets in bytes. */
typedef struct {
    int used;
    int impl;                               /* in the Python object: the tensor's own address */
    int keys, storage, dims, offset, dtype; /* in the tensor: dims is the number of them, sizes and strides follow */
    int autograd, counter, object;          /* NULL where autograd knows nothing; the version's home; the Python object */
    int version;                            /* behind `counter` */
    int data, bytes;                        /* in the storage */
    uintptr_t table;                        /* what a plain tensor begins with */
    uint64_t plain_keys, autograd_keys;     /* the second: those that an inference tensor lacks */
    int8_t dtypes[256];                     /* torch's number of a dtype -> bp_dtype, -1: none */
    uint64_t told_keys[BP_MOST_KEYS];       /* of plain tensors on other devices */
    int told_count;
} bp_layout;

extern bp_layout bp_torch_layout;

#define BP_INLINE_DIMENSIONS 5

static inline uintptr_t bp_word(uintptr_t at) { return *(const uintptr_t *)at; }

/* Strided, with sizes in place and a storage: on which device, and with which lazy bits, its keys say. */
static inline int bp_has_plain_form(uintptr_t impl)
{
    return impl && bp_word(impl) == bp_torch_layout.table &&
           bp_word(impl + bp_torch_layout.dims) <= BP_INLINE_DIMENSIONS && bp_word(impl + bp_torch_layout.storage);
}

static inline uint64_t bp_impl_keys(uintptr_t impl) { return *(const uint64_t *)(impl + bp_torch_layout.keys); }

static inline int bp_is_plain_impl(uintptr_t impl)
{
    return bp_has_plain_form(impl) && bp_impl_keys(impl) == bp_torch_layout.plain_keys;
}

static inline int bp_is_told_impl(uintptr_t impl)
{
    int told = bp_is_plain_impl(impl);
    if (!told && bp_has_plain_form(impl)) {
        for (int i = 0; !told && i < bp_torch_layout.told_count; i++) {
            told = bp_impl_keys(impl) == bp_torch_layout.told_keys[i];
        }
    }
    return told;
}

/* What a Python object of exactly torch's class stands for, if it begins like a plain one; else 0. Its keys can be read. */
static inline uintptr_t bp_impl_at(PyObject *tensor)
{
    uintptr_t impl = bp_word((uintptr_t)tensor + bp_torch_layout.impl);
    return impl && bp_word(impl) == bp_torch_layout.table ? impl : 0;
}

/* The same, if it is plain; else 0. */
static inline uintptr_t bp_impl_of(PyObject *tensor)
{
    uintptr_t impl = bp_torch_layout.used ? bp_word((uintptr_t)tensor + bp_torch_layout.impl) : 0;
    return bp_is_plain_impl(impl) ? impl : 0;
}

/* The same, if everything but its elements can be read; else 0. */
static inline uintptr_t bp_told_impl_of(PyObject *tensor)
{
    uintptr_t impl = bp_torch_layout.used ? bp_word((uintptr_t)tensor + bp_torch_layout.impl) : 0;
    return bp_is_told_impl(impl) ? impl : 0;
}

static inline int bp_impl_ndim(uintptr_t impl) { return (int)bp_word(impl + bp_torch_layout.dims); }
static inline const int64_t *bp_impl_sizes(uintptr_t impl)
{
    return (const int64_t *)(impl + bp_torch_layout.dims + sizeof(int64_t));
}
static inline const int64_t *bp_impl_strides(uintptr_t impl) { return bp_impl_sizes(impl) + BP_INLINE_DIMENSIONS; }
static inline int64_t bp_impl_offset(uintptr_t impl) { return *(const int64_t *)(impl + bp_torch_layout.offset); }
static inline uintptr_t bp_impl_storage(uintptr_t impl) { return bp_word(impl + bp_torch_layout.storage); }
static inline int64_t bp_storage_bytes(uintptr_t storage) { return *(const int64_t *)(storage + bp_torch_layout.bytes); }
static inline int bp_impl_dtype(uintptr_t impl)
{
    uint16_t number = *(const uint16_t *)(impl + bp_torch_layout.dtype);
    return number < 256 ? bp_torch_layout.dtypes[number] : -1;
}

/* `_version`; -1 where it is to be asked for. */
static inline int64_t bp_impl_version(uintptr_t impl)
{
    uintptr_t counter = bp_word(impl + bp_torch_layout.counter);
    return counter ? (int64_t) * (const uint32_t *)(counter + bp_torch_layout.version) : -1;
}

/* `is_inference()` of what begins like a plain one. */
static inline int bp_impl_is_inference(uintptr_t impl)
{
    return (bp_impl_keys(impl) & bp_torch_layout.autograd_keys) == 0;
}

/* Autograd knows nothing of it: a leaf that requires no gradient and has none. */
static inline int bp_impl_is_bare(uintptr_t impl) { return bp_word(impl + bp_torch_layout.autograd) == 0; }

/* What attributes say of a tensor of another device that is ordinary: strided, no wrapper, no inference tensor, and so on. */
typedef struct {
    int ndim, known; /* known: autograd has to keep something of it */
    const int64_t *sizes, *strides;
    int64_t offset, bytes, version;
    uintptr_t storage;
    const char *dtype;
} bp_asked;

/* Compare it with what lies at the offsets that were learned: so are the keys of its device learned, or ruled out. */
void bp_learn_keys(PyObject *tensor, const bp_asked *asked);

/* Fill a view but for `item`, `conj`, `neg`; 0 where its elements do not lie wholly in its storage. */
int bp_impl_view(uintptr_t impl, bp_tensor_view *view);

#endif
