#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares choices of the kernel's locks on the running machine, without a reboot.

    ./dev kernel --bench spin=stock spin=cna spin=shfl,spin_batch=64

A CHOICE is a list of FILE=VALUE, files of /sys/kernel/debug/poundlock (docs/kernel.md). Files that
only other choices name keep the value that they had at first. Each run executes every load under
every choice, in rotating order. Printed are the median rates, and the median ratio to the first
choice in the same run with its 95 % confidence interval, which needs six runs.

Loads are the tests of kernel/guest/stress.c, which check their results, for a fixed time; and
locktorture:TYPE, if the kernel has that module.

At the end, also after an error or a signal, even SIGKILL, the files have the values again that they
had at first.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import ratios  # noqa: E402
from command_line import Parser, positive  # noqa: E402

DEBUGFS = Path("/sys/kernel/debug")
SETTINGS = DEBUGFS / "poundlock"
STRESS = ROOT / "kernel/guest/stress.c"
TORTURE = "locktorture:"
# Without `fork` and `readdir`, whose rounds are long.
LOADS = "open1 open2 lock1 lock2 create rename_within rename_across mmap fault pipe futex".split()
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT = 600  # seconds for what should take a few


class Failure(Exception):
    """The comparison cannot be made; the text says why."""


# ---- Choices ----


@dataclass(frozen=True)
class Choice:
    text: str
    values: tuple  # of (file, value)


def choice_of(text):
    """The choice that @text describes.

    >>> choice_of("spin=shfl,spin_batch=64").values
    (('spin', 'shfl'), ('spin_batch', '64'))
    >>> choice_of("spin")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: 'spin' is not FILE=VALUE[,FILE=VALUE...]
    """
    parts = [part.partition("=") for part in text.split(",")]
    if not all(re.fullmatch(r"\w+", name) and value for name, _, value in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not FILE=VALUE[,FILE=VALUE...]")
    return Choice(text, tuple((name, value) for name, _, value in parts))


def check_machine():
    """Fails unless this kernel's locks can be chosen by this process."""
    if os.geteuid():
        raise Failure(f"only root can write to {SETTINGS}")
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    if not any(mount[1] == str(DEBUGFS) and mount[2] == "debugfs" for mount in mounts):
        raise Failure(f"debugfs is not mounted: mount -t debugfs debugfs {DEBUGFS}")
    if not SETTINGS.is_dir():
        raise Failure(f"the kernel {os.uname().release} has no locks of Poundlock: no {SETTINGS}")


def read_setting(name):
    try:
        return (SETTINGS / name).read_text().strip()
    except OSError as error:
        raise Failure(f"{SETTINGS / name}: {error.strerror}") from error


def write_setting(name, value):
    try:
        (SETTINGS / name).write_text(value)
    except OSError as error:
        raise Failure(f"the kernel refuses {name}={value}: {error.strerror}") from error


class Settings:
    """The files that @choices name, and their values at first."""

    def __init__(self, choices):
        names = [name for choice in choices for name, _ in choice.values]
        self.first = {name: read_setting(name) for name in dict.fromkeys(names)}

    def apply(self, choice):
        for name, value in {**self.first, **dict(choice.values)}.items():
            if read_setting(name) != value:
                write_setting(name, value)

    def restore(self):
        for name, value in self.first.items():
            if read_setting(name) != value:
                write_setting(name, value)

    def guard(self, watched):
        """Restores the files at the end of the pipe @watched, and ends this process."""
        status = 1
        try:
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN)
            os.setsid()
            os.read(watched, 1)
            self.restore()
            status = 0
        except Failure as failure:
            print(f"bench: {failure}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)

    @contextlib.contextmanager
    def kept(self):
        """Restores the files at the end. Another process does it, which lives on if this one is
        killed: it waits for the end of a pipe whose other end only this one has."""
        watched, held = os.pipe()
        sys.stdout.flush()
        guard = os.fork()
        if not guard:
            os.close(held)
            self.guard(watched)
        os.close(watched)
        try:
            yield
        finally:
            os.close(held)
            os.waitpid(guard, 0)


# ---- Loads ----


def build_stress(folder):
    program = folder / "stress"
    command = ["cc", "-O2", "-static", "-pthread", "-o", program, STRESS]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except OSError as error:
        raise Failure(f"no C compiler builds {STRESS}: {error}; --stress names a binary") from error
    except subprocess.CalledProcessError as error:
        raise Failure(f"{STRESS} does not build:\n{error.stderr}") from error
    return program


def output_of(command, folder=None):
    """The output of @command; its failure ends the comparison."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{command[0]}: {error}") from error
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr).strip()}")
    return done.stdout


@contextlib.contextmanager
def log_since():
    """Yields a function that returns what the kernel has logged since."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)

    def read():
        text = ""
        with contextlib.suppress(BlockingIOError):
            while True:
                text += os.read(log, 8192).decode(errors="replace")
        return text

    try:
        os.lseek(log, 0, os.SEEK_END)
        yield read
    finally:
        os.close(log)


def tortured(kind, threads, seconds):
    """The write acquisitions per second of the kernel's torture of the lock @kind."""
    settings = [f"torture_type={kind}", f"nwriters_stress={threads}", "stat_interval=0"]
    with log_since() as logged:
        output_of(["modprobe", "locktorture", *settings, "stutter=0", "shuffle_interval=0"])
        began = time.monotonic()
        try:
            time.sleep(seconds)
        finally:
            output_of(["modprobe", "-r", "locktorture"])
        elapsed, text = time.monotonic() - began, logged()
    totals = re.findall(r"Writes:\s+Total: (\d+)", text)
    if not totals or "End of test: SUCCESS" not in text:
        raise Failure(f"{TORTURE}{kind}: the kernel's log has no success")
    return int(totals[-1]) / elapsed


class Loads:
    """Runs loads by @threads threads for @seconds each, in an empty folder in @folder."""

    def __init__(self, program, threads, seconds, folder):
        self.program, self.threads, self.seconds = program, threads, seconds
        self.folder = folder

    def check(self, names):
        known = output_of([self.program, "list"]).split()
        for name in names:
            if name not in known and not re.fullmatch(f"{TORTURE}\\w+", name):
                raise Failure(f"there is no load '{name}': {' '.join(known)} {TORTURE}TYPE")

    def rate(self, name):
        """Rounds per second of the load @name."""
        if name.startswith(TORTURE):
            return tortured(name.removeprefix(TORTURE), self.threads, self.seconds)
        command = [self.program, name, str(self.threads), f"{max(1, round(self.seconds * 1000))}ms"]
        with tempfile.TemporaryDirectory(dir=self.folder) as empty:
            text = output_of(command, empty)
        found = re.search(r" rounds=(\d+) nanoseconds=(\d+) ok$", text.strip())
        if not found:
            raise Failure(f"{name}: {text.strip()}")
        return int(found.group(1)) / int(found.group(2)) * 1e9


# ---- The comparison ----


def compare(choices, names, runs, settings, loads):
    """The rates by load and choice, one of each run."""
    rates = {name: {choice.text: [] for choice in choices} for name in names}
    for run in range(runs):
        turn = run % len(choices)
        for name in names:
            for choice in choices[turn:] + choices[:turn]:
                settings.apply(choice)
                rates[name][choice.text].append(loads.rate(name))
    return rates


def summary(rates, base):
    """The median of @rates, and of their ratios to @base, which is of the same runs.

    >>> summary([2.0, 4.0, 6.0], [1.0, 4.0, 2.0])
    {'rate': 4.0, 'ratio': 2.0, 'low': None, 'high': None}
    """
    found = [rate / first if first else float("nan") for rate, first in zip(rates, base)]
    low, high = ratios.interval(found) or (None, None)
    return {
        "rate": statistics.median(rates),
        "ratio": statistics.median(found),
        "low": low,
        "high": high,
    }


def table_of(rates):
    rows = [("load", "choice", "rounds/s", "ratio", "95 %")]
    for name, by_choice in rates.items():
        base = next(iter(by_choice.values()))
        for text, values in by_choice.items():
            found = summary(values, base)
            between = f"{found['low']:.3f} to {found['high']:.3f}" if found["low"] else "-"
            rows.append(
                (name, text, f"{found['rate']:.0f}", f"{found['ratio']:.3f}", between)
                if values is not base
                else (name, text, f"{found['rate']:.0f}", "1", "")
            )
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )


