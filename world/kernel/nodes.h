/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pool of nodes for waiters that may leave. An interrupted wait keeps its node until the
 * waiters before it have had their turn, so a user can use up many. Each user has nodes of its own:
 * at most MOST_CHUNKS chunks, which no other user's waits use.
 *
 * Chunks are in lists, by the hash of their user, and are added when the user needs one. They are
 * never freed, so that a stale pointer to a node points to a node. A chunk none of whose nodes is
 * in use may become another user's of the same list.
 *
 * Included by park.c, and by the model checker's clients (tests/check/kernel_park.c). The including
 * file defines CHUNK_NODES, MOST_CHUNKS, and after the inclusion the functions declared here. No
 * function is called in interrupt handlers, and all are with preemption off.
 */

/* The user of a chunk that is nobody's. */
#define NOBODY (~(u64)0)

struct node_chunk {
	u64 user; /* changes only while all nodes are claimed */
	struct node_chunk *next;
	struct w_node nodes[CHUNK_NODES];
};

struct node_list {
	spinlock_t lock; /* held to add a chunk or to change a chunk's user */
	u32 chunks;      /* at least 1 */
	struct node_chunk *first;
};

/* The user of the current task. */
static u64 node_user(void);

static struct node_list *node_list_of(u64 user);

/* A chunk of zeros; NULL if there is no memory. Does not sleep. */
static struct node_chunk *new_chunk(void);

/* Distance between the CPUs' starting points. */
#define NODES_APART 37u

static bool pool_try_claim(struct w_node *node)
{
	/* acquire: pairs with the release that freed the node; its previous user's accesses */
	return !READ_ONCE(node->status) && !cmpxchg_acquire(&node->status, 0, U32_MAX);
}

static void pool_free(struct w_node *node)
{
	smp_store_release(&node->status, 0);
}

/* Adds @chunk, which no other CPU knows, to @list. */
static void chunk_add(struct node_list *list, struct node_chunk *chunk, u64 user)
{
	chunk->user = user;
	chunk->next = list->first;
	WRITE_ONCE(list->chunks, list->chunks + 1);
	/* release: pairs with w_node_claim(); publishes the chunk */
	smp_store_release(&list->first, chunk);
}

/* Claims a node of @chunk. NULL if none is free, or if the chunk is not @user's. */
static struct w_node *chunk_claim(struct node_chunk *chunk, u64 user)
{
	u32 first = raw_smp_processor_id() * NODES_APART, i;
	struct w_node *node;

	if (READ_ONCE(chunk->user) != user)
		return NULL;
	for (i = 0; i < CHUNK_NODES; i++) {
		node = &chunk->nodes[(first + i) % CHUNK_NODES];
		if (!pool_try_claim(node))
			continue;
		/* With a claimed node, the user does not change. */
		if (READ_ONCE(chunk->user) == user)
			return node;
		pool_free(node);
		return NULL;
	}
	return NULL;
}

/* Claims a node of one of @user's chunks from @chunk to the one before @end. */
static struct w_node *chunks_claim(struct node_chunk *chunk, const struct node_chunk *end, u64 user)
{
	struct w_node *node = NULL;

	for (; chunk != end && !node; chunk = chunk->next)
		node = chunk_claim(chunk, user);
	return node;
}

/*
 * Makes @chunk @user's and claims a node of it. NULL if a node is in use. The list is locked. A
 * waiter that meanwhile finds the nodes claimed looks again with the list locked.
 */
static struct w_node *chunk_take_over(struct node_chunk *chunk, u64 user)
{
	struct w_node *node = NULL;
	u32 claimed = 0;

	while (claimed < CHUNK_NODES && pool_try_claim(&chunk->nodes[claimed]))
		claimed++;
	if (claimed == CHUNK_NODES) {
		WRITE_ONCE(chunk->user, user);
		node = &chunk->nodes[--claimed];
	}
	while (claimed)
		pool_free(&chunk->nodes[--claimed]);
	return node;
}

/* Gives @user one more chunk of @list, which is locked, and claims a node of it. */
static struct w_node *list_grow(struct node_list *list, u64 user)
{
	struct node_chunk *chunk;
	struct w_node *node;

	for (chunk = list->first; chunk; chunk = chunk->next) {
		if (READ_ONCE(chunk->user) == user)
			continue;
		node = chunk_take_over(chunk, user);
		if (node)
			return node;
	}
	chunk = new_chunk();
	if (!chunk)
		return NULL;
	node = &chunk->nodes[0];
	node->status = U32_MAX;
	chunk_add(list, chunk, user);
	return node;
}

/* Claims a node for @user, who had none that was free. */
static W_SLOW struct w_node *list_claim(struct node_list *list, u64 user)
{
	struct node_chunk *chunk;
	struct w_node *node;
	u32 chunks = 0;

	spin_lock(&list->lock);
	node = chunks_claim(list->first, NULL, user);
	if (!node) {
		for (chunk = list->first; chunk; chunk = chunk->next)
			chunks += READ_ONCE(chunk->user) == user;
		if (chunks < MOST_CHUNKS)
			node = list_grow(list, user);
	}
	spin_unlock(&list->lock);
	return node;
}

/* The chunk of @list, whose first one is @chunk, at which this CPU begins its search. */
static struct node_chunk *chunk_of_cpu(const struct node_list *list, struct node_chunk *chunk)
{
	u32 skip = raw_smp_processor_id() * NODES_APART / CHUNK_NODES % READ_ONCE(list->chunks);

	for (; skip && chunk->next; skip--)
		chunk = chunk->next;
	return chunk;
}

void *w_node_claim(void)
{
	u64 user = node_user();
	struct node_list *list = node_list_of(user);
	/* acquire: pairs with chunk_add(); the chunks */
	struct node_chunk *first = smp_load_acquire(&list->first);
	struct node_chunk *begin = chunk_of_cpu(list, first);
	struct w_node *node = chunks_claim(begin, NULL, user);

	if (!node)
		node = chunks_claim(first, begin, user);
	return node ? node : list_claim(list, user);
}
