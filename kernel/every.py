#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs every kind of kernel and guest that `./dev test` does not run, and keeps the results.

Each row of results/kernel.md is a kind of guests, with a version of Linux where its kernel is
built. Its last result is written when the row has ended, so that an interrupted run loses that row
alone. A row that cannot be run for lack of packages, or of root, keeps its result. The exit status
is 1 if a case has failed.
"""

import argparse
import datetime
import hashlib
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
import installed  # noqa: E402
import own  # noqa: E402
from groups import every_group, run_group  # noqa: E402
from kinds import OF_TEST  # noqa: E402
from parts import PACKAGES, ROOT, Failure  # noqa: E402
from report import Count  # noqa: E402

RESULTS = ROOT / "results/kernel.md"

HEADER = """\
# Results of `./dev kernel --all`

The last result of each kind of kernel and guest that `./dev test` does not run
([docs/kernel.md](../docs/kernel.md#what-dev-test-does-not-run)). Minutes include the kernel's build
where it was not built. *Sources* is a digest of the locks' sources of the row. In the last column
`./dev document` writes whether they have changed since.

| row | Linux | guests | passed | failed | skipped | minutes | date | commit | sources | since |
|---|---|---|---|---|---|---|---|---|---|---|
"""
NEVER = "not run"
FAILED = "\n## Failed cases\n\n"

# The sources of every row: locks, their world, and the module; of some rows also others.
LOCKS = ["core", "world/kernel", "kernel/*.c", "kernel/*.h", "kernel/Kbuild"]
OVERLAY, HOOK, POLICIES = "kernel/overlay", "kernel/hook", "kernel/policies"


@dataclass
class Row:
    """@guests guests of Linux @linux, which @run runs with a Count. @sources: the locks' sources,
    relative to the repository. @lacks returns why the row cannot be run, or nothing."""

    name: str
    kind: str
    linux: str
    guests: int
    sources: list
    lacks: Callable
    run: Callable


@dataclass
class Result:
    """The last result of a row. @cells: those of the table from `guests` to `sources`."""

    cells: list
    failures: list = field(default_factory=list)

    @property
    def failed(self):
        return self.cells[2] != "0"

    @property
    def sources(self):
        return self.cells[-1].strip("`")


# ---- Rows ----


def lacking(packages):
    found = own.missing(packages)
    return f"not installed: {' '.join(found)}" if found else ""


def row_of(group):
    """The row of @group, without guests of `./dev test`."""
    name = group.kind.name
    more = [OVERLAY] if group.variant else []
    more += [HOOK] * group.kind.hook + [POLICIES] * (group.variant == "bpf")
    return Row(
        f"{name}-{group.series}" if len(group.kind.series) > 1 else name,
        name,
        group.series,
        len(group.guests),
        LOCKS + more,
        lambda: lacking(PACKAGES + group.packages()),
        lambda count: run_group(group, count),
    )


def row_of_packages(series):
    """The row of Debian packages of a kernel of @series in the guests' configuration."""

    def lacks():
        if installed.os.geteuid():
            return "only root can make a userland of Debian"
        return lacking(PACKAGES + deb.packages(series) + installed.PACKAGES)

    def run(count):
        folder = own.cache() / f"packages-{series}"
        shutil.rmtree(folder, ignore_errors=True)
        with count.part(f"packages of {series}"):
            deb.build(folder, series, deb.GUEST, None)
        installed.check(folder, count)

    return Row(f"packages-{series}", "packages", series, 2, LOCKS + [OVERLAY], lacks, run)


def rows():
    groups = every_group()
    for group in groups:
        group.drop(OF_TEST)
    found = [row_of(group) for group in groups if group.guests]
    return found + [row_of_packages(series) for series in own.SERIES]


# ---- The state of the sources ----


def files_of(sources):
    """The files of @sources, which are folders and patterns."""
    found = [path for source in sources for path in ROOT.glob(source)]
    found += [file for path in found if path.is_dir() for file in path.rglob("*")]
    return sorted(path for path in found if path.is_file())


def digest(sources):
    """A digest of the contents of @sources."""
    text = hashlib.sha256()
    for file in files_of(sources):
        text.update(f"{file.relative_to(ROOT)} {file.stat().st_size}\n".encode())
        text.update(file.read_bytes())
    return text.hexdigest()[:12]


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    """The commit that is checked out, with `+` if locks or their tests differ from it."""
    name = git("rev-parse", "--short=12", "HEAD")
    return (name or "unknown") + "+" * bool(git("status", "--porcelain", "core", "world", "kernel"))


def is_current(row, result):
    return result is not None and result.sources == digest(row.sources)


# ---- The table ----


def read():
    """The last results, by row."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    found = {}
    for name, cells in re.findall(r"^\| `(\S+)` \| \S+ \| (.*) \|$", text, re.MULTILINE):
        cells = cells.split(" | ")
        if NEVER not in cells:
            found[name] = Result(cells[:-1])
    for name, case in re.findall(r"^- `(\S+)`: (.*)$", text, re.MULTILINE):
        found[name].failures.append(case)
    return found


def line_of(row, result):
    """The row of the table."""
    if result:
        cells = [*result.cells, "unchanged" if is_current(row, result) else "changed"]
    else:
        cells = [str(row.guests), NEVER, *["-"] * 7]
    return f"| `{row.name}` | {row.linux} | {' | '.join(cells)} |\n"


def document(results=None):
    """The text of results/kernel.md, with @results, by default the last ones."""
    results = read() if results is None else results
    text = HEADER + "".join(line_of(row, results.get(row.name)) for row in rows())
    failures = [
        f"- `{name}`: {case}\n" for name, result in results.items() for case in result.failures
    ]
    return text + (FAILED + "".join(failures) if failures else "")


def keep(row, result):
    """Writes @result as the last one of @row."""
    RESULTS.write_text(document({**read(), row.name: result}))


# ---- Command line ----


def run(row):
    """Runs @row, and returns its result; None if nothing of it could be run."""
    print(f"==== {row.name}", flush=True)
    count, began = Count(), time.monotonic()
    # The sources may change during the run.
    state = [f"`{commit()}`", f"`{digest(row.sources)}`"]
    if why := row.lacks():
        print(f"kernel: skipped {row.name}: {why}", flush=True)
        return None
    try:
        row.run(count)
    except (Failure, own.Failure, exact.Failure, subprocess.SubprocessError, OSError) as problem:
        count.case(f"{row.name} is run", " ".join(str(problem).split()))
    count.sum_up()
    if not count.passed + count.failed:
        return None
    minutes = (time.monotonic() - began) / 60
    numbers = [row.guests, count.passed, count.failed, count.skipped, f"{minutes:.0f}"]
    date = datetime.datetime.now(datetime.timezone.utc).date()
    return Result([str(cell) for cell in [*numbers, date]] + state, count.failures)


def chosen_rows(parser, arguments):
    every = rows()
    names = {row.name for row in every} | {row.kind for row in every}
    if unknown := set(arguments.only or []) - names:
        parser.error(f"there is no row '{min(unknown)}'; there are {', '.join(sorted(names))}")
    chosen = [
        row for row in every if not arguments.only or {row.name, row.kind} & set(arguments.only)
    ]
    if arguments.resume:
        results = read()
        chosen = [
            row
            for row in chosen
            if not is_current(row, results.get(row.name)) or results[row.name].failed
        ]
    return chosen


def main():
    parser = argparse.ArgumentParser(
        prog="./dev kernel --all", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--only",
        metavar="ROW",
        action="append",
        help="run this row of results/kernel.md, or all rows of this kind; may be repeated",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="only rows that were not run, have failed, or whose locks' sources have changed since",
    )
    chosen = chosen_rows(parser, parser.parse_args())
    results = {}
    for row in chosen:
        if result := run(row):
            results[row.name] = result
            keep(row, result)
    print(f"{RESULTS.relative_to(ROOT)}: {len(results)} of {len(chosen)} rows were run")
    return any(result.failed for result in results.values())


if __name__ == "__main__":
    sys.exit(main())
