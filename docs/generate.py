#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the generated parts of the documents. --check reports whether they are up to date instead.

  locks.md         tables of the locks, from `poundlock list --json`, and in the table of keys the
                   values and defaults: lock, key and meaning of a row are written by hand
  locks/           the promise, state word and departures of each lock: the opening comment of its
                   header without the first paragraph. A page may include further headers
  README.md        its figures, from results/
  verification.md  tables of the exploration, by explored.py; of the mutants by file, from
                   killers.txt and survivors.txt in tests/check/; of the memory orders, by orders.py
  verification/    a page per lock: its clients, by explored.py
  kernel.md        cache lines that move, by transfers.py; the litmus tests, by kernel/litmus.py
  results/kernel.md  whether the locks' sources have changed since each result, by kernel/every.py

Every lock needs a page of its own in locks/. The order that a lock's header states must be that of
core/locks.def, and the sizes that header and page state must be those of the library.
"""

import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "kernel"))
import every  # noqa: E402
import explored  # noqa: E402
import litmus  # noqa: E402
import orders  # noqa: E402
import readme  # noqa: E402
import transfers  # noqa: E402

LIST = [ROOT / "target/release/poundlock", "list", "--json"]
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
    return (
        f"| [`{lock['name']}`](locks/{lock['name']}.md) | {lock['promise']} | {size} | "
        f"{lock['bytes_per_waiter']} "
        f"| {lock['bytes_per_holder']} {reading}| {lock['atomics_alone']:.0f} | "
        f"{lock['atomics_contended']:.1f} "
        f"| {lock['wait']} | {keys} |\n"
    )


MUTANTS_HEADER = """\
| file | killed by clients | killed by unit tests | killers | survivors |
|---|---|---|---|---|
"""


def mutants_table():
    files = collections.defaultdict(lambda: ([], [], []))
    for mutant, killer in orders.judged("killers.txt"):
        files[mutant.split(":", 1)[0]][killer.startswith("unit/")].append(killer)
    for mutant, reason in orders.judged("survivors.txt"):
        files[mutant.split(":", 1)[0]][2].append(reason)
    rows = []
    for file, (clients, tests, stay) in sorted(files.items()):
        names = sorted({killer.split("/")[0] for killer in clients} | set(tests))
        kinds = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| `{file}` | {len(clients)} | {len(tests)} | {kinds} | {len(stay)} |\n")
    return MUTANTS_HEADER + "".join(rows)


def locks_tables(listing):
    locks, rwlocks = listing["locks"], listing["rwlocks"]
    missing = [
        lock["name"]
        for lock in locks + rwlocks
        if not (DOCS / "locks" / f"{lock['name']}.md").exists()
    ]
    if missing:
        sys.exit("write " + ", ".join(f"docs/locks/{name}.md" for name in missing))
    return [HEADER + "".join(map(row, locks)), RW_HEADER + "".join(map(row, rwlocks))]


# Sizes that a lock's header and page state about it, and where `poundlock list` has them.
STATED = {
    r"(\d+) bytes (?:a|per) lock\b": "bytes_per_lock",
    r"node of (\d+) bytes": "bytes_per_waiter",
}


def header_of(name):
    """The path of the header of lock @name, relative to the repository; None if there is none."""
    return next((path.relative_to(ROOT) for path in (ROOT / "core").glob(f"**/{name}.h")), None)


def wrong_sizes(lock):
    """One line for each size of @lock that its header or page states wrongly."""
    for path in (ROOT / header_of(lock["name"]), DOCS / "locks" / f"{lock['name']}.md"):
        text = re.sub(r"\s+(?:\* )?", " ", path.read_text())
        for pattern, field in STATED.items():
            for stated in re.findall(pattern, text):
                if int(stated) != lock[field]:
                    yield f"{path.relative_to(ROOT)}: {field} is {lock[field]}, not {stated}"


def wrong_order(lock):
    """One line if the header of @lock states another order than core/locks.def."""
    header = header_of(lock["name"])
    stated = re.search(
        r"^ \* Order: (.*?)\.\n \*\n",
        (ROOT / header).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    order = stated and stated[1].replace("\n * ", " ")
    if order != lock["promise"]:
        yield f"{header}: the order is '{order}'; core/locks.def has '{lock['promise']}'"


def check_headers(listing):
    locks = listing["locks"] + listing["rwlocks"]
    wrong = [line for lock in locks for line in wrong_order(lock)]
    # The size of a box depends on the machine.
    wrong += [line for lock in locks if not lock["boxed"] for line in wrong_sizes(lock)]
    if wrong:
        sys.exit("\n".join(wrong))


FROM_HEADER = re.compile(
    r"<!-- written by \./dev document from (\S+) -->\n(?:.*?)<!-- end -->\n", re.DOTALL
)
OPENING = re.compile(r"/\*\n(.*?)\n \*/", re.DOTALL)
TITLE = re.compile(r"\A(From|Order|Promise|Departures?(?: from [\w' ]+)?): ?(.)?")


def titled(match):
    return f"**{match[1]}.** {(match[2] or '').upper()}".rstrip(" ")


def in_markdown(lines, link):
    """The @lines of a block comment, without the asterisks. @link returns the link to a header.

    >>> comment = [" Promise: as a.h", " under wait=park.", "", "   0 --> 1", "", "   1 --> 0"]
    >>> print(in_markdown(comment, str.upper))
    **Promise.** As A.H
    under `wait=park`.
    <BLANKLINE>
    ```
    0 --> 1
    <BLANKLINE>
    1 --> 0
    ```
    >>> print(in_markdown([" Departures from the paper:", "  - One.", "    More."], str.upper))
    **Departures from the paper.**
     - One.
       More.
    """
    paragraphs = [
        list(group)
        for blank, group in itertools.groupby(lines, lambda line: not line.strip())
        if not blank
    ]
    shown = []
    for is_drawing, group in itertools.groupby(
        paragraphs, lambda paragraph: paragraph[0].startswith("   ")
    ):
        if is_drawing:
            drawing = "\n\n".join("\n".join(line[3:] for line in paragraph) for paragraph in group)
            shown.append(f"```\n{drawing}\n```")
            continue
        for paragraph in group:
            text = "\n".join(line[1:] for line in paragraph)
            text = re.sub(r"(?<![`\w/])[\w/]+\.h\b", lambda match: link(match[0]), text)
            text = re.sub(r"(?<!`)\bwait=\w+", r"`\g<0>`", text)
            shown.append(TITLE.sub(titled, text, count=1))
    return "\n\n".join(shown)


def contract(name):
    """The opening comment of header @name without its first paragraph, as Markdown for a page in
    locks/."""
    header = ROOT / name

    def link(mentioned):
        for folder in (header.parent, ROOT / "core", ROOT):
            if (folder / mentioned).exists():
                return f"[`{mentioned}`](../../{(folder / mentioned).relative_to(ROOT)})"
        sys.exit(f"{name}: there is no header '{mentioned}'")

    lines = [line.removeprefix(" *") for line in OPENING.search(header.read_text())[1].split("\n")]
    subject = header.stem
    clients = f" *Explored* [clients](../verification/{subject}.md)." * (
        subject in explored.explorations()
    )
    contents = in_markdown(lines[lines.index("") + 1 :], link)
    return f"*Source* [`{name}`](../../{name}).{clients}\n\n{contents}\n"


def lock_page(page):
    """The text of @page with the contracts of the headers that its marks name."""
    text = page.read_text()
    own = header_of(page.stem)
    if own not in {pathlib.Path(name) for name in FROM_HEADER.findall(text)}:
        sys.exit(
            f"{page.relative_to(ROOT)}: add '<!-- written by ./dev document from {own} -->' and "
            "'<!-- end -->'"
        )
    return FROM_HEADER.sub(
        lambda match: (
            f"<!-- written by ./dev document from {match[1]} -->\n" + contract(match[1]) + END
        ),
        text,
    )


KEYS_BEGIN = "<!-- values and defaults written by ./dev document -->\n"
KEY_ROW = re.compile(r"^\| `(\w+)` \| (`[^|]*`) \| [^|]* \| [^|]* \| (.*)$", re.MULTILINE)
# Values that mean: no limit.
MOST = (2**32 - 2, 2**32 - 1)


def key_values(setting):
    """The cells of the values and the default of @setting."""
    if "choices" in setting:
        names = ", ".join(f"`{name}`" for name in setting["choices"])
        return f"{names} | `{setting['default']}`"
    least, most = setting["least"], setting["most"]
    values = f"{least} and up" if most in MOST else f"{least} to {most}"
    return f"{values} | {setting['default']}"


def keys_table(listing, table):
    """@table with the values and defaults of @listing. Each key of each lock has one row."""
    missing = {
        (lock["name"], setting["key"]): key_values(setting)
        for lock in listing["locks"] + listing["rwlocks"]
        for setting in lock["settings"]
    }

    def row(match):
        key, locks, meaning = match.groups()
        cells = {missing.pop((lock, key), None) for lock in re.findall(r"`(\w+)`", locks)}
        if len(cells) != 1 or None in cells:
            sys.exit(f"docs/locks.md: a row of `{key}` has locks without it or with other values")
        return f"| `{key}` | {locks} | {cells.pop()} | {meaning}"

    table = KEY_ROW.sub(row, table)
    if missing:
        wanted = ", ".join(f"`{key}` of `{lock}`" for lock, key in missing)
        sys.exit(f"docs/locks.md: add a row for {wanted}")
    return table


def with_keys(listing, text):
    """@text, of locks.md, with the table of keys filled in."""
    before, rest = text.split(KEYS_BEGIN)
    table, after = rest.split(END, 1)
    return before + KEYS_BEGIN + keys_table(listing, table) + END + after


def filled(page, tables):
    """The text of @page with @tables between the marks, in their order."""
    before, *parts = page.read_text().split(BEGIN)
    if len(parts) != len(tables):
        sys.exit(f"{page}: {len(parts)} places for {len(tables)} tables")
    return before + "".join(
        BEGIN + table + END + part.split(END, 1)[1] for table, part in zip(tables, parts)
    )


def main():
    listing = json.loads(subprocess.run(LIST, check=True, capture_output=True, text=True).stdout)
    check_headers(listing)
    tables = {
        "kernel.md": [transfers.table(), litmus.table()],
        "locks.md": locks_tables(listing),
        "verification.md": [
            explored.summary(),
            mutants_table(),
            orders.summary(),
            orders.table(),
            orders.shared_summary(),
            orders.shared(),
        ],
    }
    written = {DOCS / name: filled(DOCS / name, parts) for name, parts in tables.items()}
    written[DOCS / "locks.md"] = with_keys(listing, written[DOCS / "locks.md"])
    written[every.RESULTS] = every.document()
    written[ROOT / "README.md"] = filled(ROOT / "README.md", readme.parts())
    written |= {page: lock_page(page) for page in sorted((DOCS / "locks").glob("*.md"))}
    written |= {
        DOCS / "verification" / f"{subject}.md": explored.page(subject, found)
        for subject, found in explored.explorations().items()
    }
    for page, text in written.items():
        if sys.argv[1:] != ["--check"]:
            page.write_text(text)
        elif not page.exists() or text != page.read_text():
            sys.exit(f"{page.relative_to(ROOT)} is not up to date: ./dev document writes it")


if __name__ == "__main__":
    main()
