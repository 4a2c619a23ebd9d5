# SPDX-License-Identifier: MIT OR Apache-2.0
"""Guests of the kernel's tests, the cases that they run, and the judges of the results."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

STALL = 600  # seconds without an acquisition, until the module reports a hang


@dataclass
class Result:
    """The module's line about a run."""

    status: int
    text: str

    def number(self, name):
        match = re.search(rf"\b{name}=(\d+)", self.text)
        return int(match.group(1)) if match else None


@dataclass
class Case:
    """@run is written to the module; @judge returns a complaint about the result, or nothing. With
    @command, another command of guest/init runs instead, with @run and @more as its arguments."""

    run: str
    judge: Callable[[Result], str]
    command: str = "run"
    more: str = f"stall={STALL}"

    @property
    def line(self):
        """The guest's line for this case."""
        return f"{self.command} {self.run} {self.more}"

    @property
    def lock(self):
        return self.run.split()[0]

    @property
    def key(self):
        """Its name among the counts of its guest."""
        return self.run if self.command == "run" else f"{self.command} {self.run}"


def is_sound(result):
    return "" if result.status == 0 and result.text.endswith(" ok") else "the lock failed"


def is_refused(result):
    return (
        ""
        if result.status != 0 and not result.text.startswith("lock=frob ")
        else "it was not refused"
    )


def is_caught(result):
    return (
        ""
        if result.status != 0 and result.text.endswith(" FAILED")
        else "the broken lock was not caught"
    )


def within(name, least, most):
    """A judge: the lock is sound, and the count @name is in @least .. @most."""

    def judge(result):
        number = result.number(name)
        if is_sound(result) or number is None:
            return is_sound(result) or f"{name} was not counted"
        return (
            ""
            if least <= number <= most
            else f"{name} is {number}, and should be from {least} to {most}"
        )

    return judge


def all_of(*judges):
    """A judge: the first complaint of @judges, if any."""

    def judge(result):
        return next(filter(None, (each(result) for each in judges)), "")

    return judge


# Counts that a torture with signals and readers must have seen.
INTERRUPTED = within("interrupted", 1, 10**9)
SHARED = all_of(INTERRUPTED, within("together", 1, 10**9), within("downgrades", 1, 10**9))

# A held mutex names its holder to other threads; cfl's names nobody.
NAMES = all_of(INTERRUPTED, within("named", 1, 10**9), within("misnamed", 0, 0))
NAMELESS = all_of(INTERRUPTED, within("named", 0, 0))

# Interrupted waits that stay in a queue for a run: more than a user has nodes.
LEFT = 1200
CROWDED = all_of(
    *[within(name, 0, 0) for name in ("placeless", "deaf", "pinned")],
    within("left", 500, LEFT + 100),
)

# Orders of 16 CPUs on 2 nodes that always compete, per 1,000 acquisitions. FIFO locks cross nodes
# at random; NUMA-aware locks seldom leave a node; a route crosses 2 times in a tour of at most 16.
FIRST_COME = all_of(within("remote_per_1000", 400, 1000), within("off_route_per_1000", 400, 1000))
NEAR = within("remote_per_1000", 0, 49)
BY_ROUTE = all_of(within("remote_per_1000", 124, 200), within("off_route_per_1000", 0, 9))

# Waiters may be passed this often between being counted as waiting and entering the queue, since
# the turn of an emulated CPU can end there.
LATE = 4

# Events that a kernel of sleeping ShflLocks with interrupted waits must have counted, and events
# that it must not.
OFTEN = [
    within(name, 1, 10**12) for name in ("park", "wake_late", "abandon", "skip", "shuffle_move")
]
EVENTS = Case("events", all_of(*OFTEN, within("wake_in_cs", 0, 0)), "events", "")


def says(words):
    """A judge of the kernel's own tests."""

    def judge(result):
        return "" if words in result.text else f"it did not say '{words}'"

    return judge


def others(least, most):
    """A judge of a load of guest/init's `share`: of 1,000 acquisitions, those of class 1."""

    def judge(result):
        preferred, other = result.number("taken_0"), result.number("taken_1")
        if is_sound(result) or not preferred:
            return is_sound(result) or "class 0 took nothing"
        part = other * 1000 // (preferred + other)
        return "" if least <= part <= most else f"{part} of 1,000 acquisitions are of class 1"

    return judge


def tortured(name, command, more, counts, word="SUCCESS"):
    """The kernel's own torture @command, which should end in @word and have @counts that are not
    0."""
    done = [within(count, 1, 10**12) for count in counts]
    return Case(name, all_of(says(f"End of test: {word}"), *done), command, more)


def locktorture(name, word="SUCCESS", seconds=10, counts=()):
    """The torture of the lock @name, by 8 writers and, if the lock has readers, 8 readers."""
    counts = ["writes", *(["reads"] if name.startswith("rw") else []), *counts]
    return tortured(name, "locktorture", f"8 {seconds}", counts, word)


