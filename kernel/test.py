#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tortures Poundlock's locks inside Linux, in QEMU guests, and checks their promises by counts.

The module poundlock_torture is built against the installed linux-headers, without a warning from
the compiler (W=1) or from sparse. The matching unmodified Debian kernel loads it, in an emulated
machine (TCG):

  torture   8 CPUs on 4 nodes that take turns (thread=single); each lock with trylock, nesting
            and interrupts
  parallel  the same with 2 CPUs that run in parallel (thread=multi)
  realtime  2 CPUs of a preemptible kernel: half of the threads are of SCHED_FIFO
  order     16 CPUs on 2 nodes: how often the lock crosses nodes, and how often waiters are passed
  hotplug   8 CPUs on 4 nodes; all but one go offline and come back during each torture
  unmeasured  2 CPUs: bench.py, which compares our kernel's locks, refuses this one

--own builds a small kernel in which Poundlock's locks replace its own (kernel/own.py). Building it
takes minutes once. For each choice of poundlock.spin:

  CHOICE           16 CPUs on 2 nodes: the kernel's own spin lock torture, and the order of waiters
  CHOICE-parallel  2 CPUs in parallel: the kernel's spin lock torture and the module's
  cfl-shares       8 CPUs on 4 nodes: the shares of two cgroups in the time of CFL's spin lock

For each choice of poundlock.mutex:

  mutex-CHOICE           8 CPUs on 4 nodes: the module's torture of mutexes, the kernel's own, its
                         test of ww_mutex and, for CFL, the shares of two cgroups
  mutex-CHOICE-parallel  the same with 2 CPUs in parallel

For each choice of poundlock.rwsem:

  rwsem-CHOICE           8 CPUs on 4 nodes: the module's torture of rwsems, with downgrades, and
                         the kernel's own
  rwsem-CHOICE-parallel  the same with 2 CPUs in parallel

`counts-CHOICE`, for stock locks and ShflLocks, shows the order of mutex and rwsem and the threads
they wake. `all` and `all-parallel` use ShflLocks for everything. `switched` changes the spin lock
during the torture. `tuned`, `tuned-live` and `tuned-live-parallel` change policy and batch of
ShflLocks. `measured` compares choices by bench.py. `urgent` counts the waiters that no later one
may pass. `domains` and `domains-...` have one node with caches of its own for groups of CPUs.
`hotplug-CHOICE`, for each choice of poundlock.spin, takes CPUs offline and back during
tortures of all three kinds. With many CPUs that take turns, files and memory are put under load too
(guest/stress.c).

--hook loads the module poundlock_hook, which orders the waiters of spin locks, into Debian's
unmodified kernel: hook-order, hook-torture, hook-parallel and, with --exact, exact-hook;
hook-alone and hook-hypervisor, in which it must be refused.

--distribution builds a kernel with PREEMPT_DYNAMIC, HZ=250 and PARAVIRT_SPINLOCKS, as distributions
do, and boots it with preempt=full: distribution-CHOICE.

--patched builds a kernel from sources to which the patches of patch.py are applied: patched. It
also checks that the packages of deb.py keep Debian's configurations, where linux-config-* is
installed.

--checked builds a kernel with PROVE_LOCKING and DEBUG_ATOMIC_SLEEP, which must stay silent during
all of that: checked-CHOICE. --kcsan builds a kernel that detects data races: kcsan-CHOICE, and
-parallel, for each choice but stock. --bpf builds a kernel 6.12 that loads policies as BPF
programs: bpf, bpf-order, bpf-live and bpf-live-parallel; in bpf-owners-CHOICE perf names holders of
locks. --exact runs exact-8, exact-16, exact-32, with --own exact-CHOICE and exact-2-CHOICE, and
with --bpf bpf-exact, under QEMU 10, whose counts are reproducible (exact.py).

Time has no meaning in such guests, so only counts are checked. Every guest must end by itself
within its limit, else the last lines of its console are printed. The last line is `N passed, N
failed`.
"""

import argparse
import contextlib
import functools
import gzip
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = True
import deb  # noqa: E402
import exact  # noqa: E402
import own  # noqa: E402
import patch  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build/kernel"
PACKAGES = [
    "linux-headers-amd64",
    "qemu-system-x86",
    "busybox-static",
    "sparse",
    "cpio",
    "make",
    "gcc",
]

STRESS = HERE / "guest/stress.c"
# Policies as BPF programs: the examples, with the header of all, and those of the tests.
POLICIES = [HERE / "policies", HERE / "guest/policies"]
BPFTOOL = Path("/usr/sbin/bpftool")
# The only series whose kernel has them.
BPF_SERIES = "6.12"

# For kernel/bench.py in a guest.
PYTHON = "python3.11"
MEASURING = {
    "kernel/bench.py": HERE / "bench.py",
    "bench/command_line.py": ROOT / "bench/command_line.py",
    "bench/ratios.py": ROOT / "bench/ratios.py",
}

# Bounds on hangs in seconds: many times the duration on a busy machine.
GUEST_LIMIT = 1200  # for a guest
BUILD_LIMIT = 3600  # for the module's build
STALL = 600  # without an acquisition, until the module reports a hang
CONSOLE_LINES = 40  # of the console of a guest that did not end


class Failure(Exception):
    """A prerequisite of every guest is missing; the text names it."""


# ---- Guests' cases and their expected results ----


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

# Interrupted waits that stay in a queue for a run: more than the pool has nodes.
LEFT = 1200
CROWDED = all_of(
    *[within(name, 0, 0) for name in ("placeless", "pinned")], within("left", 1000, LEFT + 100)
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


def locktorture(name, word="SUCCESS"):
    """The kernel's own torture of the lock @name, by 8 writers; it should end in @word."""
    return Case(name, says(f"End of test: {word}"), "locktorture", "8")


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
    """The torture of @lock without nodes in the pool for interruptible waiters."""
    return Case(f"native:{lock} count=30 threads=24 leave={LEFT}", CROWDED)


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
    boot: str = ""  # more boot parameters
    hypervisor: bool = False  # whether the CPUs show that they are a hypervisor's
    caches: int = 0  # last-level caches of a node, of cores with two threads; 0: not emulated
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


def guests(names):
    """The guests of the unmodified kernel, and their cases, for the locks @names."""
    torture = Guest(
        "torture",
        8,
        4,
        "single",
        [
            Case("frob", is_refused),
            Case("broken count=400", is_caught),
            Case("broken:mutex count=50 threads=16", is_caught),
            Case("broken:rwsem count=50 threads=16", is_caught),
        ],
    )
    # More threads than CPUs.
    torture.cases += [
        Case(f"{name} count=200 threads=16", within("parks", 1, 10**9)) for name in SLEEPING
    ]
    torture.cases += [
        Case(f"{lock} count=400 {PAUSES.get(lock, '')}".strip(), is_sound) for lock in names
    ]
    # Enough work that both CPUs meet inside the lock even if the host seldom runs them together.
    parallel = Guest("parallel", 2, 2, "multi", [Case("broken count=50000 hold=64", is_caught)])
    parallel.cases += [Case(f"{lock} count=4000 hold=64", is_sound) for lock in names]
    # Real-time threads, which must not keep the CPU from preempted threads that they wait for.
    realtime = Guest(
        "realtime",
        2,
        1,
        "single",
        boot="preempt=full",
        cases=[
            Case(
                f"{name} fifo=1 count=5000 threads=8 stay=0 pause=64",
                within("parks", 1, 10**9),
                "realtime",
            )
            for name in SLEEPING
        ],
    )
    return [
        torture,
        parallel,
        realtime,
        Guest("order", 16, 2, "single", order_cases(16)),
        Guest("hotplug", HOTPLUG_CPUS, 4, "single", hotplug_cases(names, SLEEPING, 1)),
        Guest(
            "unmeasured",
            2,
            1,
            "single",
            [Case("has+no+locks+of+Poundlock", is_sound, "unmeasured", "")],
        ),
    ]


