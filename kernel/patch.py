#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes Poundlock's locks as a series of patches for a pristine Linux tree.

    ./dev kernel --patch FOLDER [--tree TREE]
    cd TREE && git am FOLDER/*.patch          or: patch -p1 <each

The first patch adds kernel/locking/poundlock/, which has the files of kernel/overlay, core/ and
world/kernel unchanged. The second one adds the option LOCK_POUNDLOCK, which builds it in place of
mutex.c, rwsem.c and qspinlock.c, and its documentation. Without the option nothing changes.
"""

import argparse
import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import own  # noqa: E402

FOLDER = "kernel/locking/poundlock"
OPTION = "LOCK_POUNDLOCK"

MAKEFILE = f"""\
# SPDX-License-Identifier: GPL-2.0
# Any varying coverage in these files is non-deterministic
# and is generally not a function of system call inputs.
KCOV_INSTRUMENT		:= n

ccflags-y += -I$(srctree)/{FOLDER}

obj-y += mutex.o rwsem.o qspinlock.o
"""

KCONFIG = f"""
config {OPTION}
	bool "Poundlock's spin locks, mutexes and rwsems"
	depends on X86_64 && QUEUED_SPINLOCKS && !PREEMPT_RT
	help
	  Adds NUMA-aware and fair queues for spin locks (CNA, ShflLock, RON, CFL),
	  mutexes (ShflLock, CFL) and rwsems (ShflLock) to the kernel's own. Boot
	  parameters choose them; by default the kernel's own locks are used. See
	  Documentation/locking/poundlock.rst.

	  If unsure, say N.
"""

ADDED = f"""\
On machines with several NUMA nodes a contended lock moves between nodes with
almost every hand-over, and takes its data along. These queues keep the lock in
one node for a bounded time, or share its time among cgroups. {FOLDER}
has Poundlock's sources unchanged; nothing builds it yet.
"""

CHOSEN = """\
The option builds the replacements of mutex.c, rwsem.c and qspinlock.c, each of
which includes the original. Boot parameters choose among them, and stock locks
remain the default.
"""

DOCUMENTATION = """\
.. SPDX-License-Identifier: GPL-2.0

=========
Poundlock
=========

With CONFIG_LOCK_POUNDLOCK=y boot parameters choose the locks of the kernel::

    poundlock.spin=stock|cna|shfl|ron|cfl
    poundlock.mutex=stock|shfl|cfl
    poundlock.rwsem=stock|shfl

====== ==================================================================
stock  the kernel's own locks, by default
cna    compact NUMA-aware locks (EuroSys'19): waiters of one node together
shfl   ShflLock (SOSP'19): waiters sort the queue by node while they wait
ron    routing on network-on-chip (OSDI'23): one way over all CPUs
cfl    completely fair locking (PPoPP'24): lock time shared among cgroups
====== ==================================================================

An unknown name is reported in the log, and the kernel's own lock is used. All files are in debugfs:

- ``poundlock/spin``, ``poundlock/mutex`` and ``poundlock/rwsem`` show the choices. A name that is
  written to ``poundlock/spin`` changes that choice on the running machine.
- ``poundlock/spin_policy``, ``spin_batch`` and those of ``mutex`` and ``rwsem`` are the settings of
  ShflLocks: ``fifo``, ``numa``, ``route`` or ``group``, and the most times that a waiter is
  bypassed. ``poundlock/locks`` has settings of single locks, a line ``ADDRESS [policy=NAME]
  [batch=N]`` each, at most 256; ``ADDRESS remove`` removes them.
- On Linux 6.12 with BPF_JIT, BPF_EVENTS and DEBUG_INFO_BTF, a ``struct_ops`` map of the type
  ``pound_policy`` (``bpf_policy.c``) is a policy by its name. ``poundlock/policies`` lists them.
- ``poundlock/threshold``, and the boot parameter of that name, bound the milliseconds for which
  waiters of the holder's domain may bypass one of another domain under ``cna`` and ``shfl``: from 1
  to 100000, by default 10.
- ``poundlock/urgent``, and the boot parameter of that name: with 1, the default, no later waiter of
  a spin lock bypasses one that waits in an interrupt handler, with interrupts off or at a real-time
  or deadline priority; with 0 it may. ``cfl`` ignores this and the threshold.
- ``poundlock/domain``, and the boot parameter of that name, choose which CPUs form a domain, whose
  waiters ``cna`` and ``shfl`` keep together: ``node``, ``llc``, ``cluster``, or ``auto``, the
  smallest of which the machine has several. ``poundlock/domains`` has their CPUs.
- ``poundlock/events`` counts the locks' events, with the boot parameter ``poundlock.events``.

Locks keep their size, their initialisers and their uncontended paths. ``ww_mutex`` is always the
kernel's own. On a hypervisor, a kernel with PARAVIRT may use the hypervisor's spin lock, or a
test-and-set lock, instead of any choice. Then ``poundlock/spin`` is ``paravirt`` or
``test-and-set``, a choice at boot is reported in the log, and writes of other choices than
``stock`` fail with EINVAL. On KVM and Xen ``nopvspin`` lets the choice have effect.

The locks' promises and state diagrams are in the headers of ``kernel/locking/poundlock/``.
"""


def limits():
    """The first version that the overlay supports, and the first one that it refuses."""
    texts = [own.ROOT / "world/kernel/version.h", own.HERE / "overlay/choice.h"]
    found = [re.search(r"KERNEL_VERSION\((\d+), (\d+), 0\)", text.read_text()) for text in texts]
    return [tuple(int(part) for part in match.groups()) for match in found]


def check_version(tree):
    """Fails unless @tree is a Linux tree of a supported version."""
    makefile = tree / "Makefile"
    if not makefile.is_file():
        raise own.Failure(f"{tree} is not a Linux tree: it has no Makefile")
    parts = dict(re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)$", makefile.read_text(), re.MULTILINE))
    if len(parts) != 2:
        raise own.Failure(f"{tree} is not a Linux tree: its Makefile names no version")
    version = int(parts["VERSION"]), int(parts["PATCHLEVEL"])
    first, refused = limits()
    if not first <= version < refused:
        names = [".".join(str(part) for part in each) for each in (version, first, refused)]
        raise own.Failure(
            "{} is Linux {}: versions from {} on, before {}, are supported".format(tree, *names)
        )


def replaced(text, what, by, file):
    """@text with its only @what replaced @by."""
    if text.count(what) != 1:
        raise own.Failure(f"{file} differs from a supported one: it should have {what!r} once")
    return text.replace(what, by)


def choosing_makefile(text):
    """kernel/locking/Makefile, where the option chooses the objects."""
    file = "kernel/locking/Makefile"
    both = "obj-y += mutex.o semaphore.o rwsem.o percpu-rwsem.o\n"
    spin = "obj-$(CONFIG_QUEUED_SPINLOCKS) += qspinlock.o\n"
    chosen = (
        "obj-y += semaphore.o percpu-rwsem.o\n"
        f"ifdef CONFIG_{OPTION}\n"
        "obj-y += poundlock/\n"
        "else\n"
        "obj-y += mutex.o rwsem.o\n"
        f"{spin}"
        "endif\n"
    )
    return replaced(replaced(text, spin, "", file), both, chosen, file)


def changed_files():
    """The changed files of the tree: their paths, and functions from the old to the new text."""
    kconfig, index = "kernel/Kconfig.locks", "Documentation/locking/index.rst"
    option = "\nconfig BPF_ARCH_SPINLOCK\n"
    entry = "    percpu-rw-semaphore\n"
    return {
        "kernel/locking/Makefile": choosing_makefile,
        kconfig: lambda text: replaced(text, option, KCONFIG + option, kconfig),
        index: lambda text: replaced(text, entry, f"    poundlock\n{entry}", index),
    }


def new_files():
    """The new files: their paths, and their texts."""
    laid = {f"{FOLDER}/{place}": file.read_text() for place, file in own.laid().items()}
    return {**laid, f"{FOLDER}/Makefile": MAKEFILE}


def write_all(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def git(folder, *arguments):
    identity = ["-c", "user.name=Poundlock", "-c", "user.email=poundlock@localhost"]
    own.output("git", "-C", folder, *identity, "-c", "core.autocrlf=false", *arguments)


def write_series(tree, folder):
    """Writes the patches for @tree to @folder."""
    check_version(tree)
    olds = {path: (tree / path).read_text() for path in changed_files()}
    news = {path: change(olds[path]) for path, change in changed_files().items()}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        git(scratch, "init", "-q")
        steps = [
            (olds, "Linux"),
            (new_files(), f"locking: Add Poundlock's locks\n\n{ADDED}"),
            (
                {**news, "Documentation/locking/poundlock.rst": DOCUMENTATION},
                f"locking: Choose Poundlock's locks by {OPTION}\n\n{CHOSEN}",
            ),
        ]
        for files, message in steps:
            write_all(scratch, files)
            git(scratch, "add", "-A")
            git(scratch, "commit", "-q", "-m", message)
        folder.mkdir(parents=True, exist_ok=True)
        git(scratch, "format-patch", "-q", "-2", "-o", folder.resolve())


def patched(tree, copy):
    """Makes @copy a patched copy of @tree, of hard links to the files that do not change."""
    own.output("rm", "-rf", copy)
    own.output("cp", "-al", tree, copy)
    with tempfile.TemporaryDirectory() as name:
        write_series(tree, Path(name))
        for patch in sorted(Path(name).iterdir()):
            own.output("patch", "-d", copy, "-p1", "-s", "-i", patch)


@functools.cache
def sources(series):
    """Debian's sources of @series with the patches."""
    tree = own.sources(series)
    copy = tree.with_name(f"patched-{tree.name}")
    patched(tree, copy)
    return copy


def build(series):
    """The kernel of @series with the patches and the option; builds it if necessary."""
    return own.build_in(sources(series), "patched", series, FOLDER)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the patches")
    parser.add_argument(
        "--tree", type=Path, help="pristine Linux tree (default: Debian's linux-source)"
    )
    parser.add_argument(
        "--linux", choices=own.SERIES, default=own.SERIES[0], help="version of Debian's sources"
    )
    arguments = parser.parse_args()
    write_series(arguments.tree or own.sources(arguments.linux), arguments.folder)


if __name__ == "__main__":
    try:
        main()
    except (own.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
