// One binary, several instruction sets: the loader picks the widest the machine has.
#pragma once

// Not where a sanitizer watches threads: its own set-up comes after the loader's choice.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
// Inlined into every version of its callers, so that an inner loop costs no call.
#define INNER static inline __attribute__((always_inline))
#define INNER_MEMBER inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#else
#define MULTIVERSION
#define INNER static inline
#define INNER_MEMBER inline
#define INLINE_LAMBDA
#endif
