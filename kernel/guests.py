# SPDX-License-Identifier: MIT OR Apache-2.0
"""All guests of the kernel's tests, by the kernel that they boot.

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
do, and boots it with preempt=full: distribution-CHOICE, and distribution-hypervisor, whose CPUs
show that they are a hypervisor's.

--patched builds a kernel from sources to which the patches of patch.py are applied: patched. It
also checks that the packages of deb.py keep Debian's configurations, where linux-config-* is
installed.

--checked builds a kernel with PROVE_LOCKING and DEBUG_ATOMIC_SLEEP, which must stay silent during
all of that: checked-CHOICE. --kcsan builds a kernel that detects data races: kcsan-CHOICE, and
-parallel, for each choice but stock. --bpf builds a kernel 6.12 that loads policies as BPF
programs: bpf, bpf-order, bpf-live and bpf-live-parallel; in bpf-owners-CHOICE perf names holders of
locks, and in bpf-drgn-CHOICE drgn does. --exact runs exact-8, exact-16, exact-32, with --own
exact-CHOICE and exact-2-CHOICE, and with --bpf bpf-exact, under QEMU 10, whose counts are
reproducible (exact.py).
"""

import functools
import re

from cases import (
    ALWAYS,
    BY_COUNT,
    BY_ROUTE,
    COMPETE,
    EVENTS,
    FIRST_COME,
    INTERRUPTED,
    LATE,
    LEFT,
    MORE_TORTURE,
    NAMELESS,
    NAMES,
    NEAR,
    PAUSES,
    SHARED,
    SLEEPING,
    TASKS_COMPETE,
    WAIT_WOUND,
    Case,
    Guest,
    all_of,
    by_weight,
    crowded_case,
    interrupted_cases,
    is_caught,
    is_refused,
    is_sound,
    locktorture,
    others,
    says,
    within,
)
from parts import STRESS
from races import does_not_race, races


