# SPDX-License-Identifier: MIT OR Apache-2.0
"""The litmus tests of tests/lkmm: their comments, expected results and mutants.

A test is in herd7's C format. Its first comment states the order that it shows and, after `Stands
for:`, the functions and the labels of orders in the kernel's locks that it models. Its outcome
(`exists`) must never occur, except where the comment has another result for a series of Linux:

    Result (6.1): Sometimes

A mutant is the test with one statement weakened. Comments behind the statement's line have the
weaker ones, each of which must make the outcome possible; with a series, in that one alone:

    smp_store_release(word, 0);
    // weaker: WRITE_ONCE(*word, 0);
    // weaker (6.1): WRITE_ONCE(*word, 0);
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests/lkmm"
# The sources that the tests model.
MODELLED = ["core", "world/kernel", "kernel/overlay", "kernel/hook"]

RESULTS = re.compile(r"^ \* Result \(([\d.]+)\): (\w+)$", re.MULTILINE)
WEAKER = re.compile(r"\s*// weaker(?: \(([\d.]+)\))?: (.*)")
TABLE = """\
| test | what it shows | mutants |
|---|---|---|
"""


@dataclass
class Mutant:
    line: int  # of the weakened statement
    weaker: str  # the statement in its place
    series: str  # "": all
    text: str


def mutants_of(text):
    """The mutants of the test @text, by the number of the weakened line.

    >>> test = "a;\\n\\tb;\\n\\t// weaker: c;\\n\\t// weaker (6.1): d;\\n}\\n"
    >>> [(mutant.line, mutant.series, mutant.text) for mutant in mutants_of(test)]
    [(2, '', 'a;\\n\\tc;\\n}\\n'), (2, '6.1', 'a;\\n\\td;\\n}\\n')]
    """
    lines = text.splitlines()
    kept = [number for number, line in enumerate(lines) if not WEAKER.fullmatch(line)]
    for number, line in enumerate(lines):
        if match := WEAKER.fullmatch(line):
            weakened = max(before for before in kept if before < number)
            indent = re.match(r"\s*", lines[weakened]).group()
            changed = {weakened: indent + match[2]}
            mutant = "".join(changed.get(other, lines[other]) + "\n" for other in kept)
            yield Mutant(weakened + 1, match[2], match[1] or "", mutant)


def comment_of(text):
    """The first comment of the test @text, in paragraphs.

    >>> comment_of("C name\\n\\n(*\\n * One\\n * two.\\n *\\n * Three.\\n *)\\n")
    ['One two.', 'Three.']
    """
    inside = re.search(r"\(\*\n(.*?)\*\)", text, re.DOTALL)[1]
    paragraphs = re.sub(r"(?m)^ \* ?", "", inside).split("\n\n")
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


@dataclass
class Test:
    name: str
    text: str

    def result(self, series):
        """The expected result with the model of @series."""
        return dict(RESULTS.findall(self.text)).get(series, "Never")

    def mutants(self, series=None):
        """The mutants that must be allowed in @series (None: in any)."""
        return [
            mutant
            for mutant in mutants_of(self.text)
            if series is None or mutant.series in ("", series)
        ]

    def wrong(self, sources):
        """Errors in the test's form, as lines; @sources: the text of all that is modelled."""
        if not self.text.startswith(f"C {self.name}\n"):
            yield f"its first line is not 'C {self.name}'"
        stands_for = [one for one in comment_of(self.text) if one.startswith("Stands for: ")]
        if len(stands_for) != 1:
            yield "its comment has not one paragraph 'Stands for:'"
        for name in re.findall(r"(\w+)\(\)", "".join(stands_for)):
            if not re.search(rf"\b{name}\(", sources):
                yield f"there is no function {name}()"
        for label in re.findall(r"\[[A-Z_]+-\d+\]", "".join(stands_for)):
            if label not in sources:
                yield f"there is no label {label}"
        if not self.mutants():
            yield "it has no mutant"


def tests():
    return [Test(path.stem, path.read_text()) for path in sorted(TESTS.glob("*.litmus"))]


def sources():
    """The text of all files that the tests model."""
    return "".join(
        path.read_text() for folder in MODELLED for path in sorted((ROOT / folder).rglob("*.[ch]"))
    )


def table():
    """The rows of kernel.md's table of tests."""
    return TABLE + "".join(
        f"| [`{test.name}`](../tests/lkmm/{test.name}.litmus) | {comment_of(test.text)[0]} "
        f"| {len(test.mutants())} |\n"
        for test in tests()
    )
