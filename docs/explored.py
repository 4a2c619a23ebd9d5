# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model checker's explorations, from tests/check/explorations.csv: verification.md's table of
all locks, the pages in verification/, and README.md's sentence."""

import collections
import csv
import functools
import pathlib
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIENTS_HEADER = """\
| lock | clients | completely | states | under a bound | states | by random walks | steps \
| with load buffering | states |
|---|---|---|---|---|---|---|---|---|---|
"""
PAGE_HEADER = """\
| client | threads | model | explored | states | steps | CPU time, s |
|---|---|---|---|---|---|---|
"""
# The memory model with load buffering, whose explorations come in addition to the usual ones.
PROMISES = "promises"
# The tests of the checker itself.
OWN = ("litmus", "seeded")


class Exploration(typing.NamedTuple):
    """A row of explorations.csv. Of random walks, `states` are steps."""

    client: str
    deep: bool
    threads: int
    model: str
    strategy: str
    states: int
    seconds: float

    @classmethod
    def of(cls, row):
        return cls(
            client=row["client"].split("/", 1)[1],
            deep=row["deep"] == "true",
            threads=int(row["threads"]),
            model=row["model"],
            strategy=row["strategy"],
            states=int(row["states"]),
            seconds=float(row["seconds"]),
        )

    @property
    def how(self):
        """
        >>> Exploration("2x1", False, 2, "RC11", "bound:2:1", 9, 0.0).how
        '2 preemptions, 1 stale'
        """
        kind, *numbers = self.strategy.split(":")
        if kind == "complete":
            return "completely"
        if kind == "walks":
            return f"{2 * int(numbers[0]):,} random walks"
        return ", ".join(f"{n} {what}" for n, what in zip(numbers, ("preemptions", "stale")))


@functools.cache
def explorations():
    """By lock or other subject, its explorations."""
    found = collections.defaultdict(list)
    with open(ROOT / "tests/check/explorations.csv", newline="") as file:
        for row in csv.DictReader(file):
            subject = row["client"].split("/", 1)[0].rstrip("+")
            found[subject].append(Exploration.of(row))
    return {subject: found[subject] for subject in sorted(found) if subject not in OWN}


def usual(found):
    """The explorations among @found that `./dev check` makes of each client."""
    return [each for each in found if not each.deep and each.model != PROMISES]


def count(chosen):
    return f"{len(chosen)} | {sum(each.states for each in chosen):,}"


def clients_row(subject, found):
    clients = usual(found)

    def of(how):
        return count([each for each in clients if each.strategy.startswith(how)])

    promises = [each for each in found if not each.deep and each.model == PROMISES]
    return (
        f"| [`{subject}`](verification/{subject}.md) | {len(clients)} | {of('complete')} "
        f"| {of('bound:')} | {of('walks:')} | {count(promises)} |\n"
    )


def summary():
    rows = [clients_row(subject, found) for subject, found in explorations().items()]
    usual_rows = [each for found in explorations().values() for each in found if not each.deep]
    seconds = sum(each.seconds for each in usual_rows)
    return (
        CLIENTS_HEADER
        + "".join(rows)
        + f"\n`./dev check` explores these {len(usual_rows):,} rows in {seconds:,.0f} s of CPU "
        f"time, {seconds / 120:.0f} minutes on 2 cores: the\n"
        "sum of the recorded times. Times of a busy machine are longer: `./dev check --times`\n"
        "records the shorter ones.\n"
    )


def page_row(exploration):
    walked = exploration.strategy.startswith("walks:")
    states, steps = ("", f"{exploration.states:,}") if walked else (f"{exploration.states:,}", "")
    deep = ", `--deep`" if exploration.deep else ""
    return (
        f"| `{exploration.client}` | {exploration.threads} | {exploration.model} "
        f"| {exploration.how}{deep} | {states} | {steps} | {exploration.seconds:.2f} |\n"
    )


def page(subject, found):
    """The page of @subject in verification/: its explorations @found."""
    return (
        f"# Explored clients of {subject}\n\n"
        f"    ./dev check {subject}\n\n"
        "All of them hold. [What they do, and how they are explored]"
        "(../verification.md#what-is-explored)\n"
        "is the same for all locks. `./dev check --accept` records the rows in\n"
        "[`explorations.csv`](../../tests/check/explorations.csv).\n\n"
        + PAGE_HEADER
        + "".join(map(page_row, found))
    )


def sentence():
    """README.md's sentence."""
    clients = [each for found in explorations().values() for each in usual(found)]
    complete = sum(each.strategy == "complete" for each in clients)
    return (
        f"- A [model checker](docs/verification.md) explores {len(clients):,} clients of the shipped "
        f"source, {complete:,} of\n  them completely. All hold.\n"
    )
