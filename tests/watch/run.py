#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plants a hot lock in real programs, and checks that `poundlock watch` finds it within 3 seconds,
with its waiting time within 10 %.

Servers run unmodified, with plant.c preloaded, which holds one of their mutexes for longer and
measures the waits for it. Programs in Go, Java and with Abseil are made here, and measure their own
waits.
Holds are sleeps, so that the waits depend little on the machine's load.

The last line is `N passed, N failed`. Where the kernel refuses BPF, nothing is checked.
"""

import argparse
import functools
import json
import multiprocessing
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from operator import ne
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "tests/programs"))
import client  # noqa: E402
import database  # noqa: E402
import memcached_load  # noqa: E402
import nginx_load  # noqa: E402
import postgresql  # noqa: E402
import redis_load  # noqa: E402
from processes import descendants  # noqa: E402

POUNDLOCK = ROOT / "target/release/poundlock"
SECONDS = 3
ENOUGH = 10**9  # requests of a load that is stopped
TOLERANCE = 0.1
PATIENCE = 60  # seconds
HOT = 50e6  # ns of waiting, after which a lock is planted for sure
COMPILED = 5e9  # ns of waiting, after which a Java virtual machine has compiled the code
# Words of the lines by which `watch` refuses where nothing can be watched.
REFUSALS = ["watch needs root", "watch needs BPF", "watch needs /sys", "watch needs a kernel"]


class Failure(Exception):
    """A program was not watched as it should be; the text says how."""


@dataclass
class Program:
    """A program with a planted lock.

    @start is a context that runs it under a load, in a scratch directory; its value has the
    process ID and a function that returns the lock's address, or 0, the time waited for it so far,
    and the time, in ns. @kind and @function are how the report must name the lock in its @section.
    """

    name: str
    start: Callable
    kind: str
    function: str
    needs: str
    section: str = "waits"


def until(what, holds):
    """The first true value of @holds."""
    deadline = time.monotonic() + PATIENCE
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise Failure(f"not within {PATIENCE} s: {what}")
        time.sleep(0.005)
    return value


def end(process, how=signal.SIGTERM):
    """Ends a process, and the others of its session."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@contextmanager
def running(command, **options):
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, start_new_session=True, text=True, **options
    )
    try:
        yield process
    finally:
        end(process)


@contextmanager
def loaded(load, *arguments):
    """Runs the function @load in another process, in a session of its own."""

    def work():
        os.setsid()
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), sys.stderr.fileno())
        load(*arguments)

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    try:
        yield
    finally:
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            worker.kill()
        worker.join()


# ---- Servers with a planted mutex ----


@functools.cache
def library():
    """The folder with plant.c as a library, which exists until the end."""
    folder = tempfile.TemporaryDirectory(prefix="poundlock-plant-")
    os.chmod(folder.name, 0o755)
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    output = f"{folder.name}/libplant.so"
    subprocess.run(["cc", *flags, str(HERE / "plant.c"), "-o", output, "-ldl"], check=True)
    return folder


def preloaded(plant, directory):
    folder = f"{directory}/figures"
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    return os.environ | {
        "LD_PRELOAD": f"{library().name}/libplant.so",
        "PLANT": plant,
        "PLANT_FOLDER": folder,
    }


def figures(directory, pid):
    """The address of a process's planted mutex, the time waited for it, and the time, in ns."""
    try:
        data = Path(f"{directory}/figures/{pid}").read_bytes()
    except OSError:
        data = b""
    address, waited = struct.unpack("QQ", data) if len(data) == 16 else (0, 0)
    return address, waited, time.monotonic_ns()


def planted_among(directory, pids):
    """The first of @pids that has a planted mutex for which threads have waited."""
    return next((pid for pid in pids() if figures(directory, pid)[1] > HOT), None)


def socket_of(directory, process):
    path = f"{directory}/socket"

    def listens():
        if process.poll() is not None:
            raise Failure(f"the program ended with {process.returncode}")
        return os.path.exists(path)

    until("it listens", listens)
    return path


@contextmanager
def server(directory, command, plant, load, pids=None):
    """Runs a server under a load until it has a planted mutex. @load gets the socket, @pids the
    process and returns those that may have the mutex."""
    with running(
        command(directory), stdout=subprocess.DEVNULL, env=preloaded(plant, directory)
    ) as process:
        with loaded(load, socket_of(directory, process)):
            candidates = (lambda: pids(process)) if pids else (lambda: [process.pid])
            pid = until("a lock is hot", lambda: planted_among(directory, candidates))
            yield pid, lambda: figures(directory, pid)


def memcached(directory):
    command = lambda directory: ["memcached", "-s", f"{directory}/socket", "-t4", "-u", "root"]
    return server(directory, command, "mutex", lambda path: memcached_load.load(path, ENOUGH))


