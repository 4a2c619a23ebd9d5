#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs unmodified Debian programs natively and under every lock of core/locks.def: replaces their
mutexes, or their readers-writer locks where they have some.

By default this is a test: each run must end successfully, within its time-out, with its own success
message and a correct result. Under a lock, the preload library must report exactly this lock as
active. The last line is `N passed, N failed`.

--ratio and --default measure in interleaved repeats, never fail for being slow, and print a table:
each lock's median time relative to native, or the default locks' median throughput relative to
native.
"""

import argparse
import datetime
import os
import platform
import pwd
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import client
import database
import memcached_load
import nginx_load
import postgresql
import redis_load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(ROOT / "bench"))
import results as kept_results  # noqa: E402
from ratios import interval  # noqa: E402

POUNDLOCK = ROOT / "target/release/poundlock"
NATIVE = "native"
DEFAULT = "default"  # the default locks
DB_BENCH_THREADS = 8
RATIO_GOAL = 3  # at most, for times
DEFAULT_GOAL = 0.98  # at least, for throughputs
PACKAGES = [
    "kyotocabinet-utils",
    "rocksdb-tools",
    "memcached",
    "python3",
    "mariadb-server-core",
    "redis-server",
    "stress-ng",
    "lld",
    "postgresql-15",
    "nginx",
    "python3-plyvel",
    "ffmpeg",
    "firefox-esr",
    "chromium",
]


class Failure(Exception):
    """A run failed; the text says how."""


@dataclass
class Outcome:
    seconds: float
    output: str
    errors: str


@dataclass
class Batch:
    """A program that runs to its end; @command gets a scratch directory, @check the output."""

    name: str
    command: Callable[[str], list]
    check: Callable[[str], None]
    rwlocks: bool = False
    slow: bool = False

    def run(self, prefix, environment, limit):
        with scratch() as directory:
            start = time.monotonic()
            process = spawn(prefix + self.command(directory), environment)
            output, errors = finish(process, limit)
            seconds = time.monotonic() - start
            self.check(output)
            return Outcome(seconds, output, errors)


@dataclass
class Server:
    """A server that listens on a socket in a scratch directory until it is stopped.

    @load is the clients' work; @prepare runs before it and @examine after it.
    """

    name: str
    command: Callable[[str], list]
    load: Callable[[str], None]
    prepare: Callable[[str], None] = lambda directory: None
    examine: Callable[[str], None] = lambda directory: None
    rwlocks: bool = False
    slow: bool = False

    def run(self, prefix, environment, limit):
        with scratch() as directory:
            try:
                self.prepare(directory)
                outcome = self.serve(directory, prefix, environment, limit)
                self.examine(directory)
                return outcome
            except (OSError, subprocess.SubprocessError, client.Wrong) as wrong:
                raise Failure(str(wrong)) from wrong

    def serve(self, directory, prefix, environment, limit):
        path = os.path.join(directory, "socket")
        process = spawn(prefix + self.command(directory), environment)
        try:
            wait_for_socket(process, path)
            start = time.monotonic()
            self.load(path)
            seconds = time.monotonic() - start
        finally:
            process.terminate()
            output, errors = finish(process, limit)
        return Outcome(seconds, output, errors)


def scratch():
    return tempfile.TemporaryDirectory(
        prefix="poundlock-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    )


def spawn(command, environment):
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def finish(process, limit):
    """Returns the process's output and errors; raises an error unless it succeeded."""
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failure(f"did not end within {limit:.0f} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        own = re.sub(r"^poundlock: lock=.*\n", "", errors, flags=re.MULTILINE)
        raise Failure(f"ended with {process.returncode}: {last_line(own) or last_line(output)}")
    return output, errors


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def wait_for_socket(process, path):
    deadline = time.monotonic() + 30
    while not os.path.exists(path):
        if process.poll() is not None or time.monotonic() > deadline:
            raise OSError("the server did not begin to listen")
        time.sleep(0.01)


def check_kyoto(output):
    if last_line(output) != "ok":
        raise Failure(f"did not say ok but: {last_line(output)}")


def check_db_bench(output, operations):
    lines = output.splitlines()
    due = DB_BENCH_THREADS * operations
    for benchmark in ("fillrandom", "readrandom", "readwhilewriting"):
        report = next((line for line in lines if line.startswith(benchmark)), "")
        reported = re.search(r" (\d+) operations;", report)
        if not reported or int(reported[1]) != due:
            raise Failure(f"{benchmark} did not report its {due} operations: {report}")
        found = re.search(r"\((\d+) of (\d+) found\)", report)
        if benchmark != "fillrandom" and not (found and int(found[1]) >= 0.99 * int(found[2]) > 0):
            raise Failure(f"{benchmark} did not find what was written: {report}")
    if not re.search(r"^verifychecksum +:", "\n".join(lines), re.MULTILINE):
        raise Failure("the checksums were not verified")


def check_checked(output):
    if not output.startswith("checked: "):
        raise Failure(f"did not check its result: {last_line(output)}")


def kccachetest(test, threads, count):
    command = (
        ["kccachetest", test, "-th", str(threads)]
        + (["-it", "1"] if test == "wicked" else [])
        + [str(count)]
    )
    return Batch(f"kccachetest-{test}-{threads}", lambda _: command, check_kyoto, rwlocks=True)


def db_bench(operations):
    """One small cache of small blocks for all threads.

    Each read takes the cache's mutex several times.
    """
    options = [
        "--benchmarks=fillrandom,readrandom,readwhilewriting,verifychecksum",
        f"--threads={DB_BENCH_THREADS}",
        f"--num={operations}",
        "--seed=1",
        "--compression_type=none",
        "--cache_numshardbits=0",
        "--cache_size=250000",
        "--block_size=512",
        "--write_buffer_size=250000",
    ]
    command = lambda directory: ["db_bench", f"--db={directory}", *options]
    return Batch(
        "db_bench", command, lambda output: check_db_bench(output, operations), rwlocks=True
    )


def memcached(directory):
    return [
        "memcached",
        "-s",
        f"{directory}/socket",
        "-t",
        "4",
        "-R",
        "200",
        "-u",
        pwd.getpwuid(os.getuid()).pw_name,
    ]


def threads64(percent):
    command = ["/usr/bin/python3", str(HERE / "threads64.py"), str(percent)]
    return Batch("python-64", lambda _: command, check_checked)


def checked(name, *command):
    """Our program for a third-party runtime, which prints what it checked."""
    return Batch(name, lambda _: list(command), check_checked, slow=True)


def stress_ng(name, prefix, operations):
    """Two of each stressor of stress-ng that uses locks and verifies its work, for @operations."""
    command = [*prefix, "stress-ng", "--stdout", "--verify"]
    for stressor, count in operations.items():
        command += [f"--{stressor}", "2", f"--{stressor}-ops", str(count)]
    return Batch(
        name, lambda directory: [*command, "--temp-path", directory], check_stress_ng, slow=True
    )


# The mutex stressor, where permitted, makes its threads real-time: the first one does all of the
# work before the creating thread runs again, which reports failure ("could not create any
# pthreads", status 3), also natively.
WITHOUT_REAL_TIME = ["setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice"]


def check_stress_ng(output):
    if "successful run completed" not in output:
        raise Failure(f"did not say that its run was successful: {last_line(output)}")


def same_as_first(name, script):
    """A shell @script that creates the file `made` in a directory.

    The files of all runs must equal that of the first, native run.
    """
    digests = []

    def command(directory):
        return ["sh", "-ec", f"cd {directory}; {script}; sha256sum < made"]

    def check(output):
        digests.append(output.strip())
        if not re.fullmatch(r"[0-9a-f]{64} +-", digests[-1]) or digests[-1] != digests[0]:
            raise Failure(f"made something else: {digests[-1]} instead of {digests[0]}")

    return Batch(name, command, check, slow=True)


def linker():
    """ld.lld links a large archive with 8 threads."""
    link = "ld.lld --threads=8 -z notext -shared --whole-archive $archive -o made"
    return same_as_first(
        "ld.lld",
        f"archive=$(gcc -print-file-name=libstdc++.a); for i in 1 2 3 4 5; do {link}; done",
    )


def transcoder(frames):
    """ffmpeg encodes a film and converts it, with threads that decode, filter and encode."""
    call = "ffmpeg -nostdin -loglevel error -threads 4 -fflags +bitexact -flags +bitexact"
    film = (
        f"{call} -f lavfi -i testsrc2=size=320x240:rate=25 -frames:v {frames} -codec:v mpeg4 "
        "-threads 4 film.avi"
    )
    return same_as_first(
        "ffmpeg",
        f"{film}; {call} -i film.avi -vf hqdn3d,unsharp -codec:v libx264 -threads 4 -f h264 made",
    )


def programs_of(percent):
    """The programs, with @percent of their full work."""

    def part(count):
        return count * percent // 100

    return [
        kccachetest("wicked", 1, part(1500000)),
        kccachetest("wicked", 2, part(200000)),
        kccachetest("wicked", 4, part(90000)),
        kccachetest("wicked", 8, part(60000)),
        kccachetest("order", 8, part(60000)),
        db_bench(part(5000)),
        Server(
            "memcached",
            memcached,
            lambda path: memcached_load.load(path, part(memcached_load.ROUNDS)),
        ),
        threads64(percent),
        checked("sqlite", "/usr/bin/python3", str(HERE / "sqlite_threads.py"), str(percent)),
        checked("java", "java", str(HERE / "Contended.java"), str(percent)),
        checked("node", "node", str(HERE / "workers.js"), str(percent)),
        stress_ng("stress-ng", [], {"futex": 200 * percent, "pthread": 10 * percent}),
        stress_ng(
            "stress-ng-mutex",
            WITHOUT_REAL_TIME if os.getuid() == 0 else [],
            {"mutex": 1000 * percent},
        ),
        linker(),
        transcoder(part(600)),
        checked("leveldb", "/usr/bin/python3", str(HERE / "leveldb_threads.py"), str(percent)),
        Server(
            "redis", redis_load.command, lambda path: redis_load.load(path, part(160000)), slow=True
        ),
        Server(
            "mariadb",
            database.command,
            lambda path: database.load(path, part(2000)),
            database.prepare,
            database.examine,
            slow=True,
        ),
        Server(
            "postgresql",
            postgresql.command,
            lambda path: postgresql.load(path, part(4000)),
            postgresql.prepare,
            postgresql.examine,
            slow=True,
        ),
        Server(
            "nginx",
            nginx_load.command,
            lambda path: nginx_load.load(path, part(8000)),
            nginx_load.prepare,
            slow=True,
        ),
    ]


# Only run alone: most of the time is the start of a dozen processes.
BROWSERS = [
    checked(name, "/usr/bin/python3", str(HERE / "browser.py"), name)
    for name in ("firefox", "chromium")
]


def locks_of(kind):
    """The names of the locks of @kind, LOCK or RWLOCK."""
    found = re.findall(rf"^{kind}\((\w+),", (ROOT / "core/locks.def").read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"core/locks.def: names no {kind}")
    return found


# A program with many locks, each of which waits for its owner's 2 ms slice to end, hardly
# progresses.
SETTINGS = {"scl": ",slice=20"}
# The preload library's default.
DEFAULTS = ["shfl_ron", "shfl_rw"]
LOCKS = locks_of("LOCK")
RWLOCKS = locks_of("RWLOCK")
# For programs that take seconds to start and end: a typical user's choice.
CHOICES = ["shfl_ron", "shfl_mutex", "mcs", "cna", "cfl_mutex"]


def environment(**settings):
    """This process's environment with our variables removed and @settings added."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POUNDLOCK_")}
    return {**kept, **settings}


def check_active(lock, errors):
    """Checks that the library reports @lock as active."""
    kind = "rwlock" if lock in RWLOCKS else "lock"
    said = re.findall(rf"^poundlock: .*\b{kind}=(\w+)", errors, re.MULTILINE)
    if not said or "cannot be preloaded" in errors:
        raise Failure("the preload library was not active")
    if set(said) != {lock}:
        raise Failure(f"the active lock was {', '.join(said)} instead of {lock}")


def options_of(lock):
    if lock == DEFAULT:
        return []
    return ["--rwlock" if lock in RWLOCKS else "--lock", lock + SETTINGS.get(lock, "")]


def run(program, lock, limit):
    """One run under @lock, or natively."""
    if lock == NATIVE:
        return program.run([], environment(), limit)
    outcome = launch(program, options_of(lock), limit)
    for active in DEFAULTS if lock == DEFAULT else [lock]:
        check_active(active, outcome.errors)
    return outcome


def launch(program, options, limit):
    return program.run(
        [str(POUNDLOCK), "run", *options, "--"], environment(POUNDLOCK_VERBOSE="1"), limit
    )


def report(verdict, program, lock, detail):
    print(f"{verdict:<4} {program:<22} {lock:<12} {detail}", flush=True)
    return verdict == "ok"


def endure(program, lock, limit, which=""):
    """Returns a run's seconds, or None after reporting how the run @which failed."""
    try:
        return run(program, lock, limit).seconds
    except (Failure, OSError) as failure:
        report("FAIL", program.name, lock, f"{which}{failure}")
        return None


def attempt(program, lock, limit):
    """Runs and reports. Returns whether it succeeded, and the seconds."""
    seconds = endure(program, lock, limit)
    return seconds is not None and report("ok", program.name, lock, f"{seconds:.2f} s"), seconds


def refuses(name, lock, errors):
    """Checks that check_active() can fail: a run that printed @errors was not under @lock."""
    try:
        check_active(lock, errors)
    except Failure as failure:
        return report("ok", name, lock, f"noticed: {failure}")
    return report("FAIL", name, lock, "not noticed")


def check_the_check(program, lock, other):
    without = program.run([], environment(POUNDLOCK_VERBOSE="1"), 120)
    return [
        refuses("no library", lock, without.errors),
        refuses("no library", RWLOCKS[0], without.errors),
        refuses("another lock", other, run(program, lock, 120).errors),
        refuses("another lock", RWLOCKS[1], run(program, RWLOCKS[0], 120).errors),
    ]


def fitting(program, chosen):
    """The locks among @chosen under which @program runs."""
    if program.slow:
        return [lock for lock in chosen if lock in CHOICES]
    return [lock for lock in chosen if program.rwlocks or lock not in RWLOCKS]


def counted(results):
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


def test(programs, chosen):
    results = check_the_check(programs[0], *LOCKS[:2])
    for program in programs:
        went_well, seconds = attempt(program, NATIVE, 3600)
        results.append(went_well)
        limit = 600 + 20 * (seconds or 2)
        results += [attempt(program, lock, limit)[0] for lock in fitting(program, chosen)]
    return counted(results)


def measure(program, variants, repeats, runner=run):
    """Runs the variants in interleaved repeats and returns the runs of each.

    A run is its elapsed seconds and CPU seconds, or None if it failed. Each repeat runs every
    variant once and starts with another one.
    """
    runs = {variant: [] for variant in variants}
    for repeat in range(repeats):
        for variant in variants[repeat % len(variants) :] + variants[: repeat % len(variants)]:
            before = cpu_seconds()
            try:
                seconds = runner(program, variant, 300).seconds
                runs[variant].append((seconds, cpu_seconds() - before))
            except (Failure, OSError) as failure:
                print(f"{program.name} {variant}: {failure}", file=sys.stderr)
                runs[variant].append(None)
    return runs


def cpu_seconds():
    """The CPU time of all children that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median_seconds(runs):
    seconds = [run[0] for run in runs if run]
    return statistics.median(seconds) if seconds else None


def captured(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def conditions(**more):
    """The conditions of the measurement, and @more."""
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    revision = captured("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": os.confstr("CS_GNU_LIBC_VERSION"),
        "packages": captured("dpkg-query", "-W", "-f=${Package} ${Version}, ", *PACKAGES).rstrip(
            ","
        ),
        "revision": revision or "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "load": f"{os.getloadavg()[0]:.1f} at the start",
        **more,
    }


def line(cells):
    return f"| {cells[0]:<20} | " + " | ".join(f"{cell:>10}" for cell in cells[1:]) + " |"


def table(title, where, columns, programs, row, output):
    """Prints a @title, the conditions, and each program's row as soon as it is measured.

    @row returns a program's cells and data.
    """
    text = [f"# {title}", ""] + [f"- {name}: {value}" for name, value in where.items()]
    text += ["", line(["program", *columns]), line(["---"] + ["---:"] * len(columns))]
    print("\n".join(text), flush=True)
    kept = {}
    for program in programs:
        cells, kept[program.name] = row(program)
        text.append(line([program.name, *cells]))
        print(text[-1], flush=True)
        keep(output, text, where, kept)
    where["load at the end"] = os.getloadavg()[0]
    text += ["", f"Load average (one minute) at the end: {where['load at the end']:.1f}"]
    print("\n".join(text[-2:]), flush=True)
    keep(output, text, where, kept)
    return 0


def keep(output, text, where, kept):
    """Writes the results so far to the files of @output, if any: an interruption loses one row."""
    if not output:
        return
    kept_results.keep(
        output, {"schema": 2, "conditions": where, "programs": kept}, "\n".join(text) + "\n"
    )


def ratio(programs, chosen, repeats, output):
    def row(program):
        runs = measure(program, [NATIVE] + fitting(program, chosen), repeats)
        medians = {variant: median_seconds(done) for variant, done in runs.items()}
        native = medians[NATIVE]
        times = [medians.get(lock) for lock in chosen]
        ratios = [f"{time / native:.2f}" if time and native else "-" for time in times]
        return [f"{native:.2f} s" if native else "-"] + ratios, {"median_seconds": medians}

    title = "Real programs: median wall time under each lock over the native one"
    where = conditions(repeats=repeats, goal=f"at most {RATIO_GOAL}")
    return table(title, where, [NATIVE] + chosen, programs, row, output)


def run_alike(program, lock, limit):
    """Native runs are started by poundlock too, so its start-up time is in both."""
    return (
        launch(program, ["--lock", NATIVE], limit) if lock == NATIVE else run(program, lock, limit)
    )


def pairs(runs, what):
    """The default's throughput relative to native in each repeat: the inverse ratio of times."""
    return [
        native[what] / ours[what]
        for native, ours in zip(runs[NATIVE], runs[DEFAULT])
        if native and ours
    ]


def spread(ratios):
    """The quartiles of two or more ratios."""
    if len(ratios) < 2:
        return "-"
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{low:.2f}-{high:.2f}"


def reached(ratios, goal):
    """Whether the median of the ratios reaches the goal: "yes", "no", or "noise".

    "noise": the median misses the goal, but the interval includes it or is unknown.

    >>> [reached(ratios, 0.98) for ratios in ([0.9, 0.98, 2], [0.9] * 5, [0.97] * 8)]
    ['yes', 'noise', 'no']
    >>> reached([0.9] * 5 + [0.99] * 3, 0.98)
    'noise'
    """
    ends = interval(ratios)
    if statistics.median(ratios) >= goal:
        return "yes"
    return "noise" if not ends or ends[1] >= goal else "no"


def against_native(programs, repeats, output):
    def row(program):
        runs = measure(program, [NATIVE, DEFAULT], repeats, run_alike)
        throughput, cpu = pairs(runs, 0), pairs(runs, 1)
        if not throughput:
            return ["-"] * len(columns), {"runs": runs}
        medians = [median_seconds(runs[variant]) for variant in (NATIVE, DEFAULT)]
        middle = statistics.median(throughput)
        cells = [f"{seconds:.2f} s" for seconds in medians]
        ends = interval(throughput)
        cells += [
            f"{middle:.2f}",
            spread(throughput),
            f"{ends[0]:.2f}-{ends[1]:.2f}" if ends else "-",
        ]
        cells += [f"{statistics.median(cpu):.2f}", reached(throughput, DEFAULT_GOAL)]
        return cells, {"runs": runs, "throughput": middle, "cpu": statistics.median(cpu)}

    columns = [NATIVE, DEFAULT, "throughput", "quartiles", "95 %", "by CPU time", "reached"]
    title = "Real programs: throughput under the default locks over the native one"
    where = conditions(repeats=repeats, goal=f"at least {DEFAULT_GOAL}", locks=", ".join(DEFAULTS))
    return table(title, where, columns, programs, row, output)


def endure_for(program, lock, seconds):
    """Returns the number of runs in @seconds, at least one, or None if one failed."""
    end = time.monotonic() + seconds
    runs = 0
    while not runs or time.monotonic() < end:
        runs += 1
        if endure(program, lock, 60 + 20 * seconds, f"run {runs}: ") is None:
            return None
    return runs


def soak(programs, locks, seconds, output):
    """Runs each program natively and under each of @locks, repeatedly, for @seconds."""
    results = []

    def row(program):
        runs = {lock: endure_for(program, lock, seconds) for lock in locks}
        results.extend(count is not None for count in runs.values())
        return [str(count) if count else "failed" for count in runs.values()], {"runs": runs}

    where = conditions(seconds=seconds)
    table(
        "Real programs: how often each ran well, for so many seconds under each lock",
        where,
        locks,
        programs,
        row,
        output,
    )
    return counted(results)


def chosen_of(available, wanted, what):
    unknown = [name for name in wanted if name not in available]
    if unknown:
        sys.exit(f"{unknown[0]}: no such {what}; there are {', '.join(available)}")
    return wanted or available


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ratio", action="store_true", help="measure the locks instead of testing")
    parser.add_argument(
        "--default",
        action="store_true",
        help="measure the default locks' throughput instead of testing",
    )
    parser.add_argument(
        "--soak", type=int, metavar="SECONDS", help="repeat each program for SECONDS"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="repeats of each measurement (default: 3)"
    )
    kept_results.add_options(parser)
    parser.add_argument(
        "-p", "--program", action="append", default=[], help="only this program; may be repeated"
    )
    parser.add_argument(
        "-l", "--lock", action="append", default=[], help="only this lock; may be repeated"
    )
    parser.add_argument(
        "--percent",
        type=int,
        default=100,
        help="percentage of the programs' full work (default: 100)",
    )
    options = parser.parse_args()
    # Also ends the running program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))

    if options.output:
        try:
            kept_results.check(options.output, options.force)
        except kept_results.Unfit as reason:
            sys.exit(f"programs: {reason}")
    if options.soak is not None and options.soak < 1:
        sys.exit(f"--soak {options.soak}: not a second or more")
    if not 10 <= options.percent <= 100:
        sys.exit(f"--percent {options.percent}: not from 10 to 100")
    available = programs_of(options.percent) + (
        [] if options.ratio or options.default else BROWSERS
    )
    names = chosen_of([program.name for program in available], options.program, "program")
    programs = [program for program in available if program.name in names]
    soaked = [NATIVE] + CHOICES
    chosen = chosen_of(
        soaked if options.soak is not None else LOCKS + RWLOCKS, options.lock, "lock"
    )
    if options.ratio:
        return ratio(programs, chosen, options.repeats, options.output)
    if options.default:
        return against_native(programs, options.repeats, options.output)
    if options.soak is not None:
        return soak(programs, chosen, options.soak, options.output)
    return test(programs, chosen)


if __name__ == "__main__":
    sys.exit(main())