HOTPLUG_CPUS = 8


def hotplug_cases(spinning, sleeping, times):
    """All CPUs but the first go offline and come back @times times during tortures of a lock whose
    waiters spin, and stay on their CPU, and of a lock whose waiters sleep, and may wake elsewhere.
    """
    changes = 2 * (HOTPLUG_CPUS - 1) * times
    gone = within("hotplugs", changes, changes)
    spun, slept = [
        all_of(gone, within(counted, 1, 10**9))
        for counted in ("all_driven", "all_driven_waiting")
    ]
    during = f"beside hotplugs {times}"
    cases = [
        Case(f"{lock} count=200 threads=12 move=1 {PAUSES.get(lock, '')}".strip(), spun, during)
        for lock in spinning
    ]
    return cases + [Case(f"{lock} count=100 threads=24 move=1", slept, during) for lock in sleeping]


def own_guests():
    """Guests of the kernel with replaced locks."""
    every = spin_guests()
    every += sleeping_guests(
        "mutex",
        [WAIT_WOUND, locktorture("mutex_lock")],
        {"stock": (NAMES, []), "shfl": (NAMES, []), "cfl": (NAMELESS, by_weight("mutex"))},
    )
    every += sleeping_guests(
        "rwsem", [locktorture("rwsem_lock")], {"stock": (SHARED, []), "shfl": (SHARED, [])}
    )
    every += all_guests() + counts_guests() + switched_guests() + tuned_guests()
    every += measured_guests() + urgent_guests() + domain_guests()
    gone = [
        locktorture("spin_lock"),
        *hotplug_cases(["native"], ["native:mutex", "native:rwsem"], 2),
    ]
    every += [
        Guest(f"hotplug-{name}", HOTPLUG_CPUS, 4, "single", gone, chosen)
        for name, chosen in ALL.items()
    ]
    # Invalid choices: the kernel reports them and uses the stock locks.
    broken = every[1]
    broken.sets = dict.fromkeys(CHOICES, "frob")
    broken.uses = dict.fromkeys(CHOICES, "stock")
    broken.cases.insert(0, locktorture("lock_busted", "FAILURE"))
    return every


# The kernel's parameters.
CHOICES = ["spin", "mutex", "rwsem"]

# Named by the spin lock; a mutex or rwsem without that choice is ShflLock's.
ALL = {name: dict.fromkeys(CHOICES, name) for name in ("stock", "shfl")}
ALL |= {name: ALL["shfl"] | {"spin": name} for name in ("cna", "ron")}
ALL["cfl"] = ALL["shfl"] | {"spin": "cfl", "mutex": "cfl"}

# The bound on bypass of a CFL waiter, by moved waiters and by newcomers each.
CFL_BYPASS = 1024


def spin_guests():
    cpus = 16
    # Under RON every other CPU passes a waiter once per tour, plus one that was appointed before.
    orders = {
        "stock": FIRST_COME,
        "cna": NEAR,
        "shfl": NEAR,
        "ron": all_of(BY_ROUTE, within("most_passed", 1, cpus + LATE)),
        "cfl": within("most_passed", 1, 2 * CFL_BYPASS + cpus),
    }
    every = []
    for choice, order in orders.items():
        torture, chosen = locktorture("spin_lock"), {"spin": choice}
        alone = Guest(choice, cpus, 2, "single", [torture, *files(16, 30)], chosen)
        alone.cases += [
            Case("native count=400", is_sound),
            Case(f"native count=500 {ALWAYS}", order, BY_COUNT),
        ]
        if choice in ("cna", "shfl"):
            alone.cases += urgent_cases("native", cpus) + threshold_cases(cpus)
        if choice == "ron":
            # Seldom two at once, which the tour would pass in between.
            alone.cases += urgent_cases("native", cpus, 1, 4 + LATE)
        parallel = Guest(
            f"{choice}-parallel",
            2,
            2,
            "multi",
            [torture, Case("native count=10000 hold=64", is_sound)],
            chosen,
        )
        every += [alone, parallel]
    return every + [Guest("cfl-shares", 8, 4, "single", by_weight("spin"), {"spin": "cfl"})]


def urgent_cases(lock, cpus, some=25, passed=None):
    """Waits with interrupts off, in @some percent of the turns and in all: they are passed no more
    than @passed times, by default once by each other CPU. Where no waiter is urgent, they are
    passed more often."""
    passed = passed or cpus + LATE
    some = f"{lock} count=500 {COMPETE} urgent={some}"
    return [
        Case(some, within("most_urgent_passed", passed + 1, 10**9), "unhurried"),
        Case(some, within("most_urgent_passed", 0, passed)),
        Case(f"{lock} count=500 {COMPETE} urgent=100", within("most_passed", 1, cpus + LATE)),
    ]


def threshold_cases(cpus):
    """A waiter of the other node is passed for the threshold, and then once by each CPU."""
    run = f"native count=1000 {ALWAYS} late=1"
    return [
        Case(run, within("most_late", 0, 2 * cpus), "threshold 1"),
        Case(run, within("most_late", 4 * cpus, 10**9), BY_COUNT),
    ]


def sleeping_guests(lock, own_tests, choices):
    """Guests of @lock: its torture, then the kernel's @own_tests. @choices has for each choice the
    judge of the torture, and more cases for CPUs that take turns."""
    every = []
    for choice, (judged, more) in choices.items():
        chosen = {lock: choice}
        # More threads than CPUs, which interrupt each other.
        torture = Case(f"native:{lock} count=300 threads=24", judged)
        every.append(
            Guest(
                f"{lock}-{choice}",
                8,
                4,
                "single",
                [torture, crowded_case(lock), *own_tests, *more, *files(16, 60)],
                chosen,
            )
        )
        torture = Case(f"native:{lock} count=3000 threads=6", judged)
        every.append(
            Guest(f"{lock}-{choice}-parallel", 2, 2, "multi", [torture, *own_tests], chosen)
        )
    return every


def exact_guests():
    """Guests whose counts are compared with recorded ones. Few turns, since QEMU is slow in this
    mode."""
    names = ["ticket", "mcs", "clh", "cna", "shfl_spin", "ron", "native"]
    cases = [Case(f"{lock} count=50 {ALWAYS}", is_sound) for lock in names]
    return [
        Guest(f"exact-{cpus}", cpus, nodes, "single", cases)
        for cpus, nodes in ((8, 2), (16, 2), (32, 4))
    ]


def own_exact_guests():
    """The same for the kernel's own spin lock, also with two CPUs on two nodes. Nothing is
    recorded, since each change makes another kernel."""
    many, two = [
        [Case(f"native count={count} {ALWAYS}", is_sound, BY_COUNT)] for count in (50, 400)
    ]
    return [
        guest
        for choice in ("stock", "cna", "shfl", "ron", "cfl")
        for guest in (
            Guest(f"exact-{choice}", 16, 2, "single", many, {"spin": choice}),
            Guest(f"exact-2-{choice}", 2, 2, "single", two, {"spin": choice}),
        )
    ]


def hook_exact_guests():
    """As the native lock of exact-16, with the module poundlock_hook. Nothing is recorded: the
    module's address differs between builds."""
    case = Case(f"native count=50 {ALWAYS}", is_sound, "hooked 100000 0")
    return [Guest("exact-hook", 16, 2, "single", [case])]


