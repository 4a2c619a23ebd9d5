# SPDX-License-Identifier: MIT OR Apache-2.0
"""In a guest: drgn names the holder of a mutex or rwsem by its address.

    owners.py KIND

Three tasks hold the lock of `share` (kernel/share.c) in turn, for two seconds each; the others wait
asleep. Meanwhile this program reads the lock's `owner` from the running kernel by its debugging
information, as any script for drgn does. The expected holder is the only one of the tasks that
runs. Prints how many reads named it, named another task or nobody, and how many tasks were named.
"""

import os
import sys
import time
from pathlib import Path

from drgn import Object, Program

SHARE = Path("/sys/kernel/debug/poundlock_torture/share")
TASKS, SECONDS, HOLD = 3, 20, 2
MASK = 2**64 - 8  # of an owner, whose lowest bits are flags
TYPES = {"mutex": "struct mutex", "rwsem": "struct rw_semaphore"}


def address_of(symbol):
    """Of the module, whose symbols drgn does not have."""
    for line in Path("/proc/kallsyms").read_text().splitlines():
        fields = line.split()
        if fields[2:] == [symbol, "[poundlock_torture]"]:
            return int(fields[0], 16)
    raise LookupError(symbol)


def hold_in_turn(number):
    """In a process of its own: holds the lock again and again. Returns its pid."""
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {number + 1})
        Path("/proc/self/comm").write_text(f"holder/{number}")
        SHARE.write_text(f"0 {HOLD * 1000000}")
        os._exit(0)
    return child


def running(tasks):
    """Those of @tasks that run now."""
    return [pid for pid in tasks if ") R " in Path(f"/proc/{pid}/stat").read_text()]


def sample(lock, tasks):
    """The kind of a read of the owner of @lock, and the task that it named."""
    before = running(tasks)
    owner = lock.owner.counter.value_() & MASK
    if len(before) != 1 or running(tasks) != before:
        return "unclear", None
    if not owner:
        return "nobody", None
    task = Object(lock.prog_, "struct task_struct *", owner)
    pid, name = task.pid.value_(), task.comm.string_().decode()
    named = pid == before[0] and name == f"holder/{tasks.index(pid)}"
    return "named" if named else "misnamed", pid


def main():
    kind = sys.argv[1]
    program = Program()
    program.set_kernel()
    program.load_debug_info(["/vmlinux"])
    lock = Object(program, TYPES[kind], address=address_of(f"shared_{kind}"))
    counts, holders = dict.fromkeys(("named", "misnamed", "nobody", "unclear"), 0), set()
    SHARE.write_text(f"begin {TASKS} {SECONDS * 1000} {kind}")
    tasks = [hold_in_turn(number) for number in range(TASKS)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        what, pid = sample(lock, tasks)
        counts[what] += 1
        if what == "named":
            holders.add(pid)
        time.sleep(0.02)
    for task in tasks:
        os.waitpid(task, 0)
    print(*(f"{what}={count}" for what, count in counts.items()), f"holders={len(holders)}")


if __name__ == "__main__":
    main()
