#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares `poundlock watch` with perf trace -s, strace -c -f, off-CPU time by bpftrace and perf
lock contention: what each sees of a program whose waiting is known, and what each costs memcached
at full load. Also measures the run time of the BPF programs of `watch`. See docs/watch.md. Needs
root."""

import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import empty_program
import results
from command_line import ROOT, Parser

OFF_CPU = ROOT / "bench/offcputime.bt"
TRACING = pathlib.Path("/sys/kernel/debug/tracing")
PLANTED = ROOT / "crates/poundlock-cli/tests/watched/planted.c"
THREADS = 7  # of planted.c
CONNECTIONS = 8
BATCH = 100  # requests that a connection pipelines
GOAL = 2  # % of memcached's CPU time, at most
SWITCH = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
PATIENCE = 60  # seconds
TICKS = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """The measurement is not possible; the text says why."""


def arguments():
    parser = Parser(prog="bench watch", description=__doc__)
    parser.add_seconds(5, int)
    parser.add_repeats(5, "of each cost")
    parser.add_poundlock()
    results.add_options(parser, "watch")
    return parser.parse_args()


# ---- The tools ----
#
# Each has a function that returns its command, and one that returns what it saw: the mean number of
# waiting threads, and its words for the lock.


def watch_command(options, pid, file):
    limit = f"{options.seconds}s"
    return [str(options.poundlock), "watch", "-p", str(pid), "--for", limit, "--json", file]


def watch_saw(file, options):
    report = json.loads(pathlib.Path(file).read_text())
    locks = [wait for wait in report["waits"] if wait["what"] == "lock"]
    if not locks:
        return 0, report["verdict"]
    first = locks[0]
    place = first["object"] or first["address"] or ""
    name = f"{first['kind']} {place}, taken in {first['sites'][0]['function']}"
    return first["seconds"] / report["seconds"], name


def trace_command(options, pid, file):
    return ["perf", "trace", "-s", "-p", str(pid), "-o", file, "--", "sleep", str(options.seconds)]


def trace_saw(file, options):
    rows = re.findall(r"^ +futex +\d+ +\d+ +([\d.]+)", pathlib.Path(file).read_text(), re.MULTILINE)
    return sum(map(float, rows)) / 1000 / options.seconds, "futex"


def strace_command(options, pid, file):
    command = ["strace", "-c", "-w", "-f", "-p", str(pid), "-o", file]
    return ["timeout", "--signal=INT", str(options.seconds), *command]


def strace_saw(file, options):
    row = re.search(r"^ *[\d.]+ +([\d.]+) .* futex$", pathlib.Path(file).read_text(), re.MULTILINE)
    return (float(row[1]) if row else 0) / options.seconds, "futex"


def off_cpu_command(options, pid, file):
    # bpftrace looks for trace points here alone.
    if not TRACING.exists():
        subprocess.run(["mount", "-t", "debugfs", "debugfs", TRACING.parent], check=True)
    command = ["bpftrace", "-q", "-f", "json", "-o", file, str(OFF_CPU), str(pid)]
    return ["timeout", "--signal=INT", str(options.seconds), *command]


def off_cpu_saw(file, options):
    return longest_off_cpu(pathlib.Path(file).read_text())


def added(pairs):
    """The object of JSON with @pairs: stacks that differ only beyond what is printed are one."""
    found = {}
    for key, value in pairs:
        found[key] = found[key] + value if isinstance(found.get(key), int) else value
    return found


def longest_off_cpu(printed):
    """The mean number of threads off their CPUs, and the innermost function of the stack that
    sleeps for longest, of what offcputime.bt has @printed as JSON."""
    maps = {}
    for line in printed.splitlines():
        if line.startswith("{"):
            event = json.loads(line, object_pairs_hook=added)
            maps |= event["data"] if event["type"] == "map" else {}
    if not maps.keys() >= {"@began", "@ended", "@off"}:
        raise Failure(f"not printed by offcputime.bt: {printed.strip()[-200:]}")
    stacks = maps["@off"]
    inner = max(stacks, key=stacks.get).strip().split("\n")[0].split("+")[0]
    return sum(stacks.values()) / (maps["@ended"] - maps["@began"]), f"sleep, most in {inner}"


def contention_command(options, pid, file):
    # perf counts the locks of all processes if it is not to start the program itself.
    return ["perf", "lock", "record", "-a", "-o", file, "--", "sleep", str(options.seconds)]


def contention_saw(file, options):
    command = ["perf", "lock", "contention", "-i", file]
    # perf 6.1 prints the table to stderr, later versions to stdout.
    printed = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    ).stdout
    return None, first_contended(printed)


def first_contended(table):
    """The lock in the first row of a table of `perf lock contention`: its type and the function
    that waits for it."""
    if not re.search(r"^ *contended +total wait .* type +caller *$", table, re.MULTILINE):
        raise Failure(f"not a table of perf lock contention: {table.strip()[-200:]}")
    first = re.search(r"^ +\d+ .*[mnu]?s +(\S+) +(\S+) *$", table, re.MULTILINE)
    return f"locks of the kernel, first {first[1]} {first[2]}" if first else "nothing"


TOOLS = {
    "poundlock watch": (watch_command, watch_saw),
    "perf trace -s": (trace_command, trace_saw),
    "strace -c -w -f": (strace_command, strace_saw),
    "bpftrace offcputime.bt": (off_cpu_command, off_cpu_saw),
    "perf lock contention": (contention_command, contention_saw),
}


@contextlib.contextmanager
def attached(tool, options, pid, folder):
    """Runs a tool on a process, from when it has had time to attach. Returns the file that it
    writes."""
    file = f"{folder}/{tool.split()[0]}-{len(os.listdir(folder))}"
    command = TOOLS[tool][0](options, pid, file)
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        time.sleep(1)
        yield process, file
        errors = process.communicate(timeout=PATIENCE)[1]
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if not os.path.exists(file):
        raise Failure(f"{tool} has written nothing: {errors.strip()[-200:]}")


# ---- Sights ----


def truth(process):
    process.stdin.write("\n")
    process.stdin.flush()
    waited, thread_time = map(int, process.stdout.readline().split()[:2])
    return waited, thread_time / THREADS


def see(options, folder):
    """For each tool: the mean number of threads that it saw wait, the true number, its words."""
    program = f"{folder}/planted"
    subprocess.run(["cc", "-O2", "-pthread", str(PLANTED), "-o", program], check=True)
    pipe = subprocess.PIPE
    with subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True) as process:
        rows = [saw(tool, options, process, folder) for tool in TOOLS]
        process.stdin.close()
    return rows


def saw(tool, options, process, folder):
    before = truth(process)
    with attached(tool, options, process.pid, folder) as (_, file):
        pass
    after = truth(process)
    true = (after[0] - before[0]) / (after[1] - before[1])
    seen, words = TOOLS[tool][1](file, options)
    return {"tool": tool, "seen": seen, "true": true, "words": words}


# ---- Costs ----


def request(path, counter):
    """A connection that keeps BATCH requests in flight, and counts the answers."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    key = b"key%d" % os.getpid()
    connection.sendall(b"set %s 0 0 100\r\n%s\r\n" % (key, b"x" * 100))
    connection.recv(100)
    batch = (b"get %s\r\n" % key) * BATCH
    answer = len(b"VALUE %s 0 100\r\n%s\r\nEND\r\n" % (key, b"x" * 100)) * BATCH
    while True:
        connection.sendall(batch)
        left = answer
        while left > 0:
            left -= len(connection.recv(left))
        counter.value += BATCH


