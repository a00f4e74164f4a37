/*
 * export.h - who may see a symbol. Everything is hidden (-fvisibility=hidden) unless marked here
 * and listed in directfuse.map.
 */
#ifndef DF_CORE_EXPORT_H
#define DF_CORE_EXPORT_H

/* Not public: for our own libraries beside libdirectfuse (the Python extension, the libfuse ABI
 * library). Version node DIRECTFUSE_PRIVATE; may change with every release. */
#define DF_PRIVATE_EXPORT __attribute__((visibility("default")))

#define DF_LIKELY(x)      __builtin_expect(!!(x), 1)
#define DF_UNLIKELY(x)    __builtin_expect(!!(x), 0)

/* A slow half: never part of the function that calls it. */
#define DF_COLD __attribute__((noinline, cold))

/* A part of a hot function that is no frame of its own. A call saves registers; and each frame that
 * is on the stack during a plugin's system call costs a mispredicted return where the kernel guards
 * its own returns (safe RET, RSB filling). */
#define DF_FLAT inline __attribute__((always_inline))

/* Built with thread sanitizer? (gcc and clang say so differently.) */
#if defined(__SANITIZE_THREAD__)
#define DF_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DF_TSAN 1
#endif
#endif

#endif
