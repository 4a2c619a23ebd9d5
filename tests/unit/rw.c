/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers-writer locks at their maximum of readers: one more is refused, at once and without a
 * trace, and no writer enters beside them.
 */
#include "all.h"
#include "unit.h"

#define POLICY(name) ((struct name##_policy){.wait = WAIT_PARK})

static const struct w_deadline passed;

/* Gives @word of a zeroed or initialised lock all its readers but one. */
#define IS_FULL_WITH_2_TO_27(name, word, ...)                                      \
	static void name##_is_full(void)                                           \
	{                                                                          \
		static struct name lock __VA_ARGS__;                               \
                                                                                   \
		w_store_relaxed(&lock.word, RW_READERS - RW_FULL);                 \
		EXPECT(!name##_full(&lock));                                       \
		EXPECT(name##_try_read(&lock, false) && name##_full(&lock));       \
		EXPECT(w_load_relaxed(&lock.word) >> 4 == 1 << 27);                \
		for (int again = 0; again < 2; again++) {                          \
			EXPECT(!name##_try_read(&lock, again));                    \
			EXPECT(!name##_read(&lock, again, POLICY(name), NULL));    \
			EXPECT(!name##_read(&lock, again, POLICY(name), &passed)); \
		}                                                                  \
		EXPECT(!name##_try_write(&lock));                                  \
		EXPECT(!name##_write(&lock, POLICY(name), &passed));               \
		EXPECT(w_load_relaxed(&lock.word) == RW_FULL, "a trace is left");  \
		EXPECT(name##_release_read(&lock, POLICY(name)));                  \
		EXPECT(!name##_full(&lock) && name##_try_read(&lock, true));       \
		EXPECT(name##_full(&lock) && !name##_try_read(&lock, true));       \
	}

IS_FULL_WITH_2_TO_27(shfl_rw, word)
IS_FULL_WITH_2_TO_27(fair_rw, word)
/* The readers' path without the bias, which is never set here. */
#define UNBIASED                                    \
	{                                           \
		.bravo.inhibited_until = UINT64_MAX \
	}
IS_FULL_WITH_2_TO_27(bravo_shfl_rw, lock.word, = UNBIASED)
IS_FULL_WITH_2_TO_27(bravo_fair_rw, lock.word, = UNBIASED)

int main(void)
{
	RUN(shfl_rw_is_full);
	RUN(fair_rw_is_full);
	RUN(bravo_shfl_rw_is_full);
	RUN(bravo_fair_rw_is_full);
	return 0;
}
