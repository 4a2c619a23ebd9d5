#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the generated parts of the documents. --check reports whether they are up to date instead.

  locks.md         tables of the locks, from `poundlock list --json`
  verification.md  tables of the exploration, from expected.txt, killers.txt and survivors.txt in
                   tests/check/, and from the labels in core/

Every lock needs a page of its own in locks/. The sizes that a lock's header and page state must be
those of the library.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))
import labels  # noqa: E402
LIST = [DOCS.parent / "target/release/poundlock", "list", "--json"]
BEGIN = "<!-- written by ./dev document -->\n"
END = "<!-- end -->\n"
HEADER = """\
| lock | order | bytes | per waiter | per holder | atomics uncontended | contended | default wait | keys besides `wait` |
|---|---|---|---|---|---|---|---|---|
"""


RW_HEADER = """\
| lock | order | bytes | per waiter | per holder | atomics reading | writing | contended | default wait | keys besides `wait` |
|---|---|---|---|---|---|---|---|---|---|
"""


def row(lock):
    keys = ", ".join(f"`{key}`" for key in lock["keys"] if key != "wait")
    size = f"{lock['bytes_per_lock']}{' boxed' if lock['boxed'] else ''}"
    reading = "" if lock["atomics_reading"] is None else f"| {lock['atomics_reading']:.0f} "
    return (f"| [`{lock['name']}`](locks/{lock['name']}.md) | {lock['promise']} | {size} | {lock['bytes_per_waiter']} "
            f"| {lock['bytes_per_holder']} {reading}| {lock['atomics_alone']:.0f} | {lock['atomics_contended']:.1f} "
            f"| {lock['wait']} | {keys} |\n")


CLIENTS_HEADER = """\
| lock | clients | completely | states | under a bound | states | by random walks | steps |
|---|---|---|---|---|---|---|---|
"""
MUTANTS_HEADER = """\
| file | killed by clients | killed by unit tests | killers | survivors |
|---|---|---|---|---|
"""
LABELS_HEADER = """\
| label | where | order | pairs with |
|---|---|---|---|
"""
# The tests of the checker itself.
OWN = ("litmus", "seeded")


def explorations():
    """By lock, its clients: name, how it is explored and how many states or steps that had."""
    found = collections.defaultdict(list)
    for line in (DOCS.parent / "tests/check/expected.txt").read_text().splitlines():
        words = line.split()
        if line.startswith("#") or words[0] == "deep":
            continue
        lock, client = words[0].split("/", 1)
        found[lock.rstrip("+")].append((client, words[1], int(words[2])))
    return found


def clients_row(lock, clients):
    def kind(how):
        chosen = [(name, kept, count) for name, kept, count in clients if kept.startswith(how)]
        return chosen, sum(count for _, _, count in chosen)
    (complete, states), (bounded, bounded_states), (walked, steps) = kind("complete"), kind("bound:"), kind("walks:")
    bounds = ", ".join(f"`{name}` {kept.split(':', 1)[1].replace(':', '/')}" for name, kept, _ in bounded)
    return (f"| `{lock}` | {len(clients)} | {len(complete)} | {states:,} | {bounds} | {bounded_states:,} | {len(walked)} "
            f"| {steps:,} |\n")


def clients_table():
    rows = [clients_row(lock, clients) for lock, clients in sorted(explorations().items()) if lock not in OWN]
    return CLIENTS_HEADER + "".join(rows)


def judged(name):
    """Of tests/check/@name: the file of each mutant, and what is said of it."""
    lines = (DOCS.parent / "tests/check" / name).read_text().splitlines()
    told = [line.rsplit(" | ", 1) for line in lines if line and not line.startswith("#")]
    return [(mutant.split(":", 1)[0], what) for mutant, what in told]


def mutants_table():
    files = collections.defaultdict(lambda: ([], [], []))
    for file, killer in judged("killers.txt"):
        files[file][killer.startswith("unit/")].append(killer)
    for file, reason in judged("survivors.txt"):
        files[file][2].append(reason)
    rows = []
    for file, (clients, tests, stay) in sorted(files.items()):
        names = sorted({killer.split("/")[0] for killer in clients} | set(tests))
        kinds = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| `{file}` | {len(clients)} | {len(tests)} | {kinds} | {len(stay)} |\n")
    return MUTANTS_HEADER + "".join(rows)


def labels_table():
    rows = []
    for path in sorted((DOCS.parent / "core").rglob("*.h")):
        for name, label in labels.File(path, DOCS.parent).labels.items():
            pairs = "; ".join(f"{side}: {', '.join(sorted(partners))}" for side, partners in sorted(label.pairs.items()))
            file, number = name.rsplit("-", 1)
            rows.append((file, int(number), f"| {name} | `{path.relative_to(DOCS.parent)}` | {label.order} | {pairs} |\n"))
    return LABELS_HEADER + "".join(row for _, _, row in sorted(rows))


def locks_tables(listing):
    locks, rwlocks = listing["locks"], listing["rwlocks"]
    missing = [lock["name"] for lock in locks + rwlocks if not (DOCS / "locks" / f"{lock['name']}.md").exists()]
    if missing:
        sys.exit("write " + ", ".join(f"docs/locks/{name}.md" for name in missing))
    return [HEADER + "".join(map(row, locks)), RW_HEADER + "".join(map(row, rwlocks))]


# Sizes that a lock's header and page state about it, and where `poundlock list` has them.
STATED = {r"(\d+) bytes (?:a|per) lock\b": "bytes_per_lock", r"node of (\d+) bytes": "bytes_per_waiter"}


def wrong_sizes(lock):
    """One line for each size of @lock that its header or page states wrongly."""
    name = lock["name"]
    sources = [*DOCS.parent.glob(f"core/**/{name}.h"), DOCS / "locks" / f"{name}.md"]
    for path in sources:
        text = re.sub(r"\s+(?:\* )?", " ", path.read_text())
        for pattern, field in STATED.items():
            for stated in re.findall(pattern, text):
                if int(stated) != lock[field]:
                    yield f"{path.relative_to(DOCS.parent)}: {field} is {lock[field]}, not {stated}"


def check_sizes(listing):
    # The size of a box depends on the machine.
    unboxed = [lock for lock in listing["locks"] + listing["rwlocks"] if not lock["boxed"]]
    if wrong := [line for lock in unboxed for line in wrong_sizes(lock)]:
        sys.exit("\n".join(wrong))


def filled(page, tables):
    """The text of @page with @tables between the marks, in their order."""
    before, *parts = page.read_text().split(BEGIN)
    if len(parts) != len(tables):
        sys.exit(f"{page}: {len(parts)} places for {len(tables)} tables")
    return before + "".join(BEGIN + table + END + part.split(END, 1)[1] for table, part in zip(tables, parts))


def main():
    listing = json.loads(subprocess.run(LIST, check=True, capture_output=True, text=True).stdout)
    check_sizes(listing)
    pages = {"locks.md": locks_tables(listing), "verification.md": [clients_table(), mutants_table(), labels_table()]}
    for name, tables in pages.items():
        page = DOCS / name
        text = filled(page, tables)
        if sys.argv[1:] != ["--check"]:
            page.write_text(text)
        elif text != page.read_text():
            sys.exit(f"docs/{name} is not up to date: ./dev document writes it")


main()
