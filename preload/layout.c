/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Finds glibc's word of flags in a pthread_cond_t, the one word that an attribute changes, and the
 * thread's id in its struct pthread. layout.h has the reasons.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout.h"
#include "kernel.h"
#include "cond_word.h"
#include "real.h"

struct cond_layout cond_layout;
ptrdiff_t tid_offset;

#define WORDS (sizeof(pthread_cond_t) / sizeof(uint32_t))

/*
 * Initialises a condition variable with @attr. Returns the index of its only non-zero word, and the
 * word; WORDS if there is not exactly one.
 */
static size_t only_word(const pthread_condattr_t *attr, uint32_t *word)
{
	uint32_t words[WORDS];
	pthread_cond_t cond;
	size_t i, found = WORDS;

	memset(&cond, 0, sizeof(cond));
	if (real.pthread_cond_init(&cond, attr))
		return WORDS;
	memcpy(words, &cond, sizeof(words));
	real.pthread_cond_destroy(&cond);
	for (i = 0; i < WORDS; i++) {
		if (!words[i])
			continue;
		if (found != WORDS)
			return WORDS;
		found = i;
		*word = words[i];
	}
	return found;
}

static bool probe_cond(void)
{
	uint32_t pshared = 0, monotonic = 0;
	pthread_condattr_t attr;
	size_t index, index2;

	pthread_condattr_init(&attr);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	index = only_word(&attr, &pshared);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	index2 = only_word(&attr, &monotonic);
	pthread_condattr_destroy(&attr);
	if (index == WORDS || index != index2 || (pshared & monotonic) ||
	    index * 4 < sizeof(struct cond))
		return false;
	cond_layout = (struct cond_layout){index * 4, pshared, monotonic};
	return true;
}

/*
 * glibc's symbol for libthread_db: the field's size in bits, count, and offset in struct pthread.
 */
static bool probe_tid(void)
{
	const uint32_t *field = dlsym(RTLD_NEXT, "_thread_db_pthread_tid");

	if (!field || field[0] != 8 * sizeof(uint32_t))
		return false;
	tid_offset = (const char *)pthread_self() - w_thread_pointer() + (ptrdiff_t)field[2];
	return own_tid() == (uint32_t)syscall(SYS_gettid);
}

const char *layout_probe(void)
{
	if (!probe_cond())
		return "pthread_cond_t";
	return probe_tid() ? NULL : "struct pthread";
}
