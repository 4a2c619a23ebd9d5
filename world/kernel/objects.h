/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The objects of the kernel's world, and the operations on them. The includer has included the
 * kernel's headers; the model checker's client of the kernel's spin lock has its own in their place
 * (tests/check/kernel.h).
 *
 * Objects are plain, as usual in the kernel, and accessed by READ_ONCE() and the like. The other
 * worlds, where they are _Atomic, check that nothing else accesses them.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_OBJECTS_H
#define POUNDLOCK_WORLD_KERNEL_OBJECTS_H

#define W_ATOMIC(T) __typeof__(T)

/*
 * A file whose locks have no room for a pointer defines W_TAIL as two bytes, in which a pointer is
 * stored as the name of a node (0 for NULL), the conversions w_name_of() and w_named(), and
 * W_SHORT. A file whose tails overlay one of the kernel's list heads defines W_TAIL_IN_LIST: such a
 * tail is its own address instead of NULL, as the head of an empty list is.
 */
struct w_in_list;
#ifdef W_TAIL_IN_LIST
#define W_TAIL(T) W_ATOMIC(struct w_in_list *)
#define w_name_of(node) ((void)(node), (u16)0)
#define w_named(name) ((void)(name), NULL)
#elif !defined(W_TAIL)
#define W_TAIL(T) W_ATOMIC(T *)
#define w_name_of(node) ((void)(node), (u16)0)
#define w_named(name) ((void)(name), NULL)
#endif
#ifndef W_SHORT
#define W_SHORT uint32_t
#endif
#define W_IS_NAME(p, v) (sizeof(*(p)) == sizeof(u16) && sizeof(v) == sizeof(void *))
#define W_IS_IN_LIST(p) __builtin_types_compatible_p(__typeof__(*(p)), struct w_in_list *)
/* @v as it is stored in *@p; and @stored, read from there, as a value of @v's type. */
#define W_STORED(p, v)                                                                          \
	((__typeof__(*(p)))(W_IS_NAME(p, v)           ? w_name_of((const void *)(uintptr_t)(v)) \
			    : W_IS_IN_LIST(p) && !(v) ? (uintptr_t)(p)                          \
						      : (uintptr_t)(v)))
#define W_VALUE(p, v, stored)                                                                 \
	__builtin_choose_expr(                                                                \
		W_IS_NAME(p, v), (__typeof__(v))(uintptr_t)w_named((u16)(uintptr_t)(stored)), \
		__builtin_choose_expr(W_IS_IN_LIST(p),                                        \
				      (__typeof__(v))((uintptr_t)(stored) == (uintptr_t)(p)   \
							      ? 0                             \
							      : (uintptr_t)(stored)),         \
				      stored))

#define w_init(p, v) ((void)(*(p) = (v)))
/* @loaded from @p: NULL if it is a tail in a list head that is its own address. */
#define W_LOADED(p, loaded)                                               \
	({                                                                \
		__auto_type w_loaded_ = (loaded);                         \
		W_IS_IN_LIST(p) && (uintptr_t)w_loaded_ == (uintptr_t)(p) \
			? (__typeof__(w_loaded_))0                        \
			: w_loaded_;                                      \
	})
#define w_load_relaxed(p) W_LOADED(p, READ_ONCE(*(p)))
#define w_load_acquire(p) W_LOADED(p, smp_load_acquire(p))
#define w_store_relaxed(p, v) WRITE_ONCE(*(p), W_STORED(p, v))
#define w_store_release(p, v) smp_store_release(p, W_STORED(p, v))

#define W_EXCHANGE(exchange, p, v)                                     \
	({                                                             \
		__typeof__(*(p)) w_was_ = exchange(p, W_STORED(p, v)); \
		W_VALUE(p, v, w_was_);                                 \
	})
#define w_exchange_relaxed(p, v) W_EXCHANGE(xchg_relaxed, p, v)
#define w_exchange_acquire(p, v) W_EXCHANGE(xchg_acquire, p, v)
#define w_exchange_release(p, v) W_EXCHANGE(xchg_release, p, v)
#define w_exchange_acq_rel(p, v) W_EXCHANGE(xchg, p, v)

