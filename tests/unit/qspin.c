/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * qspin.h: every form of the word against newcomers and releases; the order of the queue; a head
 * that closes the lock, and a head of another process; all slots in use; slots returned.
 */
#include "qspin.h"
#include "unit.h"

#define OTHER_PROCESS (w_process() ^ 1)

static const struct qspin_policy spins = {.wait = WAIT_SPIN, .patience = 2};
static struct qspin lock;

static void begin(uint32_t word)
{
	atomic_store(&lock.word, word);
	script_clear();
}

static uint32_t word(void)
{
	return atomic_load(&lock.word);
}

static void expect_slots_free(void)
{
	for (uint32_t slot = 0; slot < W_QUEUE_NODES; slot++)
		EXPECT(!atomic_load(&qspin_node(slot)->status), "slot %u was left", slot);
}

static void by_word(void)
{
	const uint32_t tails[] = {0, qspin_tail(0), qspin_tail(W_QUEUE_NODES - 1),
				  1 << QSPIN_PROCESS_SHIFT,
				  OTHER_PROCESS << QSPIN_PROCESS_SHIFT | QSPIN_SLOT};
	const uint32_t embedders[] = {0, 1u << 30, 2u << 30, 3u << 30};

	EXPECT((qspin_tail(W_QUEUE_NODES - 1) & ~QSPIN_TAIL) == 0);
	for (size_t i = 0; i < 5; i++) {
		for (uint32_t low = 0; low < 4; low++) {
			uint32_t before = tails[i] | low | embedders[(i + low) % 4];
			bool held = low & QSPIN_LOCKED, own = i == 1 || i == 2;
			bool open = !held && !(low & QSPIN_CLOSED && own);

			begin(before);
			EXPECT(qspin_try_acquire(&lock) == open, "word %x", before);
			EXPECT(word() == (open ? (before & ~QSPIN_CLOSED) | QSPIN_LOCKED : before),
			       "word %x", before);
			begin(before);
			EXPECT(qspin_release(&lock, spins) == held, "word %x", before);
			EXPECT(word() == (before & ~QSPIN_LOCKED), "word %x", before);
		}
	}
}

static bool releases(void *unused)
{
	(void)unused;
	EXPECT(qspin_release(&lock, spins));
	return true;
}

/* Released, and taken again at once by a thread that does not wait, while that is possible. */
static bool steals(void *count)
{
	EXPECT(qspin_release(&lock, spins));
	if (!qspin_try_acquire(&lock))
		return true;
	++*(uint32_t *)count;
	return false;
}

/* The embedder's bits and the rest of the word, after one waiter went through the queue alone. */
static void waits_and_ends_the_queue(void)
{
	begin(1u << 30 | QSPIN_LOCKED);
	script_at(10, releases, NULL);
	EXPECT(qspin_acquire(&lock, spins, NULL));
	EXPECT(word() == (1u << 30 | QSPIN_LOCKED), "%x", word());
	expect_slots_free();
}

/* A holder that returns after each release gets the lock up to `patience` times. */
static void head_closes(void)
{
	struct qspin_policy policy = {.wait = WAIT_YIELD, .patience = 3};
	uint32_t stolen = 0;

	begin(QSPIN_LOCKED);
	script_at(10, steals, &stolen);
	EXPECT(qspin_acquire(&lock, policy, NULL));
	EXPECT(word() == QSPIN_LOCKED, "%x", word());
	EXPECT(stolen > 0, "nobody came in between");
	expect_slots_free();
}

/* The queue is another process's: our waiter polls, and leaves it unchanged. */
static void foreign_queue(void)
{
	uint32_t foreign = OTHER_PROCESS << QSPIN_PROCESS_SHIFT | 3u << QSPIN_SLOT_SHIFT;

	begin(foreign | QSPIN_CLOSED | QSPIN_LOCKED);
	script_at(10, releases, NULL);
	EXPECT(qspin_acquire(&lock, spins, NULL));
	EXPECT(word() == (foreign | QSPIN_LOCKED), "%x", word());
	expect_slots_free();
}

/* A waiter that arrives behind us becomes the head when we get the lock. */
static uint32_t behind;

static bool comes(void *unused)
{
	uint32_t before;

	(void)unused;
	behind = qspin_claim();
	EXPECT(behind != QSPIN_NONE);
	EXPECT(qspin_enter(&lock, behind, &before));
	EXPECT(before & QSPIN_TAIL, "nobody was queued");
	atomic_store(&qspin_node((before & QSPIN_SLOT) >> QSPIN_SLOT_SHIFT)->next, behind + 1);
	return true;
}

static void passes_on(void)
{
	begin(QSPIN_LOCKED);
	script_at(20, comes, NULL);
	script_at(30, releases, NULL);
	EXPECT(qspin_acquire(&lock, spins, NULL));
	EXPECT(word() == (qspin_tail(behind) | QSPIN_LOCKED), "%x", word());
	EXPECT(atomic_load(&qspin_node(behind)->status) == NODE_GRANTED);
	EXPECT(qspin_release(&lock, spins));
	EXPECT(qspin_take_as_head(&lock, behind, spins), "somebody else is queued");
	node_free(&qspin_node(behind)->status);
	EXPECT(word() == QSPIN_LOCKED, "%x", word());
	expect_slots_free();
}

/* Without a free slot a waiter polls. */
static void no_slot(void)
{
	begin(QSPIN_LOCKED);
	for (uint32_t slot = 0; slot < W_QUEUE_NODES; slot++)
		atomic_store(&qspin_node(slot)->status, NODE_WAITING);
	EXPECT(qspin_claim() == QSPIN_NONE);
	script_at(10, releases, NULL);
	EXPECT(qspin_acquire(&lock, spins, NULL));
	EXPECT(word() == QSPIN_LOCKED, "%x", word());
	for (uint32_t slot = 0; slot < W_QUEUE_NODES; slot++)
		atomic_store(&qspin_node(slot)->status, NODE_FREE);
}

int main(void)
{
	by_word();
	waits_and_ends_the_queue();
	head_closes();
	foreign_queue();
	passes_on();
	no_slot();
	return 0;
}