def module_guests(names):
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
    torture.cases += [
        Case(f"{lock} count=50 nmi=1 {PAUSES.get(lock, '')}".strip(), within("nmis", 20, 10**9))
        for lock in names
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
        [WAIT_WOUND, locktorture("mutex_lock"), locktorture("ww_mutex_lock", seconds=3)],
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
        alone = Guest(choice, cpus, 2, "single", [torture, *MORE_TORTURE, *files(16, 30)], chosen)
        alone.cases += [
            Case("native count=400", is_sound),
            Case("native count=400 nmi=1", within("nmis", 1000, 10**9)),
            Case(f"native count=500 {ALWAYS}", order, BY_COUNT),
        ]
        alone.cases.append(deep_case())
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


def deep_case(counted="no_node"):
    """In each round five contexts of a CPU wait at once, and the fifth one has no node."""
    rounds = 40
    whole = within("nested", rounds, rounds)
    if counted:
        whole = all_of(whole, within(counted, rounds, rounds))
    return Case(f"native {rounds}", whole, "deep", "")


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
        crowd = [crowded_case(lock), *([] if choice == "stock" else interrupted_cases(lock))]
        every.append(
            Guest(
                f"{lock}-{choice}",
                8,
                4,
                "single",
                [torture, *crowd, *own_tests, *more, *files(16, 60)],
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
    recorded, since each change makes another kernel. Of two contenders one is pending, and moves no
    more lines than under stock's lock; cfl has no pending bit."""
    many, two = [
        [Case(f"native count={count} {ALWAYS}", is_sound, BY_COUNT)] for count in (50, 400)
    ]
    return [
        guest
        for choice in ("stock", "cna", "shfl", "ron", "cfl")
        for guest in (
            Guest(f"exact-{choice}", 16, 2, "single", many, {"spin": choice}),
            Guest(
                f"exact-2-{choice}",
                2,
                2,
                "single",
                two,
                {"spin": choice},
                rival="exact-2-stock" if choice in ("cna", "shfl", "ron") else "",
            ),
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
    # Policies whose waiters wait for too long are stopped while they wait.
    checks += [
        Case(f"{kind} {lock}", is_sound, "/watchdog", "")
        for kind in ("behind", "hold")
        for lock in ("spin", "mutex")
    ]
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
        *debugged_guests(),
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
    the interrupted waits is one known task. CFL's mutex names nobody. Of our locks only a share of
    the pool of nodes can be left."""

    def owned(choice, lock):
        least = 1000 if choice == "stock" else 500
        nobody = (choice, lock) == ("cfl", "mutex")
        named = within("owned", 0, 0) if nobody else within("owned", least, 2 * LEFT)
        return all_of(within("left", least, 2 * LEFT), named)

    return [
        Guest(
            f"bpf-owners-{choice}",
            8,
            4,
            "single",
            [
                Case(
                    f"native:{lock} count=30 threads=24 leave={LEFT}",
                    owned(choice, lock),
                    f"owners {lock}",
                )
                for lock in ("mutex", "rwsem")
            ],
            ALL[choice],
        )
        for choice in ("stock", "shfl", "cfl")
    ]


def debugged_guests():
    """Guests in which drgn reads the holders of a mutex and of an rwsem that change hands."""
    right = all_of(within("named", 20, 10**9), within("misnamed", 0, 0), within("holders", 2, 3))
    return [
        Guest(
            f"bpf-drgn-{choice}",
            8,
            4,
            "single",
            [Case(lock, right, "debugged", "") for lock in ("mutex", "rwsem")],
            ALL[choice],
        )
        for choice in ("stock", "shfl")
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
        Guest(
            "all", 8, 4, "single", cases + crowded + [EVENTS] + MORE_TORTURE + files(16, 60), chosen
        ),
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
    struck = all_of(within("switches", 40, 40), within("nmis", 1000, 10**9))
    cases += [Case("native count=1000 nmi=1", struck, "beside switches 8")]
    return [Guest("switched", 8, 4, "single", cases)]


def tuned_guests():
    """Guests whose ShflLocks get other orders and bounds while they run: all of a kind, and a
    single one, which is that of the run before."""
    cpus = 16
    spin, mutex, rwsem = (
        f"native count=500 {ALWAYS}",
        # With shorter critical sections waiters take the mutex while they spin, and none queue.
        f"native:mutex count=100 {TASKS_COMPETE} hold=1000",
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
    loads, struck = within("hooks", 20, 20), within("nmis", 1000, 10**9)
    torture = [
        Case("native count=1000", loads, "beside hooks 20"),
        Case("native count=1000 nmi=1", all_of(loads, struck), "beside hooks 20"),
        Case(f"native count=500 {ALWAYS}", loads, "beside hooks 20"),
        deep_case(counted=""),
        load,
        deep_case(counted=""),
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
        Case(f"native count=1000 {ALWAYS}", within("waited", 1000, 10**9), "waiting"),
        deep_case(),
        Case("native:mutex count=100 threads=24", INTERRUPTED),
        Case("native:rwsem count=100 threads=24", SHARED),
        *[locktorture(lock) for lock in ("spin_lock", "mutex_lock", "rwsem_lock")],
        *MORE_TORTURE,
        *files(8, 20),
    ]
    return [
        Guest(f"distribution-{name}", 8, 4, "single", cases, chosen, boot="preempt=full")
        for name, chosen in ALL.items()
    ] + [hypervisor_guest()]


def hypervisor_guest():
    """A guest of that kernel with the hypervisor flag. QEMU provides no spin lock, so the kernel
    uses its test-and-set lock, which never queues, instead of any choice. Mutex and rwsem are the
    chosen ones."""
    none = within("waited", 0, 0)
    torture = locktorture("spin_lock")
    cases = [
        Case(f"native count=1000 {ALWAYS}", none, "waiting"),
        Case("native count=1000", none, "waiting"),
        Case(torture.run, all_of(torture.judge, none), torture.command, torture.more),
        Case("spin Invalid_argument cna", is_sound, "refused", ""),
        Case("spin Invalid_argument frob", is_sound, "refused", ""),
        Case("the+kernel+refuses+spin=cna:+Invalid+argument", is_sound, "unmeasured", ""),
        Case("native:mutex count=100 threads=24", INTERRUPTED),
        Case("native:rwsem count=100 threads=24", SHARED),
        *files(8, 20),
    ]
    return Guest(
        "distribution-hypervisor",
        8,
        4,
        "single",
        cases,
        ALL["cna"],
        ALL["cna"] | {"spin": "test-and-set"},
        boot="preempt=full",
        hypervisor=True,
        refusal="not used: ",
    )


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
        # The outer lock lasts from run to run, beside new ones inside it.
        Case("native:mutex count=100 threads=8", INTERRUPTED),
        Case("native:rwsem count=100 threads=16", SHARED),
        Case("native:rwsem count=100 threads=8", SHARED),
        locktorture("spin_lock"),
        locktorture("mutex_lock"),
        locktorture("rwsem_lock"),
        *MORE_TORTURE,
        *files(8, 20),
        *hotplug_cases([], ["native:mutex", "native:rwsem"], 1),
    ]

    def cases_of(chosen):
        of_users = [] if chosen["mutex"] == "stock" else interrupted_cases("mutex")
        return [*cases, *of_users, lockdep]

    return [
        Guest(f"checked-{name}", HOTPLUG_CPUS, 4, "single", cases_of(chosen), chosen)
        for name, chosen in ALL.items()
    ]


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
