/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Defines W_THREAD_SANITIZER in a build for ThreadSanitizer, by either compiler. */
#ifndef POUNDLOCK_SANITIZER_H
#define POUNDLOCK_SANITIZER_H

#if defined(__SANITIZE_THREAD__) /* gcc */
#define W_THREAD_SANITIZER
#elif defined(__has_feature) /* clang */
#if __has_feature(thread_sanitizer)
#define W_THREAD_SANITIZER
#endif
#endif

#endif
