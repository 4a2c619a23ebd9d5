#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fault injection: builds seeded bugs, one at a time, into copies of the sources; the named test
must fail on each.

The faults are those of earlier implementations that the design lists, and those that reviews of
this implementation found. The test must first pass on the unchanged sources.
"""

import argparse
import concurrent.futures
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

SOURCES = pathlib.Path(__file__).resolve().parents[2]
COPIED = [
    "core",
    "kernel/hook",
    "kernel/overlay",
    "lib",
    "world/sanitizer.h",
    "world/sizes.h",
    "world/spin.h",
    "world/streak.h",
    "world/c11",
    "world/check",
    "world/kernel",
    "world/user",
    "tests/c11",
    "tests/check",
    "tests/events.h",
    "tests/expect.h",
    "tests/forks.h",
    "tests/unit",
    "tests/stress",
]
WORLD = [f"world/user/{name}.c" for name in ["futex", "route", "shares", "thread", "topology"]]
# Without fast_path.c, which refuses to build if the core's fast path is not the header's.
LIBRARY = sorted(
    f"lib/{source.name}" for source in (SOURCES / "lib").glob("*.c") if source.name != "fast_path.c"
)
STRESS = [
    "tests/stress/main.c",
    "tests/stress/scenarios.c",
    "tests/stress/fork.c",
    "tests/stress/run.c",
    *LIBRARY,
]
INCLUDES = ["-Iworld/user", "-Icore", "-Ilib"]
COMPILE = "-std=gnu11 -O1 -w -pthread -fno-strict-aliasing -fvisibility=hidden".split()
# The locks themselves are instrumented, so nothing has to report their operations.
INSTRUMENTED = ["-fsanitize=thread", "-DPOUND_TSAN=0"]

# A build that hangs counts as caught: ten times the duration of the sound build, plus 20 s.
SOUND_SECONDS = 1500
FAULTY_FACTOR, FAULTY_SECONDS = 10, 20


class Test(NamedTuple):
    """A test program: its sources, flags and arguments."""

    sources: list
    flags: list = []
    arguments: list = []


def scripted(name):
    return Test([f"tests/unit/{name}.c", "tests/unit/script.c", *WORLD], ["-Itests/unit/world"])


def stress(spec, scenario, flags=()):
    """With injected yields, which put threads where a fault shows."""
    return Test(
        [*STRESS, *WORLD], ["-Itests/stress/world", "-DSTRESS_PERCENT=40", *flags], [spec, scenario]
    )


def client(name):
    """The model checker's clients as threads under ThreadSanitizer, as in tests/c11."""
    return Test(
        ["tests/c11/main.c", "tests/c11/nondet.c"],
        [
            "-Iworld/c11",
            "-Iworld/check",
            "-Itests/check",
            f'-DC11_CLIENTS="{name}.c"',
            "-DC11_PAUSE=sched_yield()",
            "-DC11_STEP=c11_step()",
            "-include",
            "sched.h",
            *INSTRUMENTED,
        ],
        ["100"],
    )


KERNEL_CLIENTS = [
    "hook",
    "kernel_cfl",
    "kernel_cfl_any",
    "kernel_cfl_mutex",
    "kernel_cfl_mutex_any",
    "kernel_mutex",
    "kernel_park",
    "kernel_rwsem",
    "kernel_tuning",
    "qspinlock",
]

TESTS = {
    **{f"client {name}": client(name) for name in KERNEL_CLIENTS},
    **{
        name: scripted(name)
        for name in [
            "shuffle",
            "shfl_spin",
            "shfl_mutex",
            "cna",
            "waits",
            "generation",
            "ron",
            "ron_shared",
        ]
    },
    "topology": Test(["tests/unit/topology.c", *WORLD]),
    "records": Test(
        ["tests/unit/records.c", *(source for source in WORLD if "thread" not in source)]
    ),
    "destroy ttas": stress("ttas,wait=park", "destroy"),
    "destroy mcs": stress("mcs,wait=park", "destroy"),
    "trylock shfl_mutex": stress("shfl_mutex,patience=0", "trylock"),
    "fork mcs": stress("mcs", "fork"),
    "destroy semaphore": Test(
        ["tests/stress/sync.c", "tests/stress/run.c", *LIBRARY, *WORLD],
        ["-Itests/stress/world", "-DSTRESS_PERCENT=40"],
        ["destroy"],
    ),
    "races ttas": stress("ttas,wait=yield", "exclusion", INSTRUMENTED),
    "races shfl_mutex": stress("shfl_mutex", "exclusion", INSTRUMENTED),
}
if platform.machine() == "x86_64":  # it uses the trap flag
    TESTS["interrupted"] = Test(["tests/unit/interrupted.c", *LIBRARY, *WORLD])


