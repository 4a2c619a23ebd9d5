/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The functions of the model checker (crates/poundlock-check) that C code calls. The crate's abi.rs
 * mirrors this file: change both together.
 */
#ifndef POUNDLOCK_CHECK_ENGINE_H
#define POUNDLOCK_CHECK_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum check_kind {
	CHECK_LOAD,
	CHECK_STORE,
	CHECK_EXCHANGE,
	CHECK_COMPARE_EXCHANGE,
	CHECK_FETCH_ADD,
	CHECK_FETCH_OR,
	CHECK_FETCH_AND,
	CHECK_FENCE,
	CHECK_WAIT,
	CHECK_PARK,
	CHECK_UNPARK,
	CHECK_UNPARK_ALL,
	CHECK_CHOOSE,
	CHECK_EXPIRED,
	CHECK_MOVE,
	CHECK_FORK,
	CHECK_CREATE,
	CHECK_CREATED,
};

enum check_order { CHECK_RELAXED, CHECK_ACQUIRE, CHECK_RELEASE, CHECK_ACQ_REL, CHECK_SEQ_CST };

/* A place in the source that performs an operation. */
struct check_site {
	const char *file;
	const char *operation;
	const char *object;
	int32_t line;
	uint32_t kind;
	uint32_t order;
	uint32_t size; /* of the object; 0 where there is none, or only its address matters */
};

/* The reply to a wait: a value to test (more is 1), or the value that ends it (0). */
struct check_wait {
	uint64_t value;
	uint64_t more;
};

struct check_engine {
	/*
	 * Performs an operation and returns the value that it read. @expected is the expected value
	 * of a compare-exchange, or the deadline of a park.
	 */
	uint64_t (*operate)(const struct check_site *site, void *object, uint64_t operand,
			    uint64_t expected);
	/* @holds: whether the value that the last call returned ends the wait. */
	struct check_wait (*wait)(const struct check_site *site, void *object, bool brief,
				  const void *deadline, bool holds);
	/* A plain access by the caller of the function with frame @frame. */
	void (*plain)(const void *object, size_t size, bool write, const void *frame);
	void (*event)(uint32_t event);
	void (*yield)(void);
	uint32_t (*self)(void);
	/* The calls from @frame have returned: the stack below it is dead. */
	void (*returned)(const void *frame);
	/* Ends the object's lifetime. */
	void (*ended)(const void *object, size_t size);
	/* The thread's deadline lies in the future again. */
	void (*renewed)(void);
	void (*fail)(const char *file, int32_t line, const char *what);
	/* Records a number of the execution's outcome. */
	void (*outcome)(uint32_t slot, uint64_t value);
	/* The thread's index-th node, or NULL. */
	void *(*node)(uint32_t index);
	uint32_t (*generation)(void);
	/* The number of nodes in use by all threads. */
	uint32_t (*busy_nodes)(void);
	/* The thread's CPU, and the domain of a CPU. */
	uint32_t (*cpu)(void);
	uint32_t (*domain_of)(uint32_t cpu);
	/* The number of CPUs of the client. */
	uint32_t (*cpu_count)(void);
	/*
	 * Declares a queue: a thread's first change of it, while the thread acquires, is its
	 * arrival.
	 */
	void (*queue)(const void *object);
	/* Declares an object of @size bytes, 4 or 8, of which operations may access some. */
	void (*mixed)(const void *object, size_t size);
	/* Declares a hint, each load of which returns 0 or 1 (check.h). */
	void (*hint)(const void *object);
	/* The thread begins to acquire; it has ended that, with the lock if @has. */
	void (*acquires)(void);
	void (*acquired)(bool has);
	/* The value that the thread's arrival wrote; 0 if the thread does not wait. */
	uint64_t (*arrival)(uint32_t thread);
};

extern const struct check_engine *check_engine;

#endif
