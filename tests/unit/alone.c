/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world's read-modify-writes, which are not atomic in a single-threaded process, have the same
 * results as with two threads.
 */
#include <pthread.h>

#include "unit.h"

static W_ATOMIC(uint32_t) word;
static W_ATOMIC(char *) pointer;
static char a, b;

static uint32_t set(uint32_t value)
{
	atomic_store(&word, value);
	return value;
}

static void expect_word(uint32_t value)
{
	EXPECT(atomic_load(&word) == value, "0x%x instead of 0x%x", atomic_load(&word), value);
}

/* Every operation has one result, whatever its order. */
#define EXPECT_ORDER(order)                                                               \
	do {                                                                              \
		uint32_t old = 7;                                                         \
		char *was = &b;                                                           \
                                                                                          \
		set(5);                                                                   \
		EXPECT(w_exchange_##order(&word, 9) == 5);                                \
		expect_word(9);                                                           \
		EXPECT(w_fetch_add_##order(&word, 3) == 9);                               \
		expect_word(12);                                                          \
		EXPECT(w_fetch_add_##order(&word, UINT32_MAX) == 12);                     \
		expect_word(11);                                                          \
		EXPECT(w_fetch_or_##order(&word, 4) == 11);                               \
		expect_word(15);                                                          \
		EXPECT(w_fetch_and_##order(&word, ~1u) == 15);                            \
		expect_word(14);                                                          \
		EXPECT(!w_compare_exchange_##order(&word, &old, 1) && old == 14);         \
		expect_word(14);                                                          \
		EXPECT(w_compare_exchange_##order(&word, &old, 1) && old == 14);          \
		expect_word(1);                                                           \
		atomic_store(&pointer, &a);                                               \
		EXPECT(!w_compare_exchange_##order(&pointer, &was, NULL) && was == &a);   \
		EXPECT(w_compare_exchange_##order(&pointer, &was, NULL));                 \
		EXPECT(!w_exchange_##order(&pointer, &b) && atomic_load(&pointer) == &b); \
	} while (0)

static void all_orders(void)
{
	EXPECT_ORDER(relaxed);
	EXPECT_ORDER(acquire);
	EXPECT_ORDER(release);
	EXPECT_ORDER(acq_rel);
}

static void *in_a_second_thread(void *unused)
{
	EXPECT(!w_alone(), "two threads, and updates are not atomic");
	all_orders();
	return unused;
}

static void with_a_second_thread(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, in_a_second_thread, NULL));
	EXPECT(!pthread_join(thread, NULL));
}

int main(void)
{
	RUN(all_orders);
	RUN(with_a_second_thread);
	RUN(all_orders);
	return 0;
}