# The faults that the model checker must detect, in the format that the file describes.
KNOWN_FAULTS = (SOURCES / "tests/check/known_faults.txt").read_text()


class Fault(NamedTuple):
    name: str
    why: str
    test: str
    file: str
    old: str
    new: str


def known(name, test, why):
    """A fault of KNOWN_FAULTS with one replacement."""
    _, _, rest = KNOWN_FAULTS.partition(f"fault: {why}\n")
    place, *lines = rest.partition("\n\n")[0].splitlines()
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return Fault(name, why, test, place.removeprefix("in: "), old, new)


FAULTS = [
    # ---- The kernel's locks, as threads ----
    known(
        "kernel-head-without-acquire",
        "client qspinlock",
        "a queue head that takes the kernel's spin lock without an acquire",
    ),
    known(
        "kernel-hooked-waiters-lost",
        "client hook",
        "the hooked slow path moves a waiter without the waiters that it bypasses",
    ),
    known(
        "kernel-cfl-group-waits",
        "client kernel_cfl",
        "a waiter for the kernel's CFL lock whose group waits forever",
    ),
    known(
        "kernel-cfl-mutex-without-node",
        "client kernel_cfl_mutex",
        "a waiter for the kernel's CFL mutex that gives up if the pool has no node",
    ),
    known(
        "kernel-cfl-any-group-waits",
        "client kernel_cfl_any",
        "a waiter for the kernel's CFL lock whose group waits forever",
    ),
    known(
        "kernel-cfl-mutex-any-without-node",
        "client kernel_cfl_mutex_any",
        "a waiter for the kernel's CFL mutex that gives up if the pool has no node",
    ),
    known(
        "kernel-mutex-released-as-stock",
        "client kernel_mutex",
        "a mutex that is released as if stock had taken it",
    ),
    known(
        "kernel-downgrade-keeps-owner",
        "client kernel_rwsem",
        "a downgrade that leaves the writer the owner",
    ),
    known(
        "kernel-node-used-twice",
        "client kernel_park",
        "a node of the pool for two tasks",
    ),
    known(
        "kernel-table-replaced-in-use",
        "client kernel_tuning",
        "a table of locks' settings that is replaced where readers are",
    ),
    # ---- Stealing ----
    *[
        Fault(
            name,
            why,
            test,
            "core/shfl_mutex.h",
            "(*seen & SHFL_MUTEX_STANDING) | SHFL_MUTEX_LOCKED))",
            "(*seen & (SHFL_MUTEX_STANDING | SHFL_MUTEX_CLOSED)) | SHFL_MUTEX_LOCKED))",
        )
        for name, why, test in [
            (
                "stealing-off-permanently",
                "one contended hand-over turns stealing off permanently",
                "shfl_mutex",
            ),
            (
                "trylock-fails-when-free",
                "after one contended hand-over, trylock fails on a free lock",
                "trylock shfl_mutex",
            ),
        ]
    ],
    Fault(
        "stealing-from-the-queue",
        "figure 4's lines 35-37 leave stealing on while a waiter is queued",
        "shfl_spin",
        "core/shfl_spin.h",
        "if (w_load_relaxed(&lock->tail) && !shfl_spin_drop_waiters(lock))",
        "if (!lock)",
    ),
    Fault(
        "never-closed",
        "newcomers overtake the head without bound",
        "shfl_mutex",
        "core/shfl_mutex.h",
        "if (attempts++ >= patience &&",
        "if (attempts++ == UINT32_MAX &&",
    ),
    Fault(
        "closed-by-release",
        "a release opens the lock although the head has closed it",
        "shfl_mutex",
        "core/shfl_mutex.h",
        "seen & (SHFL_MUTEX_CLOSED | SHFL_MUTEX_STANDING)));",
        "0));",
    ),
    # ---- Sleeping and waking ----
    Fault(
        "wrong-waiter-woken",
        "a shuffler wakes the wrong waiter",
        "shuffle",
        "core/part/shuffle.h",
        "shfl_wake_early(current);",
        "shfl_wake_early(previous);",
    ),
    Fault(
        "wake-overwrites-ready",
        "a plain-store wake-up overwrites the status that a predecessor wrote",
        "shuffle",
        "core/part/shuffle.h",
        "if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE) || seen != SHFL_PARKED)\n"
        "\t\treturn;",
        "seen = w_exchange_relaxed(&node->status, SHFL_AWAKE);\n\tif (seen != SHFL_PARKED)\n"
        "\t\treturn;\n"
        "\tseen = SHFL_AWAKE;",
    ),
    Fault(
        "park-overwrites-ready",
        "a waiter that goes to sleep by a plain store loses the hand-over",
        "shuffle",
        "core/part/shuffle.h",
        "if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_PARKED))",
        "w_store_relaxed(&node->status, SHFL_PARKED);\n\tif (!node)",
    ),
    Fault(
        "awake-but-asleep",
        "a shuffler changes PARKED to AWAKE without a wake-up",
        "shuffle",
        "core/part/shuffle.h",
        "\t\tw_unpark(&node->status);\n",
        "",
    ),
    *[
        Fault(name, why, "shfl_mutex", "core/shfl_mutex.h", old, new)
        for name, why, old, new in [
            (
                "ahead-on-a-shared-cpu",
                "a head wakes waiters ahead although others need its CPU",
                "slept && w_has_own_cpu();",
                "slept;",
            ),
            (
                "ahead-without-sleep",
                "a head wakes waiters ahead although it has not slept",
                "slept && w_has_own_cpu();",
                "w_has_own_cpu();",
            ),
            (
                "ahead-before-it-waits",
                "a head wakes all waiters ahead although it takes the lock at once",
                "shfl_wake_ahead(node, 1);",
                "shfl_wake_ahead(node, SHFL_MUTEX_AHEAD);",
            ),
            (
                "ahead-by-one",
                "a head that waits wakes no more waiters ahead",
                "\t\t\tshfl_wake_ahead(node, SHFL_MUTEX_AHEAD);\n",
                "\t\t\t;\n",
            ),
        ]
    ],
    Fault(
        "ahead-of-the-wrong-one",
        "a head that wakes waiters ahead begins with itself",
        "shuffle",
        "core/part/shuffle.h",
        "while (count-- && (node = w_load_acquire(&node->next)))",
        "for (; count-- && node; node = w_load_acquire(&node->next))",
    ),
    Fault(
        "woken-early-hurries-to-sleep",
        "a waiter that was woken early spins as shortly as its history says",
        "shuffle",
        "core/part/shuffle.h",
        "return how == W_QUEUED && seen == SHFL_AWAKE ? W_BRIEF : how;",
        "return how;",
    ),
    Fault(
        "heir-forgotten",
        "the release does not wake the next head, which sleeps on its own status",
        "shfl_mutex",
        "core/part/heir.h",
        "\t\tw_unpark(heir);\n",
        "",
    ),
    Fault(
        "head-forgotten",
        "the release does not wake the head, which sleeps on the word",
        "shfl_mutex",
        "core/part/heir.h",
        "\t\tw_unpark(head);\n",
        "",
    ),
    Fault(
        "timed-head-forgets-heir",
        "a head that gives up does not wake its successor",
        "shfl_mutex",
        "core/shfl_mutex.h",
        "\t\tw_unpark(sleeper);\n",
        "\t\t;\n",
    ),
    Fault(
        "flags-survive-release",
        "a release keeps the holder's flags",
        "shfl_mutex",
        "core/shfl_mutex.h",
        "seen & (SHFL_MUTEX_CLOSED | SHFL_MUTEX_STANDING)));",
        "seen & ~SHFL_MUTEX_LOCKED));",
    ),
    Fault(
        "ttas-wake-up-swallowed",
        "a timed sleeper that gives up consumes the only wake-up",
        "waits",
        "core/ttas.h",
        "\t\tif (w_expired(deadline)) {\n\t\t\tw_event(abandon);\n\t\t\treturn false;\n\t\t}\n"
        "\t\tw_event(park);\n\t\tw_park(&lock->word, TTAS_HELD_SLEEPERS, deadline);\n",
        "\t\tw_park(&lock->word, TTAS_HELD_SLEEPERS, deadline);\n"
        "\t\tif (w_expired(deadline))\n\t\t\treturn false;\n",
    ),
    Fault(
        "ttas-sleepers-forgotten",
        "a woken waiter clears the flag of the other sleepers",
        "waits",
        "core/ttas.h",
        "w_exchange_acquire(&lock->word, TTAS_HELD_SLEEPERS)",
        "w_exchange_acquire(&lock->word, TTAS_HELD)",
    ),
    Fault(
        "ticket-sleepers-forgotten",
        "a release does not wake the sleepers",
        "waits",
        "core/part/tickets.h",
        "\t\tw_unpark_all(slot);\n",
        "",
    ),
    Fault(
        "granted-but-asleep",
        "a grant does not wake a sleeping waiter",
        "waits",
        "core/part/wait.h",
        "\t\tw_unpark(status);\n",
        "",
    ),
    # ---- Deadlines ----
    Fault(
        "ticket-misses-release",
        "a polling waiter misses a release between its attempt and its read",
        "waits",
        "core/ticket.h",
        "\t\tseen = w_load_relaxed(&lock->tickets.serving);\n\t\tif (ticket_try_acquire(lock))\n"
        "\t\t\treturn true;\n",
        "\t\tif (ticket_try_acquire(lock))\n\t\t\treturn true;\n"
        "\t\tseen = w_load_relaxed(&lock->tickets.serving);\n",
    ),
    Fault(
        "granted-to-abandoned",
        "a release grants the lock to a waiter that has left",
        "waits",
        "core/part/wait.h",
        "return seen != NODE_ABANDONED;",
        "return true;",
    ),
    Fault(
        "abandoned-head",
        "a waiter that has left becomes the head",
        "shuffle",
        "core/part/shuffle.h",
        "} while (seen == SHFL_ABANDONED);",
        "} while (seen == SHFL_FREE);",
    ),
    Fault(
        "last-moment-grant-lost",
        "a waiter gives up although it was granted the lock at the last moment",
        "waits",
        "core/part/wait.h",
        "return w_exchange_acq_rel(status, NODE_ABANDONED) == NODE_GRANTED;",
        "return w_exchange_acq_rel(status, NODE_ABANDONED) == NODE_FREE;",
    ),
    # ---- The queue ----
    Fault(
        "role-lost",
        "the shuffler does not pass its role on",
        "shuffle",
        "core/part/shuffle.h",
        "\tw_store_release(&node->shuffler, 1);\n",
        "",
    ),
    Fault(
        "batch-without-end",
        "shuffling bypasses waiters without bound",
        "shuffle",
        "core/part/shuffle.h",
        "return last->batch < order.bound && (",
        "return (",
    ),
    Fault(
        "last-waiter-moved",
        "the shuffler moves the last waiter, behind which others link themselves",
        "shuffle",
        "core/part/shuffle.h",
        "if (!next)\n\t\treturn false;\n\t/*\n\t * [SHUFFLE-4]",
        "/*\n\t * [SHUFFLE-4]",
    ),
    Fault(
        "secondary-queue-dropped",
        "a release drops the secondary queue when it should return to the front",
        "cna",
        "core/cna.h",
        "\t\tnext = second;\n",
        "",
    ),
    Fault(
        "secondary-queue-overwritten",
        "waiters moved to the secondary queue replace those already in it",
        "cna",
        "core/cna.h",
        "if (node->secondary_queue) {\n"
        "\t\tw_store_relaxed(&node->secondary_queue->secondary_tail->mcs.next,",
        "if (node->secondary_queue && first == last) {\n"
        "\t\tw_store_relaxed(&node->secondary_queue->secondary_tail->mcs.next,",
    ),
    Fault(
        "threshold-ignored",
        "local hand-overs have no bound",
        "cna",
        "core/cna.h",
        "\tif (node->secondary_queue && !cna_may_defer(node->left))\n\t\treturn NULL;\n",
        "",
    ),
    Fault(
        "threshold-off-by-one",
        "one local hand-over exceeds the bound",
        "cna",
        "core/cna.h",
        "1 + w_random() % threshold",
        "1 + w_random() % (threshold + 1)",
    ),
    # ---- The tour ----
    Fault(
        "one-slot-for-two",
        "two threads of one CPU share a slot, and both enter",
        "ron",
        "core/ron_ticket.h",
        "w_fetch_add_relaxed(&place->next, TICKETS_STEP) + TICKETS_STEP;",
        "w_load_relaxed(&place->next) + TICKETS_STEP;\n\tw_store_relaxed(&place->next, number);",
    ),
    Fault(
        "ticket-after-mark",
        "a waiter announces itself before it has its ticket",
        "ron",
        "core/ron_ticket.h",
        "\tconst uint32_t number = w_fetch_add_relaxed(&place->next, TICKETS_STEP) "
        "+ TICKETS_STEP;\n"
        "\n\tif (tour_mark(&lock->tour, here))\n",
        "\tconst bool first = tour_mark(&lock->tour, here);\n"
        "\tconst uint32_t number = w_fetch_add_relaxed(&place->next, TICKETS_STEP) "
        "+ TICKETS_STEP;\n"
        "\n\tif (first)\n",
    ),
    Fault(
        "token-stranded",
        "the token stays at a place whose last waiter has left",
        "ron",
        "core/ron_plock.h",
        "left = (seen & ~RON_PLOCK_TOKEN) - 1;",
        "left = (only_with_token ? seen & ~RON_PLOCK_TOKEN : seen) - 1;\n"
        "\t\tif (!only_with_token && w_compare_exchange_acquire(&place->word, &seen, left))\n"
        "\t\t\treturn false;",
    ),
    Fault(
        "token-to-empty-place",
        "a release hands the token to a place without waiters",
        "ron",
        "core/ron_plock.h",
        "\t\tif (!(seen & RON_PLOCK_WAITERS))\n\t\t\treturn false;\n",
        "\t\t;\n",
    ),
    Fault(
        "sleepers-of-a-place-forgotten",
        "a waiter that takes the token clears the other sleepers' flag",
        "ron",
        "core/ron_plock.h",
        "left & RON_PLOCK_WAITERS ? left : 0)",
        "left & RON_PLOCK_WAITERS)",
    ),
    Fault(
        "scan-then-clear",
        "a release frees the lock although a waiter has arrived since the search",
        "ron",
        "core/part/tour.h",
        "if (w_compare_exchange_release(&tour->word, &seen, 0))\n\t\t\treturn;",
        "if (w_store_release(&tour->word, 0), seen)\n\t\t\treturn;",
    ),
    Fault(
        "no-rescan",
        "a release clears a group's bit although a waiter has arrived since the search",
        "ron",
        "core/part/tour.h",
        "\tw_fence_seq_cst();\n\tfound = tour_scan(tour, kind, from, end);\n",
        "\tw_fence_seq_cst();\n",
    ),
    Fault(
        "tour-from-where-it-runs",
        "a holder that migrates restarts the tour at its new place",
        "ron",
        "core/part/tour.h",
        "uint32_t next = tour->at;",
        "uint32_t next = tour_here(tour);",
    ),
    Fault(
        "own-place-first",
        "a release always serves the holder's place first",
        "ron",
        "core/part/tour.h",
        "found = tour_scan(tour, kind, at + 1, tour_end(tour, at));",
        "found = tour_scan(tour, kind, at, tour_end(tour, at));",
    ),
    Fault(
        "reverse-order",
        "the waiters of a place are served in the reverse order of arrival",
        "ron",
        "core/ron.h",
        "for (struct ron_node *last = ron_node(arrived); last; last = next) {",
        "node = ron_node(arrived);\n\t\tfor (struct ron_node *last = NULL; last; last = next) {",
    ),
    Fault(
        "places-beyond-the-array",
        "a CPU has a place beyond the end of the array",
        "ron",
        "core/part/tour.h",
        "return position < tour->places ? position : position % tour->places;",
        "return position;",
    ),
    Fault(
        "endless-stay",
        "the lock stays in a domain for as long as its threads come back in time",
        "stay",
        "core/part/stay.h",
        "(laps + 1) * places > bound ||",
        "(laps + 1) * places > bound + 1000 ||",
    ),
    Fault(
        "lap-from-where-it-began",
        "a lap begins where the former one began, and passes over who waits before that",
        "stay",
        "core/part/stay.h",
        "found = stay_scan(tour, kind, domain.first, stay.lap + 1u);",
        "found = stay_scan(tour, kind, stay.lap, stay.lap + 1u);",
    ),
    Fault(
        "granted-across-locks",
        "a release grants the lock to a waiter of another lock that has taken the slot since",
        "ron_shared",
        "core/ron_shared.h",
        "\t\tif (seen != ron_shared_of(lock, RON_SHARED_WAITING) &&\n"
        "\t\t    seen != ron_shared_of(lock, RON_SHARED_PARKED))\n\t\t\treturn false;\n",
        "\t\t;\n",
    ),
    Fault(
        "waiters-forgotten",
        "a release that found no waiter frees the lock although one has arrived since",
        "ron_shared",
        "core/ron_shared.h",
        "return w_compare_exchange_release(&lock->word, &seen, 0);",
        "return (w_load_relaxed(&lock->word) & RON_SHARED_HELD) && (w_store_release(&lock->word, "
        "0), seen);",
    ),
    Fault(
        "slotless-never-retries",
        "a waiter without a slot never retries",
        "ron_shared",
        "core/ron_shared.h",
        "\t\tif (ron_shared_try_acquire(lock))\n\t\t\treturn true;\n",
        "",
    ),
    # ---- Placement ----
    Fault(
        "domain-by-division",
        "the node is computed as cpu / (cpus / nodes)",
        "topology",
        "world/user/topology.c",
        "if (domains[cpu] != domain)\n\t\t\t\tdomains[cpu] = domain;",
        "domains[cpu] = (uint16_t)(cpu / ((last + 2) / 2));",
    ),
    Fault(
        "hidden-behind-holes",
        "a gap in the CPU numbers hides the CPUs above it",
        "topology",
        "world/user/topology.c",
        "if (scratch.known[cpu])\n\t\t\tmissing = 0;",
        "",
    ),
    # ---- Memory ----
    Fault(
        "touched-after-release",
        "an unlock touches the lock after the access that frees it",
        "destroy ttas",
        "core/ttas.h",
        "w_event(wake_late);\n\t\tw_unpark(&lock->word);\n\t}\n",
        "w_event(wake_late);\n\t\tw_unpark(&lock->word);\n\t}\n"
        "\t(void)w_load_acquire(&lock->word);\n",
    ),
    Fault(
        "touched-after-hand-over",
        "a hand-over touches the lock after the grant",
        "destroy mcs",
        "core/mcs.h",
        "\t\tnode_free(&node->status);\n\t\tnode = next;\n",
        "\t\tnode_free(&node->status);\n\t\t(void)w_load_acquire(&lock->tail);\n\t\tnode = next;\n",
    ),
    Fault(
        "node-shared",
        "two threads share a record and its nodes",
        "records",
        "world/user/records.h",
        "if (is_vacant(seen) && claim(self, seen, owner)) {\n"
        "\t\t\tatomic_fetch_sub(&free_count, 1);\n"
        "\t\t\tatomic_store(&cursor, self->next);\n\t\t\treturn self;\n\t\t}",
        "if (self) {\n\t\t\tatomic_store(&self->owner, owner);\n\t\t\treturn self;\n\t\t}",
    ),
    Fault(
        "records-without-bound",
        "the records of threads that have ended are not reused",
        "records",
        "world/user/records.h",
        "atomic_store(&scan_at, 2 * alive + SCAN_SLACK);",
        "atomic_store(&scan_at, UINT32_MAX);",
    ),
    Fault(
        "assumes-tso",
        "a release is relaxed, as only a strongly ordered machine permits",
        "races ttas",
        "core/ttas.h",
        "w_store_release(&lock->word, TTAS_FREE);",
        "w_store_relaxed(&lock->word, TTAS_FREE);",
    ),
    Fault(
        "assumes-tso-mutex",
        "a release is relaxed, as only a strongly ordered machine permits",
        "races shfl_mutex",
        "core/shfl_mutex.h",
        "return w_compare_exchange_release(&lock->state, &seen, 0);",
        "return w_compare_exchange_relaxed(&lock->state, &seen, 0);",
    ),
    # ---- Fork ----
    Fault(
        "generation-ignored",
        "a forked child waits for waiters that exist only in its parent",
        "generation",
        "core/part/generation.h",
        "if (w_likely(seen == sound))",
        "if (sound || !sound)",
    ),
    Fault(
        "repair-of-a-parent",
        "a forked child waits for a repair that its parent has not finished",
        "generation",
        "core/part/generation.h",
        "if (seen != sound + 1 && ",
        "if (!(seen & 1) && ",
    ),
    Fault(
        "trylock-in-a-child",
        "trylock in a forked child fails because of its parent's queue",
        "generation",
        "core/shfl_spin.h",
        "if (w_load_relaxed(&lock->tail) && !shfl_spin_drop_waiters(lock))",
        "if (w_load_relaxed(&lock->tail))",
    ),
    Fault(
        "child-keeps-waiters",
        "a forked child's holder keeps its parent's waiters in the queue",
        "fork mcs",
        "lib/kept.h",
        "\tdrop(kept, holder);\n",
        "",
    ),
    Fault(
        "nodes-freed-in-a-child",
        "a forked child reuses nodes that locks still point to",
        "records",
        "world/user/process.h",
        "\tatomic_store(&free_count, count);\n",
        "\tatomic_store(&free_count, count);\n"
        "\tfor (struct w_self *self = atomic_load(&records); self; self = self->next)\n"
        "\t\tatomic_store(&self->nodes[0].status, 0);\n",
    ),
    Fault(
        "forker-unknown",
        "in a child made without fork()'s handlers, another thread gets the forker's record",
        "records",
        "world/user/process.h",
        "return noted ? noted : w_self_or_null;",
        "return noted ? noted : NO_RECORD;",
    ),
    Fault(
        "post-touches-memory",
        "a post looks for waiters after it has let one in, who may have freed the semaphore",
        "destroy semaphore",
        "core/sema.h",
        "if (seen & SEMA_PARKED)\n\t\tsema_wake",
        "if (w_load_relaxed(&sema->waiters) && (seen & SEMA_PARKED))\n\t\tsema_wake",
    ),
    Fault(
        "posts-lost-to-handlers",
        "a signal handler's post is lost in a process of one thread, which posts at that moment",
        "interrupted",
        "lib/sema.c",
        "#define W_NEVER_ALONE",
        "",
    ),
    Fault(
        "guest-left-behind",
        "a vfork child's record stays in the thread-local storage of its parent's thread",
        "records",
        "world/user/records.h",
        "if (!is_guest(owner))",
        "if (self)",
    ),
]


