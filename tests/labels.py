#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that every memory order in the locks' sources has a label, and that labels form pairs.

The comment directly before an ordered operation contains `[FILE-1] ORDER: pairs with [FILE-2], ...`
or `[FILE-1] acq_rel: acquire pairs with ...; release pairs with ...`, where FILE is the header's
name in capitals. Labels are unique. A partner must exist, have the opposite order and name the
label in return. An acquire may pair with `nothing`. An operation may also pair with `the release of
w_NAME` or `the acquire of w_NAME`, functions of world/README.md.

The comment directly before a relaxed operation contains `relaxed: REASON`. `relaxed, both:` covers
two operations of a function, `relaxed, all:` three or more.
"""

import pathlib
import re
import sys
import tempfile
from typing import NamedTuple

SOURCES = pathlib.Path(__file__).resolve().parents[1]

# The maximum number of lines of code between the end of a comment and its operation.
REACH = 3

OPERATION = re.compile(
    r"\bw_(?:load|store|exchange|compare_exchange|fetch_[a-z]+|await|wait)_"
    r"(relaxed|acquire|release|acq_rel)\(|\bw_(fence)_seq_cst\("
)
NAME = r"[A-Z][A-Z0-9_]*-[0-9]+"
LABEL = re.compile(rf"\[({NAME})\] (acquire|release|acq_rel|fence):")
RELAXED = re.compile(r"(?:^|[.;:)] )relaxed(, both|, all)?:")
LIST = rf"((?:\[{NAME}\](?:, (?=\[)| and (?=\[))?)+|nothing\b|the (?:acquire|release) of w_[a-z_]+)"
PARTNERS = re.compile(
    rf"(?:(acquire and release|acquire|release) )?(?:pairs?|and) with {LIST}", re.IGNORECASE
)
OTHER = {"acquire": "release", "release": "acquire"}


class Label(NamedTuple):
    where: str
    order: str
    pairs: dict  # maps "acquire" and "release" to sets of partners


def lines_without_comments(text):
    """Returns the lines of code, and the comments by the number of their last line."""
    comments = {}

    def blank(match):
        words = re.sub(r"\s*\n\s*\*?\s*", " ", match.group()[2:-2]).strip(" *")
        last = text.count("\n", 0, match.end()) + 1
        comments[last] = words
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r"/\*.*?\*/", blank, text, flags=re.DOTALL).split("\n"), comments


def pairs_of(order, text):
    """Returns the partners that a label's text names, by the side that pairs with them."""
    pairs = {side: set() for side in OTHER}
    side = order if order in OTHER else None
    for match in PARTNERS.finditer(text):
        if match.group(1):
            side = match.group(1).lower()
        named = re.findall(rf"\[({NAME})\]", match.group(2)) or [match.group(2).lower()]
        for one in side.split(" and ") if side else []:
            pairs[one].update(named)
    return {one: partners for one, partners in pairs.items() if partners}


