# SPDX-License-Identifier: MIT OR Apache-2.0
"""verification.md's table of the memory orders: how each is shown to be necessary, from the labels
in core/, killers.txt and survivors.txt; and that of the orders which several locks share, from
attribution.csv."""

import collections
import csv
import functools
import pathlib
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import labels  # noqa: E402

HEADER = """\
| label | where | order | pairs with | if weakened |
|---|---|---|---|---|
"""
# The weaker orders of each order, as in crates/poundlock-check/src/mutation/mutant.rs.
WEAKER = {
    "acquire": ["relaxed"],
    "release": ["relaxed"],
    "acq_rel": ["acquire", "release"],
    "fence": ["acq_rel"],
}


@functools.cache
def judged(name):
    """Of tests/check/@name: each mutant, and what is said of it."""
    lines = (ROOT / "tests/check" / name).read_text().splitlines()
    return [tuple(line.rsplit(" | ", 1)) for line in lines if line and not line.startswith("#")]


SURVIVES = "survives"
# An acquire that pairs with nothing.
UNPAIRED = "-"


class Weakened(typing.NamedTuple):
    """A mutant that weakens one order."""

    name: str
    weaker: str
    result: str  # SURVIVES, UNPAIRED or the client that detects it


@functools.cache
def files():
    return [labels.File(path, ROOT) for path in sorted((ROOT / "core").rglob("*.h"))]


@functools.cache
def weakened(file):
    """By label of @file, its mutants."""
    killers, survivors = judged("killers.txt"), judged("survivors.txt")
    found, seen = collections.defaultdict(list), collections.Counter()
    for label, source, order in file.operations:
        for weaker in WEAKER[order]:
            strong = "seq_cst" if order == "fence" else order
            name = f"{file.name.removeprefix('core/')}: {source}: {weaker} for {strong}"
            seen[name] += 1
            name += f" ({seen[name]})" * (seen[name] > 1)
            results = [f"`{killer}`" for mutant, killer in killers if mutant == name]
            results += [SURVIVES for mutant, _ in survivors if mutant == name]
            if "nothing" in file.labels[label].pairs.get("acquire", ()):
                results.append(UNPAIRED)
            if len(results) != 1:
                sys.exit(f"'{name}' is not in exactly one of killers.txt and survivors.txt")
            found[label].append(Weakened(name, weaker, *results))
    return found


def shown(mutants):
    """The results of the @mutants of a label, one for each operation and weaker order."""
    told = {}
    for _, weaker, result in mutants:
        told.setdefault(weaker, []).append(result)
    parts = [f"{weaker}: {', '.join(dict.fromkeys(results))}" for weaker, results in told.items()]
    return "; ".join(parts)


def row(file, name, label, mutants):
    pairs = "; ".join(
        f"{side}: {', '.join(sorted(partners))}" for side, partners in sorted(label.pairs.items())
    )
    return f"| {name} | `{file.name}` | {label.order} | {pairs} | {shown(mutants)} |\n"


def table():
    rows = []
    for file in files():
        by_label = weakened(file)
        for name, label in file.labels.items():
            prefix, number = name.rsplit("-", 1)
            rows.append((prefix, int(number), row(file, name, label, by_label[name])))
    return HEADER + "".join(text for _, _, text in sorted(rows))


def summary():
    """A paragraph on what was shown of all orders."""
    results = [
        mutant.result for file in files() for each in weakened(file).values() for mutant in each
    ]
    survive, unpaired = results.count(SURVIVES), results.count(UNPAIRED)
    killed = len(results) - survive - unpaired
    return (
        f"Of {len(results)} ways to weaken one order alone, clients detect {killed}; {survive} "
        f"survive, each with a reason in\n`tests/check/survivors.txt`; {unpaired} are acquires "
        "that pair with nothing, most of them of waits, which\nhave no relaxed form.\n"
    )


SHARED_HEADER = """\
| label | weaker | locks that need the order | locks whose clients do not detect it | not examined |
|---|---|---|---|---|
"""


@functools.cache
def attribution():
    """By mutant, the locks of each status in attribution.csv."""
    found = {}
    with open(ROOT / "tests/check/attribution.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            by_status = found.setdefault(row["mutant"], collections.defaultdict(list))
            by_status[row["status"]].append(row["lock"])
    return found


def shared():
    """A table of the orders that several locks share: the locks that need each."""
    rows = []
    for file in files():
        for label, mutants in weakened(file).items():
            prefix, number = label.rsplit("-", 1)
            for place, mutant in enumerate(mutants):
                locks = attribution().get(mutant.name, {})
                listed = [locks.get(status, ()) for status in ("detected", "survives", "open")]
                if any(listed):
                    cells = " | ".join(" ".join(f"`{lock}`" for lock in each) for each in listed)
                    row = f"| {label} | {mutant.weaker} | {cells} |\n"
                    rows.append((prefix, int(number), place, row))
    return SHARED_HEADER + "".join(row for *_, row in sorted(rows))


def shared_summary():
    """A paragraph on what was shown of the orders that several locks share."""
    counts = collections.Counter()
    for locks in attribution().values():
        counts.update({status: len(names) for status, names in locks.items()})
    needed = sum("detected" in locks for locks in attribution().values())
    return (
        f"{len(attribution())} of these are in files that several locks include: "
        f"{sum(counts.values())} pairs of a weaker order and\na lock. In {counts['absent']} the "
        f"lock's clients do not contain the operation: their code is the same. In\n"
        f"{counts['detected']} a client of that lock detects the weaker order, so this lock needs "
        f"it. In {counts['survives']}\nno client does. {counts['open']} have not been examined. "
        f"{needed} of the {len(attribution())} are shown to be needed by some lock.\n"
    )
