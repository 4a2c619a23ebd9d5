/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The model checker's clients as a C11 program of one file, as other checkers require. C11_CLIENTS
 * is the file that it includes, such as tests/check/lock.c.
 *
 * With C11_CLIENT defined as a client's number, runs that client once. Otherwise runs all clients
 * as often as the argument says, or lists them with their numbers if there is no argument.
 */
#include <pthread.h>

#include C11_CLIENTS

_Alignas(64) char c11_shared[C11_MEMORY], c11_ghost[C11_MEMORY];
uint64_t c11_outcomes[C11_OUTCOMES];
_Thread_local uint32_t c11_self;
_Thread_local bool c11_expired;

/* The threads' nodes, and those of main(). */
static struct w_node nodes[C11_THREADS + 1][W_NODES];

void *w_node_get(void)
{
	for (uint32_t i = 0; i < W_NODES; i++)
		/* acquire: pairs with the release that freed the node: its last user is done */
		if (!w_load_acquire(&nodes[c11_self][i].status))
			return &nodes[c11_self][i];
	abort();
}

uint32_t check_busy_nodes(void)
{
	uint32_t busy = 0;

	for (uint32_t thread = 0; thread <= C11_THREADS; thread++)
		for (uint32_t i = 0; i < W_NODES; i++)
			/* relaxed: all threads have ended */
			busy += w_load_relaxed(&nodes[thread][i].status) != 0;
	return busy;
}

struct start {
	const struct check_client *client;
	uint32_t self;
	pthread_barrier_t *together; /* NULL: the threads need not meet */
};

static void *run_thread(void *argument)
{
	const struct start *start = argument;

	c11_self = start->self;
	if (start->together)
		pthread_barrier_wait(start->together);
	start->client->thread(start->self);
	return NULL;
}

/* Whether the outcome is one of the words of @allowed, which have a digit for each slot. */
static bool is_allowed(const char *allowed)
{
	for (;; allowed++) {
		uint32_t slot = 0;

		while (*allowed && *allowed != ' ' &&
		       c11_outcomes[slot] == (uint64_t)(*allowed - '0')) {
			allowed++;
			slot++;
		}
		if (!*allowed || *allowed == ' ')
			return true;
		while (*allowed && *allowed != ' ')
			allowed++;
		if (!*allowed)
			return false;
	}
}

static void run(const struct check_client *client, pthread_barrier_t *together)
{
	pthread_t threads[C11_THREADS];
	struct start starts[C11_THREADS];

	if (client->shared > C11_MEMORY || client->ghost > C11_MEMORY)
		abort();
	c11_self = C11_THREADS;
	if (client->setup)
		client->setup();
	for (uint32_t i = 0; i < client->threads; i++) {
		starts[i] = (struct start){client, i, together};
		if (pthread_create(&threads[i], NULL, run_thread, &starts[i]))
			abort();
	}
	for (uint32_t i = 0; i < client->threads; i++)
		if (pthread_join(threads[i], NULL))
			abort();
	if (client->finish)
		client->finish();
	if (client->allowed)
		check_assert(is_allowed(client->allowed));
}

#ifdef C11_CLIENT
int main(void)
{
	run(&check_clients[C11_CLIENT], NULL);
	return 0;
}
#else
#include <stdio.h>
#include <string.h>

/* The threads begin at the same time: they are short, and would often run one after the other. */
static void run_many(const struct check_client *client, int times)
{
	pthread_barrier_t together;

	if (client->flags & CHECK_CLIENT_FORKS)
		return;
	pthread_barrier_init(&together, NULL, client->threads);
	while (times-- > 0) {
		memset(c11_shared, 0, sizeof(c11_shared));
		memset(c11_ghost, 0, sizeof(c11_ghost));
		run(client, &together);
	}
	pthread_barrier_destroy(&together);
}

int main(int argc, char **argv)
{
	for (const struct check_client *client = check_clients; client->name; client++)
		if (argc > 1)
			run_many(client, atoi(argv[1]));
		else
			printf("%2td %s\n", client - check_clients, client->name);
	return 0;
}
#endif
