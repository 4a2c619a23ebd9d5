/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that map and unmap memory, for which each needs the kernel's lock of the address space.
 * Ends with its input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20, THREADS = 6 };

static void *mapper(void *unused)
{
	for (;;) {
		char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		if (memory == MAP_FAILED)
			return unused;
		memset(memory, 1, SIZE);
		munmap(memory, SIZE);
	}
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, mapper, NULL);
	while (getchar() != EOF)
		;
	return 0;
}
