# SPDX-License-Identifier: MIT OR Apache-2.0
"""The emulated machine of a guest: QEMU's command, and its run."""

import subprocess

import exact
from parts import BUILD

GUEST_LIMIT = 1200  # seconds: many times the duration on a busy machine


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
