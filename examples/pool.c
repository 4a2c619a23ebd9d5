/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pool: connections that are opened once, and shared by more threads than there are connections. */
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>

#define CONNECTIONS 3
#define THREADS 8
#define QUERIES 1000 /* of each thread */

static pound_once_t opened;
static pound_sem_t available = POUND_SEM_INIT(CONNECTIONS);
static pound_mutex_t mutex;
static struct connection {
	struct connection *next;
	long queries;
} connections[CONNECTIONS], *free_ones; /* under the mutex */

static void open_all(void *name)
{
	printf("opening %d connections to %s\n", CONNECTIONS, (const char *)name);
	for (int i = 0; i < CONNECTIONS; i++) {
		connections[i].next = free_ones;
		free_ones = &connections[i];
	}
}

/* Waits until a connection is free. */
static struct connection *take(void)
{
	struct connection *connection;

	pound_sem_wait(&available);
	pound_mutex_lock(&mutex);
	connection = free_ones;
	free_ones = connection->next;
	pound_mutex_unlock(&mutex);
	return connection;
}

static void give_back(struct connection *connection)
{
	pound_mutex_lock(&mutex);
	connection->next = free_ones;
	free_ones = connection;
	pound_mutex_unlock(&mutex);
	pound_sem_post(&available, 1);
}

static void *query(void *unused)
{
	pound_once(&opened, open_all, "orders");
	for (int i = 0; i < QUERIES; i++) {
		struct connection *connection = take();

		connection->queries++;
		give_back(connection);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	long queries = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, query, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		queries += connections[i].queries;
	printf("%ld queries\n", queries);
	return queries != (long)THREADS * QUERIES;
}