def bpf_guests():
    """Guests of ShflLocks whose policies are BPF programs. Six of eight tasks are of class 0, hold
    the lock for a quarter of the others' time, and are preferred by an example or not."""
    spin, rwsem = (
        f"native count=500 {COMPETE} urgent=1",
        f"native:rwsem count=200 reads=0 {TASKS_COMPETE}",
    )

    def loaded(policy, file, value, command, run, judge):
        return Case(run, judge, f"loaded {policy} tuned {file} {value} {command}")

    def shared(lock, judge, policy="", command="", weights="100 100", hold=1000):
        tuned = f"loaded {policy} {command} tuned {lock}_policy {policy} " if policy else ""
        load = f"{tuned}tuned threshold 100000 share"
        return Case(f"{lock} {weights} {hold} 00000011", judge, load, "")

    preferred, equal = others(0, 30), others(70, 400)
    near, crossed_spin = within("remote_per_1000", 0, 199), within("remote_per_1000", 400, 1000)
    crossed, kept = within("crossed_per_1000", 400, 1000), within("crossed_per_1000", 0, 49)
    examples = []
    for lock in ("spin", "mutex"):
        examples += [
            shared(lock, equal),
            shared(lock, preferred, "cgroup_first", weights="900 100"),
            shared(lock, equal, "cgroup_first"),
            shared(lock, preferred, "vcpu_first", "vcpus"),
            shared(lock, equal, "vcpu_first"),
        ]
    # Holds longer than the turns of emulated CPUs, which lengthen each hold, and the order with it:
    # the figures are reported, and only the load is judged.
    examples += [shared("mutex", equal, hold=8000)]
    examples += [shared("mutex", is_sound, "short_first", hold=8000)]
    orders = [Case(spin, crossed_spin, "tuned spin_policy fifo " + BY_COUNT)]
    orders += [
        loaded("by_domain", file, value, BY_COUNT, spin, near)
        for file, value in (("spin_policy", "by_domain"), ("locks", "policy=by_domain"))
    ]
    traced = all_of(within("handovers", 400, 800), within("moves", 1, 10**6))
    orders += [Case(f"native count=50 {COMPETE} urgent=1", traced, "traced")]
    orders += [Case(rwsem, crossed, "tuned rwsem_policy fifo run")]
    orders += [
        loaded("by_domain", file, value, "run", rwsem, kept)
        for file, value in (("rwsem_policy", "by_domain"), ("locks", "policy=by_domain"))
    ]
    refused = {
        "endless": "infinite+loop+detected",
        "locking": "cannot+use+helper+bpf_map_update_elem",
        "calling": "attach+to+unsupported+member+rank",
        "jumping": "attach+to+unsupported+member+rank",
        "writing": "only+read+is+supported",
        "fifo": "can't+register+struct_ops+fifo",
    }
    ended = {
        "slow spin": "its+rank()+takes+too+long",
        "late spin": "a+waiter+waited+for+too+long",
        "late mutex": "a+waiter+waited+for+too+long",
    }
    checks = [Case(f"{name} {text}", is_sound, "unverified", "") for name, text in refused.items()]
    checks += [Case(f"{name} {text}", is_sound, "ended", "") for name, text in ended.items()]
    live = [
        Case(f"{lock} {load}", within("reloads", 4 * 20, 4 * 20), "beside reloads 20")
        for lock, load in {
            "native": "count=1000",
            "native:mutex": "count=100 threads=24",
            "native:rwsem": "count=100 threads=24",
        }.items()
    ]
    return [
        Guest("bpf", 8, 4, "single", [*examples, *checks], ALL["shfl"]),
        Guest("bpf-order", 16, 2, "single", orders, ALL["shfl"]),
        Guest("bpf-live", 8, 4, "single", live, ALL["shfl"]),
        Guest("bpf-live-parallel", 2, 2, "multi", live, ALL["shfl"]),
        *owners_guests(),
    ]


def bpf_exact_guests():
    """As the native lock of exact-16, by policies of the kernel and by programs, which are only
    called with interrupts on."""
    run = f"native count=50 {COMPETE} urgent=1"
    commands = [f"tuned spin_policy {policy} {BY_COUNT}" for policy in ("fifo", "numa", "group")]
    commands += [
        f"loaded {policy} tuned spin_policy {policy} {BY_COUNT}"
        for policy in ("by_domain", "cgroup_first", "vcpu_first")
    ]
    cases = [Case(run, is_sound, command) for command in commands]
    return [Guest("bpf-exact", 16, 2, "single", cases, {"spin": "shfl"})]


def owners_guests():
    """Guests in which perf attributes the waits for a mutex or rwsem to its holder. The holder of
    the interrupted waits is one known task. CFL's mutex names nobody."""
    left = within("left", 1000, 2 * LEFT)
    whole = all_of(left, within("owned", 1000, 2 * LEFT))
    nobody = all_of(left, within("owned", 0, 0))
    return [
        Guest(
            f"bpf-owners-{choice}",
            8,
            4,
            "single",
            [
                Case(
                    f"native:{lock} count=30 threads=24 leave={LEFT}",
                    nobody if (choice, lock) == ("cfl", "mutex") else whole,
                    f"owners {lock}",
                )
                for lock in ("mutex", "rwsem")
            ],
            ALL[choice],
        )
        for choice in ("stock", "shfl", "cfl")
    ]


def all_guests():
    """Guests in which all locks are ShflLocks."""
    chosen = ALL["shfl"]
    cases = [
        Case("native count=2000", is_sound),
        Case("native:mutex count=300 threads=24", INTERRUPTED),
        Case("native:rwsem count=300 threads=24", SHARED),
    ]
    crowded = [crowded_case(lock) for lock in ("mutex", "rwsem")]
    return [
        Guest("all", 8, 4, "single", cases + crowded + [EVENTS] + files(16, 60), chosen),
        Guest("all-parallel", 2, 2, "multi", cases + files(8, 100), chosen),
    ]


def files(threads, count):
    """Load on files and memory by @threads threads of @rounds rounds."""
    names = re.findall(r'^\t\{"(\w+)", ', STRESS.read_text(), re.MULTILINE)
    return [Case(name, is_sound, "stress", f"{threads} {count}") for name in names]


def counts_guests():
    """The order of the kernel's own mutex and rwsem: with one thread per CPU, which mostly spin,
    and with three, which sleep. The figures are hand-overs between writers, per 1,000, that cross
    nodes."""
    near, some = (0, 49), (0, 299)
    stocks = {near: (400, 1000), some: (300, 1000)}
    spinning, sleeping = (
        "try=0 nest=0 signal=0 hold=32 pause=2 " + more
        for more in ("stay=0 threads=16", "threads=48")
    )
    # None: with readers, which wake the sleeping readers behind them.
    loads = {
        f"mutex {spinning}": some,
        f"mutex {sleeping}": some,
        f"rwsem reads=0 {spinning}": near,
        f"rwsem reads=0 {sleeping}": some,
        f"rwsem {spinning}": None,
        f"rwsem {sleeping}": None,
    }
    stock, shfl = [
        Guest(f"counts-{name}", 16, 2, "single", [], ALL[name]) for name in ("stock", "shfl")
    ]
    for load, bounds in loads.items():
        run = "native:{} count=200 {}".format(*load.split(" ", 1))
        judges = (
            [within("park", 1, 10**9), within("wake_late", 1, 10**9)]
            if sleeping in load
            else []
        )
        judges += [within("crossed_per_1000", *bounds)] if bounds else []
        if sleeping in load and not bounds:
            judges.append(within("wake_early", 100, 10**9))
        stock.cases.append(
            Case(run, within("crossed_per_1000", *stocks[bounds]) if bounds else is_sound)
        )
        shfl.cases.append(Case(run, all_of(within("wake_in_cs", 0, 0), *judges), "counted"))
    return [stock, shfl]