@contextlib.contextmanager
def memcached(folder):
    """memcached at full load: the process, and a function that returns the number of answers."""
    path = f"{folder}/socket"
    pathlib.Path(path).unlink(missing_ok=True)
    with subprocess.Popen(["memcached", "-s", path, "-t", "2", "-u", "root"]) as server:
        end = time.monotonic() + PATIENCE
        while not os.path.exists(path):
            if server.poll() is not None or time.monotonic() > end:
                raise Failure("memcached does not listen")
            time.sleep(0.01)
        counters = [multiprocessing.Value("Q", 0, lock=False) for _ in range(CONNECTIONS)]
        clients = [
            multiprocessing.Process(target=request, args=(path, counter)) for counter in counters
        ]
        try:
            for client in clients:
                client.start()
            time.sleep(0.5)
            yield server.pid, lambda: sum(counter.value for counter in counters)
        finally:
            for client in clients:
                client.kill()
            server.terminate()


def rate(count, seconds):
    began, before = time.monotonic(), count()
    time.sleep(seconds)
    return (count() - before) / (time.monotonic() - began)


def cost(options, folder):
    """For each tool: memcached's throughput with it, relative to that just before."""
    ratios = {tool: [] for tool in TOOLS}
    with memcached(folder) as (pid, count):
        for _ in range(options.repeats):
            for tool in TOOLS:
                seconds = max(1, options.seconds - 2)
                alone = rate(count, seconds)
                with attached(tool, options, pid, folder):
                    ratios[tool].append(rate(count, seconds) / alone)
    return ratios


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def bpf_seconds(process):
    """The run time and the number of runs of the BPF programs of a process."""
    programs = {}
    for file in pathlib.Path(f"/proc/{process}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            fields = dict(re.findall(r"^(\w+):\s*(\S+)$", file.read_text(), re.MULTILINE))
            if "run_time_ns" in fields:
                times = int(fields["run_time_ns"]), int(fields["run_cnt"])
                programs[fields["prog_id"]] = times
    return sum(ns for ns, _ in programs.values()) / 1e9, sum(
        count for _, count in programs.values()
    )


def bpf_share(options, folder):
    """The run time of the BPF programs of `watch` relative to memcached's CPU time, of which all
    processes of the machine cause a part; that of a program which does nothing at each switch; and
    the CPU time of `watch` itself."""
    was = SWITCH.read_text()
    SWITCH.write_text("1")
    try:
        with memcached(folder) as (pid, _), empty_program.attached("sched_switch"):
            with attached("poundlock watch", options, pid, folder) as (watcher, _):
                before = spent(pid, watcher.pid)
                time.sleep(max(1, options.seconds - 2))
                after = spent(pid, watcher.pid)
    finally:
        SWITCH.write_text(was)
    server, own, bpf, runs, empty = (late - early for early, late in zip(before, after))
    shares = {"bpf": bpf, "runs": runs, "empty": empty, "watch": own}
    return {name: value / server for name, value in shares.items()}


def spent(server, watcher):
    """The CPU time of memcached and of `watch`, the run time and runs of its BPF programs, and the
    run time of our empty one, so far."""
    bpf, runs = bpf_seconds(watcher)
    return cpu_seconds(server), cpu_seconds(watcher), bpf, runs, bpf_seconds(os.getpid())[0]


# ---- The report ----


def report(rows, ratios, shares):
    lines = [
        "# `poundlock watch` beside other tools",
        "",
        "Written by `./dev bench watch`. The program of the first table has one mutex, for which",
        "four of its seven threads wait; it measures the waiting threads itself. The second table",
        "has memcached's throughput with a tool relative to that just before, median and range.",
        "",
        "| tool | waiting threads, of truth | what it names |",
        "|---|---|---|",
    ]
    for row in rows:
        seen = "not seen" if row["seen"] is None else f"{row['seen']:.2f} of {row['true']:.2f}"
        lines.append(f"| `{row['tool']}` | {seen} | {row['words']} |")
    lines += ["", "| tool | throughput of memcached |", "|---|---|"]
    for tool, each in ratios.items():
        lines.append(
            f"| `{tool}` | {statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f}) |"
        )
    share, runs, empty, own = (
        statistics.median(share[name] for share in shares)
        for name in ("bpf", "runs", "empty", "watch")
    )
    lines += [
        "",
        f"The BPF programs of `watch` took {share:.2%} of memcached's CPU time (goal: at most",
        f"{GOAL} %), in {runs:.0f} runs per second of it, and `watch` itself {own:.2%}. A program",
        f"that does nothing at each switch between threads took {empty:.2%}: most of the time is",
        "that of calling and measuring a program.",
        "",
        "`perf trace` and `strace` do not separate waits for locks from waits for work: both are",
        "`futex`. `bench/offcputime.bt` adds up all time off a CPU by the sleepers' stacks,",
        "which end where a function has no frame pointer. Debian's perf 6.1 has no `perf lock",
        "contention -b`; without `-b` it records each event. It sees only the kernel's locks.",
        "",
    ]
    return "\n".join(lines), share


def main():
    options = arguments()
    try:
        if os.getuid():
            raise Failure("needs root")
        results.check(options.output, options.force)
        with tempfile.TemporaryDirectory(prefix="poundlock-bench-") as folder:
            rows = see(options, folder)
            ratios = cost(options, folder)
            shares = [bpf_share(options, folder) for _ in range(options.repeats)]
    except (Failure, OSError, results.Unfit, subprocess.SubprocessError) as failure:
        sys.exit(f"bench watch: {failure}")
    text, share = report(rows, ratios, shares)
    document = {"seen": rows, "throughput": ratios, "bpf": shares}
    written = results.keep(options.output, document, text)
    print(text)
    print(f"written: {written[0]}")
    sys.exit(share > GOAL / 100)


if __name__ == "__main__":
    main()
