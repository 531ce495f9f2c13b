// Functions compiled for several instruction sets. The loader chooses the widest one that the
// machine supports.
#pragma once

// Not used with ThreadSanitizer, which is not yet initialised when the loader makes its choice.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define MULTIVERSIONED
#define MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
// Inlined into every version of the calling function, so that inner loops have no function calls.
#define INNER static inline __attribute__((always_inline))
#define INNER_MEMBER inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#else
#define MULTIVERSION
#define INNER static inline
#define INNER_MEMBER inline
#define INLINE_LAMBDA
#endif