def switched_guests():
    """Guests whose spin lock is changed while they run. Their CPUs take turns, since CPUs in
    parallel would meet code while it is patched."""
    cases = [
        Case(f"native count=1000 {settings}", within("switches", 40, 40), "beside switches 8")
        for settings in ("", ALWAYS)
    ]
    return [Guest("switched", 8, 4, "single", cases)]


def tuned_guests():
    """Guests whose ShflLocks get other orders and bounds while they run: all of a kind, and a
    single one, which is that of the run before."""
    cpus = 16
    spin, mutex, rwsem = (
        f"native count=500 {ALWAYS}",
        f"native:mutex count=200 {TASKS_COMPETE}",
        f"native:rwsem count=200 reads=0 {TASKS_COMPETE}",
    )
    passed = {batch: within("most_passed", 1, batch + 2 * cpus) for batch in (0, 20)}
    by_count = BY_COUNT.split()
    crossed, kept = within("crossed_per_1000", 400, 1000), within("crossed_per_1000", 0, 49)

    def tuned(file, value, run, judge, *more):
        return Case(run, judge, " ".join(["tuned", file, value, *(more or ["run"])]))

    ways = [
        tuned("spin_policy", "fifo", spin, all_of(FIRST_COME, passed[0]), *by_count),
        tuned("spin_policy", "group", spin, all_of(FIRST_COME, passed[0]), *by_count),
        tuned("spin_policy", "route", spin, within("remote_per_1000", 0, 299), *by_count),
        tuned("spin_batch", "20", spin, passed[20], *by_count),
        Case(spin, all_of(NEAR, within("most_passed", 4 * cpus, 10**9)), BY_COUNT),
        tuned("locks", "policy=fifo", spin, all_of(FIRST_COME, passed[0]), *by_count),
        tuned("locks", "batch=20", spin, passed[20], *by_count),
        Case(spin, all_of(NEAR, within("most_passed", 4 * cpus, 10**9)), BY_COUNT),
        Case(rwsem, kept),
        tuned("rwsem_policy", "fifo", rwsem, crossed),
        tuned("locks", "policy=fifo+batch=1", rwsem, crossed),
        Case(rwsem, kept),
        Case(mutex, within("crossed_per_1000", 0, 299)),
        tuned("mutex_policy", "fifo", mutex, within("crossed_per_1000", 300, 1000)),
        tuned("locks", "policy=fifo", mutex, within("crossed_per_1000", 300, 1000)),
    ]
    invalid = [
        "spin_policy Invalid_argument frob",
        "mutex_policy Invalid_argument fair",
        "rwsem_batch Invalid_argument 0",
        "spin_batch Invalid_argument 1000001",
        "mutex_batch Invalid_argument many",
        "locks Invalid_argument frob batch=1",
        "locks Invalid_argument 1234 batch=1",
        "locks Invalid_argument ADDRESS",
        "locks Invalid_argument ADDRESS frob",
        "locks Invalid_argument ADDRESS policy=frob",
        "locks Invalid_argument ADDRESS batch=0",
        "locks Invalid_argument ADDRESS batch=1 batch=2",
        "locks Invalid_argument ADDRESS batch=1 remove",
        "locks No_such_file_or_directory ADDRESS remove",
    ]
    ways += [Case(line, is_sound, "refused", "") for line in invalid]
    ways += [Case("256", is_sound, "filled", "")]
    # By 3 kinds, their batches and the settings of one lock, for each of 4 policies.
    changed = within("retunes", 2 * 48, 2 * 48)
    tasks = {"native": "count=1000", "native:mutex": "count=100 threads=24"}
    tasks["native:rwsem"] = tasks["native:mutex"]
    live = []
    for lock, load in tasks.items():
        live += [Case(f"{lock} count=20", is_sound)]
        live += [Case(f"{lock} {load}", changed, "beside retunes 2")]
    chosen = ALL["shfl"]
    at_boot = {"spin_policy": "route", "mutex_policy": "fifo", "rwsem_batch": "20"}
    return [
        Guest("tuned", cpus, 2, "single", ways, chosen),
        Guest("tuned-live", 8, 4, "single", live, chosen | at_boot),
        Guest("tuned-live-parallel", 2, 2, "multi", live, chosen),
    ]


