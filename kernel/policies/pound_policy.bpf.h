/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Types of a policy for the kernel's ShflLocks; kernel/overlay/bpf_policy.c has the contract. A
 * program includes this file, and declares the fields that it reads of the kernel's structures.
 */
#ifndef POUND_POLICY_BPF_H
#define POUND_POLICY_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* A type of the kernel, of which only the fields in use are declared; the loader finds them. */
#define KERNELS __attribute__((preserve_access_index))

/* The largest rank. */
#define LAST ((1u << 30) - 1)

struct pound_waiter {
	__u64 lock;
	__u32 cpu;
	__u32 domain;
	__u32 held;
} KERNELS;

struct pound_policy {
	__u32 (*rank)(struct pound_waiter *waiter);
	__u32 together;
	__u32 measures;
	__u32 timeout_ms;
	__u32 limit_us;
	char name[15];
};

/* Defines the policy NAME by its function rank(), with more settings after it. */
#define POLICY(NAME, ...)                                                              \
	SEC(".struct_ops")                                                             \
	struct pound_policy NAME = {.rank = (void *)rank, .name = #NAME, __VA_ARGS__}; \
	char LICENSE[] SEC("license") = "Dual MIT/GPL"

#endif