def labels_of(text, where):
    """Returns the labels that a comment defines."""
    found = list(LABEL.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {
        match.group(1): Label(
            where, match.group(2), pairs_of(match.group(2), text[match.end() : end])
        )
        for match, end in zip(found, ends)
    }


class Operation(NamedTuple):
    """An ordered operation."""

    label: str
    source: str  # its line, without the indentation
    order: str


class File:
    """One header: its labels, its ordered operations and the errors in it."""

    def __init__(self, path, root):
        self.name = str(path.relative_to(root))
        self.text = path.read_text().split("\n")
        self.code, self.comments = lines_without_comments("\n".join(self.text))
        self.labels, self.operations, self.wrong = {}, [], []
        self.relaxed_group = None  # [line, kind, number of operations so far]
        for line, text in self.comments.items():
            for name, label in labels_of(text, f"{self.name}:{line}").items():
                if not name.startswith(f"{path.stem.upper()}-"):
                    self.wrong.append(f"{label.where}: [{name}] is not named after its file")
                if name in self.labels:
                    self.wrong.append(f"{label.where}: [{name}] is there twice")
                self.labels[name] = label
        for line, code in enumerate(self.code, 1):
            self.check_line(line, code)
        self.end_group()
        self.wrong += [
            f"{label.where}: [{name}] belongs to no {label.order} operation"
            for name, label in self.labels.items()
            if name not in {operation.label for operation in self.operations}
        ]

    def check_line(self, line, code):
        if code.startswith("}"):
            self.end_group()
        if line in self.comments and RELAXED.search(self.comments[line]):
            self.end_group()
            self.relaxed_group = [line, RELAXED.search(self.comments[line]).group(1), 0]
        for match in OPERATION.finditer(code):
            order = match.group(1) or match.group(2)
            if order == "relaxed":
                self.check_relaxed(line)
            else:
                self.check_ordered(line, order)

    def comments_before(self, line):
        """Yields the comments that end at most REACH lines of code before @line, nearest first.

        A blank line ends the search.
        """
        between = 0
        for above in range(line, 0, -1):
            if above in self.comments:
                yield self.comments[above]
            if above == line:
                continue
            if not self.code[above - 1].strip():
                if above not in self.comments and not self.inside_comment(above):
                    return
                continue
            between += 1
            if between > REACH:
                return

    def inside_comment(self, line):
        """Whether @line, which has no code, is part of a comment."""
        following = line
        while following not in self.comments:
            following += 1
            if following > len(self.code) or self.code[following - 1].strip():
                return False
        return True

    def check_ordered(self, line, order):
        for text in self.comments_before(line):
            for name, label in labels_of(text, "").items():
                if label.order == order:
                    self.operations.append(Operation(name, self.text[line - 1].strip(), order))
                    return
            if LABEL.search(text):
                break
        self.wrong.append(f"{self.name}:{line}: this {order} has no label")

    def check_relaxed(self, line):
        group = self.relaxed_group
        if group and group[2] == 0 and line - group[0] > REACH:
            group = None
        if (
            not group
            or (group[1] is None and group[2] == 1)
            or (group[1] == ", both" and group[2] == 2)
        ):
            self.wrong.append(f"{self.name}:{line}: no comment says why this is relaxed")
        else:
            group[2] += 1

    def end_group(self):
        if self.relaxed_group:
            line, kind, count = self.relaxed_group
            enough = {None: count == 1, ", both": count == 2, ", all": count >= 3}
            if not enough[kind]:
                self.wrong.append(
                    f"{self.name}:{line}: 'relaxed{kind or ''}:' stands before {count} operations"
                )
        self.relaxed_group = None


def check_pairs(labels, world):
    """Returns the errors in the pairs that the labels of all files form."""
    wrong = []
    for name, label in labels.items():
        sides = list(OTHER) if label.order == "acq_rel" else [label.order]
        for side in sides if label.order != "fence" else []:
            if side not in label.pairs:
                wrong.append(f"{label.where}: [{name}] does not say what its {side} pairs with")
        for side, partners in label.pairs.items():
            for partner in sorted(partners):
                wrong += check_pair(labels, world, name, side, partner)
    return wrong


def check_pair(labels, world, name, side, partner):
    where = labels[name].where
    if partner == "nothing":
        return (
            [] if side == "acquire" else [f"{where}: [{name}] is a release that pairs with nothing"]
        )
    outside = re.fullmatch(r"the (acquire|release) of (w_[a-z_]+)", partner)
    if outside:
        known = outside.group(1) == OTHER[side] and re.search(rf"\b{outside.group(2)}\b", world)
        return (
            []
            if known
            else [f"{where}: [{name}] pairs with {partner}, which world/README.md does not have"]
        )
    if partner not in labels:
        return [f"{where}: [{name}] pairs with [{partner}], which is not there"]
    if name not in labels[partner].pairs.get(OTHER[side], ()):
        return [
            f"{where}: the {side} of [{name}] pairs with [{partner}], whose {OTHER[side]} does not "
            "name it"
        ]
    return []


def check(core):
    """Returns the errors in the headers under @core, one line each."""
    labels, wrong = {}, []
    world = (SOURCES / "world/README.md").read_text()
    for path in sorted(core.rglob("*.h")):
        file = File(path, core.parent)
        wrong += file.wrong
        for name, label in file.labels.items():
            if name in labels:
                wrong.append(f"{label.where}: [{name}] is at {labels[name].where} too")
            labels[name] = label
    if not labels:
        wrong.append(f"{core}: there are no labels")
    return wrong + check_pairs(labels, world)


# Seeded errors: a file, a text in it, its replacement, and a part of the line that must report it.
BROKEN = [
    (
        "ttas.h",
        "/* [TTAS-1] acquire: pairs with",
        "/* acquire: pairs with",
        "this acquire has no label",
    ),
    (
        "ttas.h",
        "[TTAS-4] release: pairs with [TTAS-1]",
        "[TTAS-4] release: pairs with [TTAS-9]",
        "[TTAS-9], which is not there",
    ),
    (
        "ttas.h",
        "[TTAS-4] release: pairs with [TTAS-1]",
        "[TTAS-4] release: pairs with [TTAS-2]",
        "whose acquire does not name it",
    ),
    (
        "ttas.h",
        "[TTAS-4] release: pairs with [TTAS-1]",
        "[TTAS-4] release: pairs with nothing",
        "pairs with nothing",
    ),
    (
        "ttas.h",
        "[TTAS-4] release: pairs with [TTAS-1];",
        "[TTAS-4] release:",
        "does not say what its release pairs with",
    ),
    ("ttas.h", "[TTAS-4] release", "[TTAS-5] release", "is there twice"),
    ("ttas.h", "[TTAS-4] release", "[TAS-4] release", "is not named after its file"),
    (
        "ttas.h",
        "w_store_release(&lock->word",
        "w_store_relaxed(&lock->word",
        "no comment says why this is relaxed",
    ),
    (
        "ttas.h",
        "w_store_release(&lock->word",
        "w_store_relaxed(&lock->word",
        "[TTAS-4] belongs to no release operation",
    ),
    ("ttas.h", "/* relaxed: only", "/* only", "no comment says why this is relaxed"),
    (
        "mcs_queue.h",
        "relaxed, both: [MCS_QUEUE-1]",
        "relaxed: [MCS_QUEUE-1]",
        "no comment says why this is relaxed",
    ),
    (
        "mcs_queue.h",
        "relaxed, both: [MCS_QUEUE-1]",
        "relaxed, all: [MCS_QUEUE-1]",
        "stands before 2 operations",
    ),
    (
        "mcs_queue.h",
        "[MCS_QUEUE-3] acq_rel: acquire pairs",
        "[MCS_QUEUE-3] acq_rel: release pairs",
        "[MCS_QUEUE-3]",
    ),
    ("mcs_queue.h", "[MCS_QUEUE-4] release", "[TTAS-4] release", "is at core/"),
    (
        "wait.h",
        "the acquire of w_node_get",
        "the acquire of w_nobody",
        "world/README.md does not have",
    ),
    (
        "tickets.h",
        "\tuint32_t serving = w_load_acquire(",
        "\tw_fence_seq_cst();\n\tuint32_t serving = w_load_acquire(",
        "this fence has no label",
    ),
]


def self_test():
    """Seeds each error in a copy of the sources and checks that it is reported."""
    failed = 0
    for name, old, new, expected in BROKEN:
        with tempfile.TemporaryDirectory() as folder:
            core = pathlib.Path(folder) / "core"
            for path in (SOURCES / "core").rglob("*.h"):
                text = path.read_text()
                if path.name == name:
                    assert old in text, f"{name} has no '{old}' to break"
                    text = text.replace(old, new, 1)
                copy = core / path.relative_to(SOURCES / "core")
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text)
            wrong = check(core)
        if not any(expected in line for line in wrong):
            print(f"{name} with '{new}': nothing says '{expected}', but {wrong}", file=sys.stderr)
            failed += 1
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test() > 0
    if sys.argv[1:]:
        sys.exit("Usage: labels.py [--self-test]")
    wrong = check(SOURCES / "core")
    for line in wrong:
        print(line, file=sys.stderr)
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