def sysbench(path):
    database.query(path, "create database sbtest")
    options = [f"--mysql-socket={path}", "--mysql-user=root", f"--table-size={database.ROWS}"]
    client.call("sysbench", "oltp_read_write", *options, "prepare")
    client.call("sysbench", "oltp_read_write", *options, "--threads=8", "--time=300", "run")


def mariadb(directory):
    database.prepare(directory)
    return server(directory, database.command, "mutex", sysbench)


def redis(directory):
    return server(
        directory, redis_load.command, "mutex", lambda path: redis_load.load(path, ENOUGH)
    )


def nginx(directory):
    nginx_load.prepare(directory)
    load = lambda path: nginx_load.load(path, ENOUGH)
    workers = lambda process: descendants(process.pid)
    return server(directory, nginx_load.command, "cond", load, workers)


INSERT = "insert into log values (1);\n"


def pgbench(path):
    postgresql.wait_until_ready(path)
    postgresql.query(path, "create table log (number int)")
    script = f"{os.path.dirname(path)}/insert.sql"
    Path(script).write_text(INSERT)
    options = ["--no-vacuum", "--client=6", "--jobs=2", "--time=300", f"--file={script}"]
    client.call("pgbench", *postgresql.at(path), *options, "postgres")


def command_line(pid):
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def backends(process):
    """The processes of a PostgreSQL server that serve clients. Any child may end meanwhile."""
    return [pid for pid in descendants(process.pid) if "tester" in command_line(pid)]


def postgres(directory):
    postgresql.prepare(directory)
    return server(directory, postgresql.command, "wal", pgbench, backends)


@contextmanager
def rocksdb(directory):
    # One small cache of small blocks for all threads.
    options = [
        "--benchmarks=readwhilewriting",
        "--threads=6",
        "--num=20000",
        "--duration=300",
        "--cache_numshardbits=0",
        "--cache_size=250000",
        "--block_size=512",
        "--write_buffer_size=250000",
        "--compression_type=none",
    ]
    command = ["db_bench", f"--db={directory}/db", *options]
    with running(command, stdout=subprocess.DEVNULL, env=preloaded("mutex", directory)) as process:
        until("a lock is hot", lambda: planted_among(directory, lambda: [process.pid]))
        yield process.pid, lambda: figures(directory, process.pid)


# ---- Programs that measure their own waits ----


@contextmanager
def measuring(*command, warm=HOT, named=lambda pid: None):
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def truth():
            process.stdin.write("\n")
            process.stdin.flush()
            return 0, *map(int, process.stdout.readline().split())

        until("its threads wait", lambda: truth()[1] > warm)
        named(process.pid)
        yield process.pid, truth


def go(directory):
    program = f"{directory}/mutex"
    environment = os.environ | {
        "GOCACHE": f"{directory}/cache",
        "GOFLAGS": "",
        "GO111MODULE": "off",
    }
    source = str(HERE / "programs/mutex.go")
    subprocess.run(["go", "build", "-o", program, source], check=True, env=environment)
    return measuring(program)


def absl(directory):
    program = f"{directory}/mutex"
    flags = client.call("pkg-config", "--cflags", "--libs", "absl_synchronization").split()
    source = str(HERE / "programs/mutex.cpp")
    command = ["g++", "-std=c++17", "-O2", "-g", "-pthread", source, "-o", program, *flags]
    subprocess.run(command, check=True)
    return measuring(program)


def java(directory):
    source = str(HERE / "programs/Monitor.java")
    subprocess.run(["javac", "-d", directory, source], check=True)
    command = ["java", "-cp", directory, "Monitor"]
    return measuring(*command, warm=COMPILED, named=compiled_functions)


def compiled_functions(pid):
    """Lets a Java virtual machine list the functions that it has compiled by now, in
    /tmp/perf-PID.map."""
    subprocess.run(["jcmd", str(pid), "Compiler.perfmap"], check=True, stdout=subprocess.DEVNULL)


# ---- The check ----

MUTEX = "pthread mutex"
PROGRAMS = [
    Program("memcached", memcached, MUTEX, r"memcached\+0x", "memcached"),
    Program("mariadb", mariadb, MUTEX, r"", "mariadbd"),
    Program("rocksdb", rocksdb, MUTEX, r"rocksdb::", "db_bench"),
    Program("redis", redis, MUTEX, r"", "redis-server"),
    Program("postgresql", postgres, "PostgreSQL's lightweight lock", r"XLog", "pgbench"),
    Program("nginx", nginx, MUTEX, r"ngx_|nginx\+0x", "nginx"),
    Program("go", go, "sync.Mutex of Go", r"main\.plantedSite", "go", "goroutines"),
    Program("absl", absl, "absl::Mutex", r"planted_site", "g++"),
    Program("java", java, "Java monitor", r"Monitor.*plantedSite", "javac"),
]


def is_link(description):
    """Whether a file of /proc/PID/fdinfo describes a BPF link. One that is gone does not."""
    try:
        return "link_type:" in description.read_text()
    except OSError:
        return False


