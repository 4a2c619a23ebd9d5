/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A hash of locks' addresses, for tables with open addressing. */
#ifndef POUNDLOCK_PRELOAD_HASH_H
#define POUNDLOCK_PRELOAD_HASH_H

#include <stdint.h>

/*
 * A hash of @bits bits. For some strides of arrays of locks the product's highest bits differ
 * little; the bits below them do.
 */
static inline uint32_t address_hash(uint64_t address, unsigned bits)
{
	uint64_t product = address * 0x9e3779b97f4a7c15;

	return (uint32_t)((product ^ product << bits) >> (64 - bits));
}

#endif