class Problem(Exception):
    """Returns the failure in one line."""


def copy(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name in COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (SOURCES / name).is_dir():
            shutil.copytree(SOURCES / name, target)
        else:
            shutil.copy(SOURCES / name, target)


def apply(fault, folder):
    path = folder / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise Problem(
            f"{fault.name}: {fault.file} has {text.count(fault.old)} places to put the fault in, "
            "not 1"
        )
    path.write_text(text.replace(fault.old, fault.new))


def compile_object(compiler, flags, source, folder, target):
    """Compiles a source of `folder`. Returns the files that it depends on, relative to `folder`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    rule = target.with_suffix(".d")
    command = [compiler, *COMPILE, *flags, *INCLUDES, "-c", source, "-o", str(target)]
    done = subprocess.run(
        [*command, "-MD", "-MF", str(rule)], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Problem(f"{folder.name} does not compile: {done.stderr.strip().splitlines()[0]}")
    _, _, files = rule.read_text().replace("\\\n", " ").partition(":")
    return {os.path.normpath(name) for name in files.split()}


def link(compiler, flags, objects, folder):
    command = [compiler, "-pthread", *flags, *map(str, objects), "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{folder.name} does not link: {done.stderr.strip().splitlines()[0]}")


class Objects:
    """The objects of the sources without a fault. Tests with the same flags share them."""

    def __init__(self, compiler, work, pool):
        self.compiler, self.work, self.pool = compiler, work, pool
        self.sources = work / "sound"
        self.compiled = {}  # by flags and source: the object, and a future of its dependencies
        copy(self.sources)

    def begin(self, test):
        """Has the test's objects compiled."""
        for source in test.sources:
            key = (tuple(test.flags), source)
            if key not in self.compiled:
                target = self.work / "objects" / str(len(self.compiled)) / "object.o"
                arguments = (self.compiler, test.flags, source, self.sources, target)
                self.compiled[key] = target, self.pool.submit(compile_object, *arguments)

    def of(self, test, folder, changed=None):
        """The test's objects; those that depend on the file `changed` are compiled in `folder`."""
        for source in test.sources:
            target, dependencies = self.compiled[tuple(test.flags), source]
            if changed in dependencies.result():
                target = folder / "objects" / f"{source}.o"
                compile_object(self.compiler, test.flags, source, folder, target)
            yield target


def run(test, folder, seconds):
    """Returns whether it passed, and its last line of output."""
    process = subprocess.Popen(
        ["./program", *test.arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # Includes its children: the group that start_new_session created.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, f"did not end within {seconds:.0f} s"
    lines = output.strip().splitlines() or [f"status {process.returncode}"]
    return process.returncode == 0, lines[0] if "WARNING" not in output else lines[1]


def expect_sound(name, folder, objects):
    """The duration of the test without a fault, in seconds."""
    test = TESTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    link(objects.compiler, test.flags, objects.of(test, folder), folder)
    began = time.monotonic()
    passed, said = run(test, folder, SOUND_SECONDS)
    if not passed:
        raise Problem(f"test '{name}' fails without a fault: {said}")
    print(f"sound     {name}", flush=True)
    return time.monotonic() - began


def expect_caught(fault, folder, objects, sound):
    """Runs the faulty build of a test that takes `sound`, a future, without the fault."""
    limit = FAULTY_SECONDS + FAULTY_FACTOR * sound.result()
    test = TESTS[fault.test]
    copy(folder)
    apply(fault, folder)
    link(objects.compiler, test.flags, objects.of(test, folder, fault.file), folder)
    passed, said = run(test, folder, limit)
    if passed:
        raise Problem(f"{fault.name}: test '{fault.test}' does not catch it: {fault.why}")
    shutil.rmtree(folder)
    print(f"caught    {fault.name}: {said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for the copies")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*", metavar="FAULT", help="only these")
    arguments = parser.parse_args()

    unknown = set(arguments.names) - {fault.name for fault in FAULTS}
    if unknown:
        sys.exit(f"faults: there is no fault '{sorted(unknown)[0]}'")
    faults = [fault for fault in FAULTS if not arguments.names or fault.name in arguments.names]
    faults = [fault for fault in faults if fault.test in TESTS]
    work = arguments.work.resolve()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        objects = Objects(arguments.compiler, work, pool)
        names = dict.fromkeys(fault.test for fault in faults)
        for name in names:
            objects.begin(TESTS[name])
        # A job waits only for jobs that were submitted before it.
        sound = {
            name: pool.submit(expect_sound, name, work / f"sound-{name.replace(' ', '-')}", objects)
            for name in names
        }
        jobs = [*sound.values()]
        jobs += [
            pool.submit(expect_caught, fault, work / fault.name, objects, sound[fault.test])
            for fault in faults
        ]
        for job in jobs:
            try:
                job.result()
            except Problem as problem:
                failed += 1
                print(f"MISSED    {problem}", flush=True)
    print(f"{len(jobs) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