def is_attached(watcher):
    """Whether a process has attached BPF programs: links among its descriptors."""
    try:
        descriptions = list(Path(f"/proc/{watcher.pid}/fdinfo").iterdir())
    except OSError:
        return False
    return sum(map(is_link, descriptions)) >= 2


def watch(pid, truth):
    """A report on a process, and what @truth returned when it began and ended."""
    command = [str(POUNDLOCK), "watch", "-p", str(pid), "--for", f"{SECONDS}s", "--json", "-"]
    pipe = subprocess.PIPE
    watcher = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    with watcher, ThreadPoolExecutor() as reader:
        output = reader.submit(watcher.communicate, timeout=PATIENCE)
        moments = []
        for has_come in (is_attached, lambda it: not is_attached(it)):
            until("attached and detached", lambda: watcher.poll() is not None or has_come(watcher))
            moments.append(truth())
        text, errors = output.result()
    if watcher.returncode:
        raise Failure(errors.strip())
    return json.loads(text), moments


@contextmanager
def removed(file):
    """Removes @file at the end, if there is one."""
    try:
        yield
    finally:
        Path(file).unlink(missing_ok=True)


def check(program, keep):
    with tempfile.TemporaryDirectory(prefix="poundlock-watch-") as directory:
        os.chmod(directory, 0o755)
        with program.start(directory) as (pid, truth), removed(f"/tmp/perf-{pid}.map"):
            report, ((address, before, began), (_, after, ended)) = watch(pid, truth)
            due = (after - before) / (ended - began)
    if keep:
        Path(keep, f"{program.name}.json").write_text(json.dumps(report, indent=1))
    return compare(program, report, address, due)


def compare(program, report, address, due):
    """Compares the report with the address of the lock, if known, and the number of threads that
    waited for it on average."""
    locks = [wait for wait in report[program.section] if wait["what"] == "lock"]
    if not locks:
        raise Failure(f"no lock was found: {report['verdict']}")
    first = locks[0]
    if first["kind"] != program.kind:
        raise Failure(f"the first lock is a {first['kind']}, not a {program.kind}")
    if address and int(first["address"] or "0", 16) != address:
        raise Failure(f"the first lock is at {first['address']}, not at {address:#x}")
    function = first["sites"][0]["function"]
    if not re.search(program.function, function):
        raise Failure(f"it is taken in {function}, not in {program.function}")
    seen = first["seconds"] / report["seconds"]
    if not due:
        raise Failure(f"{seen:.3f} threads waited for it on average, none by its own count")
    if abs(seen / due - 1) > TOLERANCE:
        raise Failure(f"{seen:.3f} threads waited for it on average, not {due:.3f}")
    return f"{seen:.3f} of {due:.3f} waiting threads, in {function}"


# ---- A watcher that is killed ----


def code(pid, addresses):
    """The code of a process at some addresses."""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        return [os.pread(memory.fileno(), 4, address) for address in addresses]


def killed(keep):
    """A killed watcher of a Go program leaves no breakpoint in its code."""
    del keep
    with tempfile.TemporaryDirectory(prefix="poundlock-watch-") as directory:
        with go(directory) as (pid, truth):
            names = client.call("go", "tool", "nm", f"{directory}/mutex")
            hooked = r"^ *([0-9a-f]+) T runtime\.(?:ready|\(\*semaRoot\)\.queue)$"
            addresses = [int(text, 16) for text in re.findall(hooked, names, re.MULTILINE)]
            before = code(pid, addresses)
            command = [str(POUNDLOCK), "watch", "-p", str(pid)]
            with running(command, stdout=subprocess.DEVNULL) as watcher:
                until("hooked", lambda: all(map(ne, before, code(pid, addresses))))
                watcher.kill()
            until("unhooked", lambda: code(pid, addresses) == before)
            waited = truth()[1]
            until("it goes on", lambda: truth()[1] > waited)
    return f"{len(addresses)} breakpoints came and went"


CASES = {program.name: (program.needs, functools.partial(check, program)) for program in PROGRAMS}
CASES["go-killed"] = ("go", killed)


def refusal():
    """The line by which `watch` refuses on this machine, if so."""
    command = [str(POUNDLOCK), "watch", "-p", str(os.getpid()), "--for", "1ms"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    return done.stderr if any(words in done.stderr for words in REFUSALS) else None


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--keep", metavar="FOLDER", help="write the reports to this folder")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    return arguments


def main():
    arguments = parse()
    if refused := refusal():
        print(f"SKIPPED: {refused}")
        return print("1 passed, 0 failed")
    passed = failed = 0
    for name in arguments.cases or CASES:
        needs, case = CASES[name]
        if not shutil.which(needs):
            print(f"{name:12} SKIPPED: there is no {needs}")
            continue
        try:
            print(f"{name:12} {case(arguments.keep)}", flush=True)
            passed += 1
        except (Failure, client.Wrong, OSError, subprocess.SubprocessError) as failure:
            print(f"FAIL {name}: {failure}", flush=True)
            failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
