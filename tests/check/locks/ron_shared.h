/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "recheck"
#define WHEN_5 "recheck"
#define WHEN_FORKED "fork_repair"
#define WALKS_4 50000
#define COMMON_ROOM 2048
/* No slot is taken or marked, unless the array is the parent's, not yet repaired after a fork. */
#define AT_REST()                                                                        \
	({                                                                               \
		struct ron_shared_array *array_ = ron_shared_array();                    \
		uint64_t all_ = 0;                                                       \
                                                                                         \
		for (uint32_t slot_ = 0; slot_ < ron_shared_slots(); slot_++)            \
			all_ |= w_load_relaxed(&ron_shared_slot(array_, slot_)->lock);   \
		for (uint32_t word_ = 0; word_ < ron_shared_words(); word_++)            \
			all_ |= w_load_relaxed(ron_shared_marks(array_, word_));         \
		!all_ || w_load_relaxed(&array_->generation) != 2 * w_fork_generation(); \
	})
/* One place: a slot that a thread has left is the next one that the other takes. */
#define MORE_CLIENTS                                                                           \
	BOUNDED_4(spin),                                                                       \
		ENTRY("one_place/2x2/spin", lock_2_spin, 2, "contended", "4", prepare, finish, \
		      .cpus = 1, .flags = CHECK_CLIENT_PROMISES),
