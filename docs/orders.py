# SPDX-License-Identifier: MIT OR Apache-2.0
"""verification.md's table of the memory orders: how each is shown to be necessary, from the labels
in core/, killers.txt and survivors.txt."""

import collections
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
            found[label].append(Weakened(weaker, *results))
    return found


def shown(mutants):
    """The results of the @mutants of a label, one for each operation and weaker order."""
    told = {}
    for weaker, result in mutants:
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
        "that pair with nothing, most of them of waits, which\nhave no relaxed form. What is "
        "detected was shown to be necessary for the lock of the named client,\nnot for each lock "
        "that contains the operation.\n"
    )
