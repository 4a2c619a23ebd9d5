/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The layout of the public types on 64-bit machines, which linked programs contain: they allocate
 * locks, and in inlined code change the mutex's state word and read that of once. A change needs
 * another SONAME.
 */
#include <poundlock.h>

#define SAME(what, due) _Static_assert((what) == (due), #what " differs: see layout.c")

SAME(sizeof(pound_mutex_t), 32);
SAME(_Alignof(pound_mutex_t), 8);
SAME(offsetof(pound_mutex_t, embedder), 16);
SAME(offsetof(pound_mutex_t, pound_state), 20);
SAME(POUND_MUTEX_LOCKED, 1);

SAME(sizeof(pound_lock_t), 40);
SAME(_Alignof(pound_lock_t), 8);
SAME(sizeof(pound_rwlock_t), 56);
SAME(_Alignof(pound_rwlock_t), 8);
SAME(sizeof(pound_cond_t), 16);
SAME(_Alignof(pound_cond_t), 8);
SAME(offsetof(struct pound_lockable, unlock), 8);
SAME(sizeof(pound_once_t), 4);
SAME(_Alignof(pound_once_t), 4);
SAME(POUND_ONCE_DONE, 2);
SAME(sizeof(pound_sem_t), 8);
SAME(_Alignof(pound_sem_t), 4);
SAME(offsetof(pound_sem_t, pound_state), 0);
SAME(POUND_SEM_MAX, INT32_MAX);
SAME(sizeof(pound_recursive_mutex_t), 40);
SAME(_Alignof(pound_recursive_mutex_t), 8);

SAME(sizeof(struct pound_policy), 24);
SAME(offsetof(struct pound_policy, rank), 8);
SAME(offsetof(struct pound_policy, context), 16);
SAME(POUND_STAY, UINT32_MAX);

/* The library allocates them, so fields may be added at the end. */
SAME(offsetof(struct pound_lock_info, wait), 8);
SAME(offsetof(struct pound_lock_info, promise), 16);
SAME(offsetof(struct pound_lock_info, paper), 24);
SAME(offsetof(struct pound_lock_info, keys), 32);
SAME(offsetof(struct pound_lock_info, boxed), 40);
SAME(offsetof(struct pound_lock_info, bytes_per_lock), 48);
SAME(offsetof(struct pound_lock_info, bytes_per_waiter), 56);
SAME(offsetof(struct pound_lock_info, bytes_per_holder), 64);
SAME(offsetof(struct pound_lock_info, atomics_alone), 72);
SAME(offsetof(struct pound_lock_info, atomics_contended), 80);
SAME(offsetof(struct pound_lock_info, atomics_reading), 88);
SAME(offsetof(struct pound_setting, choices), 8);
SAME(offsetof(struct pound_setting, by_default), 16);
SAME(offsetof(struct pound_setting, least), 20);
SAME(offsetof(struct pound_setting, most), 24);