def document(arguments, rates):
    """The comparison as JSON."""
    results = [
        {"load": name, "choice": text, "rates": values}
        | summary(values, next(iter(by_choice.values())))
        for name, by_choice in rates.items()
        for text, values in by_choice.items()
    ]
    kept = {name: getattr(arguments, name) for name in ("runs", "threads", "seconds")}
    return {"kernel": os.uname().release, "cpus": os.cpu_count(), **kept, "results": results}


def parse_arguments():
    parser = Parser(
        prog="./dev kernel --bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("choices", metavar="CHOICE", type=choice_of, nargs="+")
    parser.add_argument(
        "--load", metavar="NAME", action="append", help="this load; may be repeated; default: most"
    )
    parser.add_argument("--runs", type=positive(int), default=9, help="default: 9")
    parser.add_argument(
        "--threads", type=positive(int), default=os.cpu_count(), help="default: one per CPU"
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=2.0, help="of each load; default: 2"
    )
    parser.add_argument("--folder", help="where loads use files; default: /dev/shm or /tmp")
    parser.add_argument("--stress", metavar="PROGRAM", help="stress.c, built; default: build it")
    parser.add_argument("--json", metavar="FILE", help="write all rates there")
    arguments = parser.parse_args()
    texts = [choice.text for choice in arguments.choices]
    if len(texts) < 2 or len(set(texts)) < len(texts):
        parser.error("two or more different choices are compared")
    return arguments


def main():
    arguments = parse_arguments()
    # They end the process by an exception, which cleans up.
    for number in ENDING:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    check_machine()
    settings = Settings(arguments.choices)
    folder = arguments.folder or ("/dev/shm" if os.path.isdir("/dev/shm") else None)
    names = arguments.load or LOADS
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.abspath(arguments.stress or build_stress(Path(scratch)))
        loads = Loads(program, arguments.threads, arguments.seconds, folder)
        loads.check(names)
        with settings.kept():
            for choice in arguments.choices:
                settings.apply(choice)
            rates = compare(arguments.choices, names, arguments.runs, settings, loads)
    print(table_of(rates))
    if arguments.json:
        text = json.dumps(document(arguments, rates), indent=1)
        Path(arguments.json).write_text(text + "\n")


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as problem:
        sys.exit(f"bench: {problem}")