#define W_CAS(cas, p, old, new)                                    \
	({                                                         \
		__auto_type w_old_ = (old);                        \
		__typeof__(*(p)) w_seen_ = W_STORED(p, *w_old_);   \
		bool w_done_ = cas(p, &w_seen_, W_STORED(p, new)); \
		if (!w_done_)                                      \
			*w_old_ = W_VALUE(p, *w_old_, w_seen_);    \
		w_done_;                                           \
	})
#define w_compare_exchange_relaxed(p, old, new) W_CAS(try_cmpxchg_relaxed, p, old, new)
#define w_compare_exchange_acquire(p, old, new) W_CAS(try_cmpxchg_acquire, p, old, new)
#define w_compare_exchange_release(p, old, new) W_CAS(try_cmpxchg_release, p, old, new)
#define w_compare_exchange_acq_rel(p, old, new) W_CAS(try_cmpxchg, p, old, new)

/*
 * The kernel has fetching operations for its own types only, each of which is one integer. For two
 * bytes they are compare-exchanges, because other threads write the neighbouring bytes.
 */
#define W_DONE_add(was, v) ((was) + (v))
#define W_DONE_or(was, v) ((was) | (v))
#define W_DONE_and(was, v) ((was) & (v))
#define W_FETCH_SHORT(operation, order, p, v)                                                    \
	({                                                                                       \
		__typeof__(*(p)) w_was_ = READ_ONCE(*(p));                                       \
		while (!try_cmpxchg##order(p, &w_was_,                                           \
					   (__typeof__(*(p)))(W_DONE_##operation(w_was_, v)))) { \
		}                                                                                \
		w_was_;                                                                          \
	})
#define W_FETCH(operation, order, p, v)                                                           \
	({                                                                                        \
		__auto_type w_p_ = (p);                                                           \
		__auto_type w_v_ = (v);                                                           \
		BUILD_BUG_ON(sizeof(*w_p_) != sizeof(u16) && sizeof(*w_p_) != sizeof(atomic_t) && \
			     sizeof(*w_p_) != sizeof(atomic64_t));                                \
		(__typeof__(*w_p_))(sizeof(*w_p_) == sizeof(u16)                                  \
					    ? (u64)W_FETCH_SHORT(operation, order, w_p_, w_v_)    \
				    : sizeof(*w_p_) == sizeof(atomic_t)                           \
					    ? (u64)(u32)atomic_fetch_##operation##order(          \
						      (int)w_v_, (atomic_t *)w_p_)                \
					    : (u64)atomic64_fetch_##operation##order(             \
						      (s64)w_v_, (atomic64_t *)w_p_));            \
	})
#define w_fetch_add_relaxed(p, v) W_FETCH(add, _relaxed, p, v)
#define w_fetch_add_acquire(p, v) W_FETCH(add, _acquire, p, v)
#define w_fetch_add_release(p, v) W_FETCH(add, _release, p, v)
#define w_fetch_add_acq_rel(p, v) W_FETCH(add, , p, v)
#define w_fetch_or_relaxed(p, v) W_FETCH(or, _relaxed, p, v)
#define w_fetch_or_acquire(p, v) W_FETCH(or, _acquire, p, v)
#define w_fetch_or_release(p, v) W_FETCH(or, _release, p, v)
#define w_fetch_or_acq_rel(p, v) W_FETCH(or, , p, v)
#define w_fetch_and_relaxed(p, v) W_FETCH(and, _relaxed, p, v)
#define w_fetch_and_acquire(p, v) W_FETCH(and, _acquire, p, v)
#define w_fetch_and_release(p, v) W_FETCH(and, _release, p, v)
#define w_fetch_and_acq_rel(p, v) W_FETCH(and, , p, v)
#define w_fence_seq_cst() smp_mb()

#endif