# Further tortures. Threads must wait for spin locks in those with interrupts off and in those of
# readers-writer locks, whose waiters queue by a spin lock; in that of RCU few do.
MORE_TORTURE = [
    *(
        locktorture(name, seconds=3, counts=["waited"])
        for name in ("spin_lock_irq", "rw_lock", "rw_lock_irq")
    ),
    tortured("rcu", "rcutorture", "8 5", ["updates", "reads", "barriers"]),
]


def by_weight(lock):
    """Tasks of two cgroups: 2 tasks with short holds and 6 tasks with holds four times as long. The
    first group's share in 1,000 must be within a tenth of its weight. No lock that ignores weights
    achieves that under both."""
    share = [((100, 100), 450, 550), ((100, 300), 225, 275)]
    return [
        Case(f"{lock} {first} {second}", within("share_per_1000", least, most), "share", "")
        for (first, second), least, most in share
    ]


def crowded_case(lock):
    """The torture of @lock without nodes of root. Other users have theirs."""
    return Case(f"native:{lock} count=30 threads=24 leave={LEFT}", CROWDED)


ROUNDS = 4
# A user's nodes: CHUNK_NODES and MOST_CHUNKS of world/kernel/park.c.
CHUNK, CHUNKS = 63, 9


def interrupted_cases(lock):
    """A user's interrupted waits use up its nodes, all of which return, but no nodes of others.
    More waits than nodes can be interrupted, since some take none: any number of reads of a
    terminal, and, fewer than a chunk, those of processes that sleep elsewhere when they are
    killed."""
    kinds = {"mutex": ["tty", "mutex"], "rwsem": ["folder"]}[lock]
    judge = all_of(
        within("deaf", 0, 0),
        within("later", 0, 0),
        within("emptied", ROUNDS, ROUNDS),
        within("least", 500, 10**9),
    )
    few = within("most", 0, CHUNK * CHUNKS + CHUNK - 1)
    return [
        Case(
            f"{kind} {user} {ROUNDS}",
            judge if kind == "tty" else all_of(judge, few),
            "interrupted",
            "",
        )
        for kind in kinds
        for user in ("user", "space", "rooted")
    ]


WAIT_WOUND = Case("ww_mutex", says("All ww mutex selftests passed"), "ww_mutex", "")


@dataclass
class Guest:
    name: str
    cpus: int
    nodes: int
    thread: str
    cases: list = field(default_factory=list)
    # Values of poundlock.NAME, and the choice that the kernel then reports, if it differs.
    sets: dict = field(default_factory=dict)
    uses: dict = None
    refusal: str = "there is no such "  # the kernel's line about a value that it does not use
    boot: str = ""  # more boot parameters
    hypervisor: bool = False  # whether the CPUs show that they are a hypervisor's
    caches: int = 0  # last-level caches of a node, of cores with two threads; 0: not emulated
    rival: str = ""  # the guest than which it moves no more cache lines, by exact counts
    disk: Path = None  # image of the root file system; default: none, the initramfs is the root

    def __post_init__(self):
        if self.uses is None:
            self.uses = self.sets

    @property
    def counts(self):
        """Whether the kernel's own locks count their events."""
        return any(case.command in ("counted", "events") for case in self.cases)

    @property
    def measures(self):
        """Whether it runs kernel/bench.py, which needs Python."""
        return any(case.command in ("compared", "unmeasured") for case in self.cases)

    @property
    def loads(self):
        """Whether it loads policies as BPF programs."""
        return self.name.startswith("bpf")

    @property
    def profiles(self):
        """Whether it runs perf."""
        return any(case.command.startswith("owners") for case in self.cases)

    @property
    def debugs(self):
        """Whether it runs drgn."""
        return any(case.command == "debugged" for case in self.cases)

    @property
    def raced(self):
        """Whether the kernel detects data races."""
        return any(case.command == "races" for case in self.cases)


# Settings of a run whose threads only take the lock, so that it is always contended.
COMPETE = "try=0 nest=0 irq=0 hold=32 pause=2"
ALWAYS = f"{COMPETE} urgent=0"

# As COMPETE, for locks of tasks.
TASKS_COMPETE = "try=0 nest=0 signal=0 hold=32 pause=2 stay=0 threads=16"

# A threshold that such a run does not reach: time has no meaning here.
BY_COUNT = "threshold 100000"

# A spinning waiter without pauses keeps an emulated CPU for its whole time slice.
PAUSES = {"tas": "backoff=8"}


# Locks for tasks, whose waiters sleep.
SLEEPING = [f"park:{name}" for name in ("hapax", "mutexee", "shfl_mutex", "shfl_spin", "ticket")]