def domain_guests():
    """Guests of one NUMA node: with two last-level caches, and with one. The figures are hand-overs
    that cross caches."""
    cpus, caches = 16, 2
    part = f"part={cpus // caches}"
    spin, rwsem = (
        f"native count=500 {ALWAYS} {part}",
        f"native:rwsem count=200 reads=0 {TASKS_COMPETE} {part}",
    )
    shared = "cpu/cpu*/cache/index3/shared_cpu_list"
    by_count = f"tuned spin {{}} tuned domain {{}} {BY_COUNT}"
    kept = within("crossed_per_1000", 0, 49)

    def domains(level, files, count, spin):
        return Case(
            f"{level} {files}",
            all_of(within("domains", count, count), says(f"spin={spin} ")),
            "domains",
            "",
        )

    several = [
        domains("llc", shared, caches, "cna"),
        domains("auto", shared, caches, "cna"),
        domains("cluster", "cpu/cpu*/topology/cluster_cpus_list", cpus // 2, "cna"),
        domains("node", "node/node*/cpulist", 1, "cna"),
        Case("domain Invalid_argument frob", is_sound, "refused", ""),
        Case(
            f"{cpus // 2} {cpus - 1}",
            all_of(is_sound, says(f"alone=stock 0-{cpus // 2 - 1} "), says(f"back={caches} cna ")),
            "alone",
            "",
        ),
    ]
    several += [
        Case(spin, judge, by_count.format(choice, level))
        for choice, level, judge in [
            ("stock", "llc", FIRST_COME),
            ("cna", "node", FIRST_COME),
            ("cna", "llc", NEAR),
            ("cna", "auto", NEAR),
            ("shfl", "node", FIRST_COME),
            ("shfl", "llc", NEAR),
        ]
    ]
    several += [
        Case(rwsem, within("crossed_per_1000", 300, 1000), "tuned domain node run"),
        Case(rwsem, kept, "tuned domain llc run"),
        Case(f"native count=1000 {ALWAYS}", within("redomains", 16, 16), "beside redomains 4"),
    ]
    one = [
        domains("auto", shared, 1, "stock"),
        domains("node", shared, 1, "cna"),
        Case(spin, FIRST_COME, BY_COUNT),
    ]
    chosen = ALL["cna"] | {"domain": "node"}
    return [
        Guest("domains", cpus, 1, "single", several, chosen, caches=caches),
        Guest("domains-one", cpus, 1, "single", one, {"spin": "cna"}, caches=1),
        Guest(
            "domains-auto",
            cpus,
            1,
            "single",
            one[:1],
            {"domain": "auto"},
            boot="poundlock.spin=cna",
            caches=1,
        ),
    ]


def measured_guests():
    """A guest that compares locks by kernel/bench.py. Rates mean nothing here."""
    choices = "spin=stock spin=shfl,spin_policy=fifo spin=cna"
    whole = all_of(
        is_sound, within("rows", 3, 3), within("rates", 18, 18), within("intervals", 3, 3)
    )
    loads = ["lock1", "pipe", "locktorture:spin_lock"]
    refused = [
        "debugfs+is+not+mounted unmounted",
        "only+root+can+write unprivileged",
        "the+kernel+refuses+spin_policy=frob:+Invalid+argument spin_policy=frob",
        "/frob:+No+such+file frob=1",
        "there+is+no+load+'frob' --load frob",
    ]
    cases = [Case(f"6 {load} {choices}", whole, "compared", "") for load in loads]
    cases += [Case(name, is_sound, "killed", "") for name in ("KILL", "TERM")]
    cases += [Case(line, is_sound, "unmeasured", "") for line in refused]
    return [Guest("measured", 4, 2, "single", cases)]


def urgent_guests():
    """The urgent waiters are counted by the lock's events, also those of real-time priority."""
    load = f"native count=500 {COMPETE} urgent=1"
    cases = [
        Case(load, within("urgent", 1, 500), "counted"),
        Case(f"{load} fifo=1", within("urgent", 1000, 10**9), "counted"),
    ]
    return [Guest("urgent", 8, 2, "single", cases, {"spin": "cna"})]


def is_refused_because(words):
    """A judge: the module was refused with @words in the log."""

    def judge(result):
        if result.status == 0:
            return "it was not refused"
        return "" if words in result.text else f"the log does not say '{words}'"

    return judge


def hook_guests():
    """Guests of the unmodified kernel, into which the module poundlock_hook is loaded."""
    cpus = 16
    always, some = f"native count=500 {ALWAYS}", f"native count=500 {COMPETE} urgent=25"
    late = f"native count=1000 {ALWAYS} late=1"
    all_urgent = f"native count=500 {COMPETE} urgent=100"
    bypassed = cpus + LATE
    order = [
        Case(always, FIRST_COME),
        Case(always, all_of(NEAR, within("shuffle_move", 1, 10**9)), "hooked 100000 0"),
        Case(some, within("most_urgent_passed", bypassed + 1, 10**9), "hooked 100000 0"),
        Case(some, within("most_urgent_passed", 0, bypassed), "hooked 10 1"),
        Case(all_urgent, within("most_passed", 1, bypassed), "hooked 10 1"),
        Case(
            late,
            all_of(within("most_late", 0, 2 * cpus), within("batch", 1, 10**9)),
            "hooked 1 0",
        ),
        Case(late, within("most_late", 4 * cpus, 10**9), "hooked 100000 0"),
        Case(always, FIRST_COME),
    ]
    load, unload = [Case(what, is_sound, "hook", "") for what in ("load", "unload")]
    loads = all_of(is_sound, within("hooks", 20, 20))
    torture = [
        Case("native count=1000", loads, "beside hooks 20"),
        Case(f"native count=500 {ALWAYS}", loads, "beside hooks 20"),
        load,
        Case("native count=1000", is_sound),
        Case("native:mutex count=100 threads=24", INTERRUPTED),
        Case("native:rwsem count=100 threads=24", SHARED),
        *hotplug_cases(["native"], [], 1),
        *files(16, 30),
        unload,
    ]
    alone = "a machine with one CPU has no order of waiters"
    foreign = "waiters do not queue as in the native spin lock"
    return [
        Guest("hook-order", cpus, 2, "single", order),
        Guest("hook-torture", HOTPLUG_CPUS, 4, "single", torture),
        Guest("hook-parallel", 2, 2, "multi", [load, Case("native count=10000 hold=64", is_sound)]),
        Guest("hook-alone", 1, 1, "single", [Case("load", is_refused_because(alone), "hook", "")]),
        Guest(
            "hook-hypervisor",
            2,
            1,
            "single",
            [Case("load", is_refused_because(foreign), "hook", "")],
            hypervisor=True,
        ),
    ]


def distribution_guests():
    """Guests of the kernel that is configured as distributions do it, fully preemptible. Its
    functions for spin locks of hypervisors are unused: the hypervisor flag is hidden."""
    cases = [
        Case("native count=1000", is_sound),
        Case("native:mutex count=100 threads=24", INTERRUPTED),
        Case("native:rwsem count=100 threads=24", SHARED),
        *[locktorture(lock) for lock in ("spin_lock", "mutex_lock", "rwsem_lock")],
        *files(8, 20),
    ]
    return [
        Guest(f"distribution-{name}", 8, 4, "single", cases, chosen, boot="preempt=full")
        for name, chosen in ALL.items()
    ]


def patched_guests():
    """A guest of the kernel that is built from patched sources."""
    whole = all_guests()[0]
    return [Guest("patched", whole.cpus, whole.nodes, "single", whole.cases, ALL["shfl"])]


def checked_guests():
    """Guests of the kernel with lockdep. Without the test of ww_mutex, which holds more of them
    than lockdep of 6.1 can count, and fails under stock locks too."""
    lockdep = Case("lockdep", says("debug_locks: 1"), "lockdep", "")
    cases = [
        Case("native:mutex count=100 threads=16", INTERRUPTED),
        Case("native:rwsem count=100 threads=16", SHARED),
        locktorture("spin_lock"),
        locktorture("mutex_lock"),
        locktorture("rwsem_lock"),
        *files(8, 20),
        *hotplug_cases([], ["native:mutex", "native:rwsem"], 1),
    ]
    return [
        Guest(f"checked-{name}", HOTPLUG_CPUS, 4, "single", [*cases, lockdep], chosen)
        for name, chosen in ALL.items()
    ]


# Objects of the kernel's locks in the object tree.
LOCK_OBJECTS = [f"{own.PLACE}/{name}.o" for name in ("qspinlock", "mutex", "rwsem")]


def racing(result, series):
    """The pairs of racing functions of a run that involve the torture's or the locks' code, in the
    kernel of @series."""
    objects = [own.configuration("kcsan", series)[1] / name for name in LOCK_OBJECTS] + sorted(
        (BUILD / "module").rglob("*.o")
    )
    ours = {
        line.split()[2]
        for line in output(["nm", "-A", *objects]).splitlines()
        if re.search(r" [tT] ", line)
    }
    pairs = re.search(r"\braces=(\S*)", result.text)
    return (
        [pair for pair in pairs.group(1).split(";") if ours & set(pair.split("/"))]
        if pairs
        else None
    )


def does_not_race(result, series):
    found = racing(result, series)
    return is_sound(result) or (
        "races were not looked for"
        if found is None
        else f"a data race: {' '.join(found)}"
        if found
        else ""
    )


def races(result, series):
    return "" if racing(result, series) else "its data races were not seen"


def kcsan_guests(names, series):
    """Guests of the kernel that detects data races. It must report the races of a broken lock."""
    silent = functools.partial(does_not_race, series=series)
    own_locks = [
        Case("native count=2000", silent, "races"),
        Case("native:mutex count=1000 threads=12", silent, "races"),
        Case("native:rwsem count=1000 threads=12", silent, "races"),
    ]
    locks_of_module = [
        Case(f"{lock} count=500 {PAUSES.get(lock, '')}".strip(), silent, "races") for lock in names
    ]
    locks_of_module += [Case(f"{lock} count=200 threads=12", silent, "races") for lock in SLEEPING]
    broken = Case(
        "broken:mutex count=50 threads=8", functools.partial(races, series=series), "races"
    )
    every = []
    for name, chosen in list(ALL.items())[1:]:
        cases = [broken, *own_locks, *locks_of_module] if name == "shfl" else own_locks
        every += [
            Guest(f"kcsan-{name}", 4, 2, "single", cases, chosen),
            Guest(f"kcsan-{name}-parallel", 2, 2, "multi", own_locks, chosen),
        ]
    return every


def order_cases(cpus):
    """Locks under permanent contention. A waiter is passed by its predecessors, and by as many more
    as it arrives late."""
    queue = 2 * cpus
    return [
        Case(f"mcs count=500 {ALWAYS}", FIRST_COME),
        Case(f"ticket count=500 {ALWAYS}", FIRST_COME),
        Case(f"cna count=500 {ALWAYS}", NEAR),
        Case(f"shfl_spin count=500 {ALWAYS}", NEAR),
        *[Case(f"{name} count=500 {ALWAYS}", BY_ROUTE) for name in ("ron", "ron_shared")],
        Case(f"mcs count=200 {ALWAYS}", within("most_passed", 1, queue)),
        Case(f"ticket count=200 {ALWAYS}", within("most_passed", 1, queue)),
        Case(f"clh count=200 {ALWAYS}", within("most_passed", 1, queue)),
        # Urgent waiters are passed by none that came later.
        *[
            Case(f"{name} count=300 {COMPETE} urgent={share}", within(counted, 1, queue))
            for name in ("cna", "shfl_spin")
            for share, counted in ((25, "most_urgent_passed"), (100, "most_passed"))
        ],
        # NUMA-aware locks pass waiters up to their bound: enough for the next two rows to differ.
        Case(f"cna count=300 {ALWAYS} reduction=0", within("most_passed", 4 * queue, 10**9)),
        Case(
            f"cna count=300 {ALWAYS} reduction=0 threshold=20", within("most_passed", 1, 20 + queue)
        ),
        Case(f"shfl_spin count=300 {ALWAYS} batch=20", within("most_passed", 1, 20 + queue)),
        # Newcomers come from any node. With patience=0 the lock is closed to them: predecessors and
        # the batch pass.
        Case(f"park:shfl_mutex count=200 {ALWAYS} stay=0", within("crossed_per_1000", 50, 1000)),
        Case(
            f"park:shfl_mutex count=200 {ALWAYS} stay=0 patience=0",
            all_of(within("crossed_per_1000", 0, 49), within("most_passed", 4 * queue, 10**9)),
        ),
        Case(
            f"park:shfl_mutex count=200 {ALWAYS} stay=0 patience=0 batch=20",
            within("most_passed", 1, 20 + 2 * queue),
        ),
    ]


# ---- Prerequisites ----


def output(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def release():
    """The newest kernel whose headers are installed."""
    names = [
        path.name.removeprefix("linux-headers-")
        for path in Path("/usr/src").glob("linux-headers-*-amd64")
    ]
    if not names:
        raise Failure("no linux-headers-*-amd64 in /usr/src")
    return max(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def kernel_image(name):
    """The kernel @name, from Debian's package, which is downloaded once and not installed."""
    image = BUILD / "images" / f"vmlinuz-{name}"
    if image.exists():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    version = output(["dpkg-query", "-W", "-f", "${Version}", f"linux-headers-{name}"])
    scratch = image.parent / "package"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        subprocess.run(
            ["apt-get", "download", "-q", f"linux-image-{name}={version}"],
            cwd=scratch,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=BUILD_LIMIT,
        )
        subprocess.run(
            ["dpkg-deb", "-x", next(scratch.glob("*.deb")), scratch],
            check=True,
            timeout=BUILD_LIMIT,
        )
        shutil.copy(scratch / "boot" / image.name, image)
    except (subprocess.SubprocessError, StopIteration, OSError) as error:
        raise Failure(f"the package linux-image-{name} {version} cannot be had: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return image


def stage():
    """Copies the sources, since Kbuild writes objects beside them. Removes objects of another
    kernel, which would look up to date."""
    shutil.rmtree(BUILD / "module", ignore_errors=True)
    for part in "core", "kernel", "world/kernel":
        shutil.copytree(ROOT / part, BUILD / "module" / part)
    return BUILD / "module/kernel"


def build_module(tree, name="poundlock_torture", part="."):
    """Builds the module @name of kernel/@part for the kernel of @tree, with the same bytes from any
    folder. Returns it, and the warnings of the compiler and sparse."""
    folder = stage() / part
    make = [
        "make",
        "-C",
        str(tree),
        f"M={folder}",
        f"-j{os.cpu_count()}",
        f"KCFLAGS=-ffile-prefix-map={BUILD / 'module'}=.",
    ]
    made = subprocess.run(
        make + ["W=1", "C=1", "CF=-Wno-declaration-after-statement", "modules"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_LIMIT,
    )
    if made.returncode:
        raise Failure(f"the module does not build:\n{made.stdout}")
    module = BUILD / f"{name}.ko"
    shutil.copy(folder / module.name, module)
    subprocess.run(["strip", "--strip-debug", module], check=True, timeout=BUILD_LIMIT)
    said = [line for line in made.stdout.splitlines() if re.search(r"\b(warning|error):", line)]
    return module, said


def locks():
    """The locks that the module must have: all of core/locks.def that it does not leave out."""
    names = re.findall(r"^LOCK\((\w+),", (ROOT / "core/locks.def").read_text(), re.MULTILINE)
    others = re.findall(r"^#define LEFT_OUT_(\w+)", (HERE / "spin.c").read_text(), re.MULTILINE)
    return [name for name in names if name not in others]


def build_stress():
    """Builds the guests' only program."""
    program = BUILD / "stress"
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", program, STRESS],
        check=True,
        timeout=BUILD_LIMIT,
    )
    return program


def build_policies():
    """Compiles the policies that are BPF programs: the examples, and those of the tests."""
    include, objects = f"-I/usr/include/{output(['gcc', '-print-multiarch']).strip()}", []
    for source in [file for folder in POLICIES for file in sorted(folder.glob("*.bpf.c"))]:
        objects.append(BUILD / source.with_suffix(".o").name)
        warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
        command = ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", *warnings]
        subprocess.run(
            [*command, include, f"-I{POLICIES[0]}", "-c", source, "-o", objects[-1]],
            check=True,
            timeout=BUILD_LIMIT,
        )
    return objects


def with_libraries(program):
    """The file @program, and its libraries."""
    return [program, *map(Path, re.findall(r"(/\S+) \(0x", output(["ldd", program])))]


def lay(folder, files):
    """Copies @files into the guest's @folder."""
    for place, file in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / place)


def python_files():
    """The interpreter, its libraries and its modules, from Debian's packages."""
    packages = [f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib"]
    modules = output(["dpkg-query", "-L", *packages]).splitlines()
    return [
        *with_libraries(Path("/usr/bin") / PYTHON),
        *(Path(path) for path in modules if path.endswith((".py", ".so")) and "/lib/" in path),
    ]


def lay_python(folder):
    """Copies Python, kernel/bench.py and what it imports into the guest's @folder."""
    files = {path.relative_to("/"): path for path in python_files()}
    files |= {Path("poundlock") / place: file for place, file in MEASURING.items()}
    lay(folder, files)
    (folder / "bin/python3").symlink_to(f"/usr/bin/{PYTHON}")


def lay_root(guest, parts, folder):
    """Makes @folder the guest's root: busybox, the modules and programs in @parts, and the guest's
    commands."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "bin/busybox")
    for part in parts:
        shutil.copy(part, folder)
    shutil.copy(HERE / "guest/init", folder / "init")
    if guest.measures:
        lay_python(folder)
    if guest.profiles:
        perf, *libraries = with_libraries(own.perf(BPF_SERIES))
        lay(folder, {"bin/perf": perf} | {path.relative_to("/"): path for path in libraries})
    if guest.loads:
        lay(folder, {path.relative_to("/"): path for path in with_libraries(BPFTOOL)})
    (folder / "runs").write_text("".join(f"{case.line}\n" for case in guest.cases))


def initramfs(guest, parts):
    """The initial file system, which is the guest's root."""
    folder = BUILD / f"guest-{guest.name}"
    lay_root(guest, parts, folder)
    # The same parts make the same archive: no time stamps or inode numbers of the host.
    paths = sorted(folder.rglob("*"))
    for path in paths:
        os.utime(path, (0, 0), follow_symlinks=False)
    names = "".join(f"{path.relative_to(folder)}\n" for path in paths)
    packed = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet", "--reproducible"],
        cwd=folder,
        input=names.encode(),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    archive = folder.with_name(f"{folder.name}.cpio.gz")
    archive.write_bytes(gzip.compress(packed, 1, mtime=0))
    return archive


# ---- Guests ----


def processor(guest):
    """QEMU's model of the CPU. One of Intel's shows which CPUs share a cache."""
    return (
        "max"
        + ("" if guest.hypervisor else ",hypervisor=off")
        + (",vendor=GenuineIntel,l3-cache=on" if guest.caches else "")
    )


def parts_of_node(guest, cpus):
    """QEMU's topology of a node with @cpus. A die has a last-level cache of its own."""
    if not guest.caches:
        return f"cores={cpus},threads=1"
    return f"dies={guest.caches},cores={cpus // guest.caches // 2},threads=2"


def qemu(guest, image, archive):
    """QEMU's command: CPUs and 1 GiB, spread evenly over the nodes. The hypervisor flag is hidden,
    so that the kernel uses its own locks as on a real machine. That requires no_timer_check: the
    kernel panics at boot if a busy host delays the timer. nohz=off avoids patching of timer code
    while it runs: a QEMU with parallel CPUs showed one of them the breakpoint of a patch that was
    over (7.2.22, an unhandled int3).
    RCU reports a stall after 300 s, its maximum, since a busy host may suspend CPUs for long.
    """
    each, memory = guest.cpus // guest.nodes, 1024 // guest.nodes
    command = [
        "qemu-system-x86_64",
        "-accel",
        f"tcg,thread={guest.thread}",
        "-cpu",
        processor(guest),
        "-smp",
        f"{guest.cpus},sockets={guest.nodes},{parts_of_node(guest, each)}",
        "-m",
        "1024M",
    ]
    for node in range(guest.nodes):
        command += [
            "-object",
            f"memory-backend-ram,id=m{node},size={memory}M",
            "-numa",
            f"node,nodeid={node},cpus={node * each}-{node * each + each - 1},memdev=m{node}",
        ]
    for source in range(guest.nodes):
        for target in range(guest.nodes):
            if source != target:
                command += ["-numa", f"dist,src={source},dst={target},val=21"]
    if guest.disk:
        command += ["-drive", f"file={guest.disk},format=raw,if=virtio"]
    return command + [
        "-kernel",
        str(image),
        "-initrd",
        str(archive),
        "-display",
        "none",
        "-serial",
        "stdio",
        "-monitor",
        "none",
        "-no-reboot",
        "-net",
        "none",
        "-append",
        "console=ttyS0 quiet no_timer_check panic=-1 oops=panic mitigations=off watchdog_thresh=60 "
        "softlockup_panic=1 rcupdate.rcu_cpu_stall_timeout=300 "
        + ("nohz=off " if guest.thread == "multi" else "")
        + ("poundlock.events " if guest.counts else "")
        +
        # Race reports are rate-limited and kept off the console, which is slow.
        (
            "kcsan.early_enable=1 kcsan.skip_watch=500 loglevel=1 log_buf_len=4M "
            if guest.raced
            else ""
        )
        + f"{guest.boot} "
        + " ".join(f"poundlock.{name}={value}" for name, value in guest.sets.items()),
    ]


def run_guest(guest, image, archive, emulator=None):
    """The console's lines, and a complaint if the guest did not end well. @emulator: for exact
    counts."""
    log, command = BUILD / f"{guest.name}.log", qemu(guest, image, archive)
    if emulator:
        plugin = exact.build_plugin(BUILD / "transfers.so")
        command = emulator.command(command, plugin, guest.cpus // guest.nodes)
    with log.open("wb") as console:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                timeout=GUEST_LIMIT,
            )
            wrong = ""
        except subprocess.TimeoutExpired:
            wrong = f"it did not end within {GUEST_LIMIT} s"
    lines = log.read_text(errors="replace").replace("\r", "").splitlines()
    if not wrong and "@@ end" not in lines:
        wrong = "it ended before its time"
    return lines, wrong


class Count:
    """Counts of passed and failed cases, and the duration of each part."""

    def __init__(self):
        self.passed = self.failed = 0
        self.seconds = {}

    @contextlib.contextmanager
    def part(self, name):
        began = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0) + time.monotonic() - began

    def sum_up(self):
        print(
            "     seconds: "
            + ", ".join(f"{name} {seconds:.0f}" for name, seconds in self.seconds.items())
            + f"; in all {sum(self.seconds.values()):.0f}"
        )
        print(f"{self.passed} passed, {self.failed} failed")

    def case(self, name, wrong, more=""):
        self.passed += not wrong
        self.failed += bool(wrong)
        print(
            f"{'FAIL' if wrong else 'ok  '} {name}{': ' if wrong or more else ''}{wrong or more}",
            flush=True,
        )


def results_in(lines):
    matches = (re.match(r"@@ run (\d+) (.*)", line) for line in lines)
    return [Result(int(match.group(1)), match.group(2)) for match in matches if match]


def judge_guest(guest, lines, wrong, count):
    """Counts each case, the guest's end and its log."""
    results = results_in(lines)
    booted = f"@@ boot {guest.cpus} {guest.nodes}" in lines
    count.case(
        f"{guest.name}: {guest.cpus} CPUs on {guest.nodes} nodes",
        "" if booted else "there are others",
    )
    for name, value in guest.sets.items():
        uses = guest.uses[name]
        count.case(
            f"{guest.name}: poundlock.{name}={value} is {uses}",
            "" if f"@@ uses {name} {uses}" in lines else "the kernel uses another one",
        )
        if value != uses:
            refused = [
                line for line in lines if f"poundlock.{name}={value}: there is no such " in line
            ]
            count.case(f"{guest.name}: the kernel says so", "" if refused else "it does not")
    for number, case in enumerate(guest.cases):
        result = results[number] if number < len(results) else None
        if (
            result
            and case.judge is not is_refused
            and not result.text.startswith(f"lock={case.lock} ")
        ):
            result = Result(result.status or 1, f"no result: {result.text}")
        complaint = case.judge(result) if result else "it was not run"
        text = result.text if result else ""
        count.case(f"{guest.name}: {case.run}", f"{complaint}; {text}" if complaint else "", text)
    complaints = [line.removeprefix("@@ log ") for line in lines if line.startswith("@@ log ")]
    count.case(f"{guest.name}: the kernel's log is silent", "; ".join(complaints[:5]))
    count.case(f"{guest.name}: the guest ends", wrong)
    if wrong:
        print("\n".join(f"    {line}" for line in lines[-CONSOLE_LINES:]), flush=True)


def checked_module(image, tree, count, name="poundlock_torture", part="."):
    """The module @name for the kernel of @image. A build without warnings is a case."""
    with count.part(f"{name} for {image.name}"):
        module, said = build_module(tree, name, part)
    count.case(f"{name} builds for {image.name} without a warning", "; ".join(said))
    return module


def run_guests(chosen, image, tree, parts, count):
    """Builds the module for the kernel of @tree, then runs and checks the guests, with @parts."""
    module = checked_module(image, tree, count)
    for guest in chosen:
        with count.part(guest.name):
            judge_guest(guest, *run_guest(guest, image, initramfs(guest, [module, *parts])), count)


def built_kernel(variant, series, count):
    """Our own kernel, up to date."""
    with count.part(f"the kernel {series}, {variant}"):
        return patch.build(series) if variant == "patched" else own.build(variant, series)


def run_exact(guests_of_it, image, tree, parts, names, accept, count):
    """Runs @guests with QEMU 10 and compares the counts @names with the recorded ones, or else with
    a second run."""
    try:
        emulator = exact.Qemu(BUILD / "qemu")
    except exact.Failure as failure:
        print(f"kernel: skipped {', '.join(guest.name for guest in guests_of_it)}: {failure}")
        return
    module = checked_module(image, tree, count)
    compiler = exact.output("gcc", "--version").splitlines()[0]
    busybox = exact.output("dpkg-query", "-W", "busybox-static").replace("\t", " ").strip()
    record = exact.Record(f"{emulator.version}; {image.name}; {compiler}; {busybox}")

    def counted(guest, archive):
        with count.part(guest.name):
            lines, wrong = run_guest(guest, image, archive, emulator)
        judge_guest(guest, lines, wrong, count)
        results = [(case.key, result.text) for case, result in zip(guest.cases, results_in(lines))]
        return exact.counts_of(names, results, lines)

    for guest in guests_of_it:
        archive = initramfs(guest, [module, *parts])
        found, expected, of = (
            counted(guest, archive),
            None if accept else record.of(guest.name),
            "recorded",
        )
        if expected is None:
            why = (
                "what it counts is recorded"
                if accept
                else f"nothing is recorded of it for {record.key}"
            )
            print(f"     {guest.name} runs a second time: {why}", flush=True)
            expected, of = counted(guest, archive), "of the second run"
        for case in guest.cases:
            first, other = found.get(case.key), expected.get(case.key)
            same = first is not None and first == other
            count.case(
                f"{guest.name}: {case.key}: what was counted is what is {of}",
                "" if same else f"{first}, and {other}",
                str(first),
            )
        if accept and found == expected:
            record.take(guest.name, found)


@dataclass
class Group:
    """Guests of one kernel: Debian's, or the @variant of @series that is built."""

    guests: list
    variant: str = ""
    series: str = ""
    exact: bool = False
    hook: bool = False  # with the module poundlock_hook


def own_groups(arguments, series):
    """The groups of guests whose kernel is built from the sources of @series."""
    groups = [
        Group(own_guests() if arguments.own else [], "plain", series),
        Group(distribution_guests() if arguments.distribution else [], "distribution", series),
        Group(patched_guests() if arguments.patched else [], "patched", series),
        Group(checked_guests() if arguments.checked else [], "checked", series),
        Group(kcsan_guests(locks(), series) if arguments.kcsan else [], "kcsan", series),
        Group(
            own_exact_guests() if arguments.exact and arguments.own else [],
            "plain",
            series,
            exact=True,
        ),
    ]
    if series != own.SERIES[0]:
        for group in groups:
            for guest in group.guests:
                guest.name += f"-{series}"
    return groups


def chosen_groups(parser, arguments, versions):
    """The groups that the command line asks for, without empty ones."""
    groups = [
        Group(guests(locks())),
        Group(hook_guests() if arguments.hook else [], hook=True),
        Group(exact_guests() if arguments.exact else [], exact=True),
        Group(
            hook_exact_guests() if arguments.exact and arguments.hook else [], exact=True, hook=True
        ),
    ]
    for series in versions:
        groups += own_groups(arguments, series)
    groups += [
        Group(bpf_guests() if arguments.bpf else [], "bpf", BPF_SERIES),
        Group(
            bpf_exact_guests() if arguments.exact and arguments.bpf else [],
            "bpf",
            BPF_SERIES,
            exact=True,
        ),
    ]
    if arguments.only:
        unknown = set(arguments.only) - {guest.name for group in groups for guest in group.guests}
        if unknown:
            parser.error(f"there is no guest '{min(unknown)}'")
        for group in groups:
            group.guests = [guest for guest in group.guests if guest.name in arguments.only]
    return [group for group in groups if group.guests]


def can_be_built(group):
    """Whether the packages for the kernel of @group are installed; reports those that are not."""
    lacking = own.missing(own.packages(group.series, group.variant)) if group.variant else []
    if lacking:
        print(
            f"kernel: skipped {', '.join(guest.name for guest in group.guests)}: not installed: "
            f"{' '.join(lacking)}"
        )
    return not lacking


def check_packages(series, count):
    """Whether the kernels of packages keep each of Debian's configurations. The trees are not
    built."""
    if lacking := own.missing(deb.packages(series)):
        print(f"kernel: skipped packages of {series}: not installed: {' '.join(lacking)}")
        return
    tree = patch.sources(series)
    for flavour in sorted(deb.flavours(series)):
        wrong = ""
        try:
            with count.part(f"configuration of packages of {series}"):
                deb.Build(series, flavour).configure(tree)
        except own.Failure as failure:
            wrong = str(failure)
        count.case(
            f"packages of Linux {series}: Debian's configuration of {flavour} is kept", wrong
        )


def run_group(group, image, headers, accept, count):
    """Builds the kernel of @group, if it is not Debian's @image with its @headers, and runs it."""
    tree, parts, own_parts = headers, [], []
    if group.variant:
        built = built_kernel(group.variant, group.series, count)
        image, tree, parts = built.image, built.tree, [*built.modules, build_stress()]
        if group.variant == "patched":
            check_packages(group.series, count)
    if group.variant == "bpf":
        own_parts = build_policies()
    if group.hook:
        own_parts = [checked_module(image, tree, count, "poundlock_hook", "hook")]
        parts = [build_stress()]
    if group.exact:
        names = exact.OWN_COUNTS if group.variant else exact.COUNTS
        # Counts of a kernel or hook that is built here are not recorded.
        accept = accept and not group.variant and not group.hook
        run_exact(group.guests, image, tree, own_parts, names, accept, count)
    else:
        run_guests(group.guests, image, tree, [*parts, *own_parts], count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", metavar="GUEST", action="append", help="run this guest alone; may be repeated"
    )
    parser.add_argument(
        "--own", action="store_true", help="also a kernel with Poundlock's locks as its own"
    )
    parser.add_argument(
        "--hook",
        action="store_true",
        help="also the module that orders the spin locks' waiters of an unmodified kernel",
    )
    parser.add_argument(
        "--distribution",
        action="store_true",
        help="also a preemptible kernel that has hypervisors' spin locks",
    )
    parser.add_argument(
        "--patched", action="store_true", help="also a kernel from patched sources (patch.py)"
    )
    parser.add_argument(
        "--checked", action="store_true", help="also a kernel that checks how its locks are used"
    )
    parser.add_argument(
        "--bpf", action="store_true", help="also a kernel 6.12 that loads policies as BPF programs"
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed, and say so, where packages are missing"
    )
    parser.add_argument(
        "--kcsan", action="store_true", help="also a kernel that looks for data races"
    )
    parser.add_argument(
        "--exact", action="store_true", help="also guests whose counts are the same in each run"
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="with --exact: what it counts is what is expected from now on",
    )
    parser.add_argument(
        "--linux",
        choices=own.SERIES,
        action="append",
        help=f"series of the kernels that are built; may be repeated (default: {own.SERIES[0]})",
    )
    arguments = parser.parse_args()
    versions = arguments.linux or own.SERIES[:1]
    groups = chosen_groups(parser, arguments, versions)
    if arguments.if_possible:
        groups = [group for group in groups if can_be_built(group)]
    needed = PACKAGES + [
        package
        for group in groups
        if group.variant
        for package in own.packages(group.series, group.variant)
    ]
    try:
        own.check_installed(needed)
        name = release()
        image = kernel_image(name)
    except (Failure, own.Failure) as failure:
        print(f"kernel: {'skipped, ' if arguments.if_possible else ''}{failure}")
        return not arguments.if_possible
    count = Count()
    for group in groups:
        run_group(group, image, Path(f"/usr/src/linux-headers-{name}"), arguments.accept, count)
    count.sum_up()
    return count.failed > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, own.Failure, exact.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
