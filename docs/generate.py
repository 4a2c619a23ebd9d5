#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the table of locks.md from `poundlock list --json`, or with --check says whether it is up to date.

Every lock needs a page of its own in locks/.
"""

import json
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
LIST = [DOCS.parent / "target/release/poundlock", "list", "--json"]
BEGIN = "<!-- written by ./dev document -->\n"
END = "<!-- end -->\n"
HEADER = """\
| lock | order | bytes | a waiter | a holder | atomics alone | contended | default wait | keys besides `wait` |
|---|---|---|---|---|---|---|---|---|
"""


def row(lock):
    keys = ", ".join(f"`{key}`" for key in lock["keys"] if key != "wait")
    size = f"{lock['bytes_per_lock']}{' boxed' if lock['boxed'] else ''}"
    return (f"| [`{lock['name']}`](locks/{lock['name']}.md) | {lock['promise']} | {size} | {lock['bytes_per_waiter']} "
            f"| {lock['bytes_per_holder']} | {lock['atomics_alone']:.0f} | {lock['atomics_contended']:.1f} "
            f"| {lock['wait']} | {keys} |\n")


def main():
    locks = json.loads(subprocess.run(LIST, check=True, capture_output=True, text=True).stdout)["locks"]
    missing = [lock["name"] for lock in locks if not (DOCS / "locks" / f"{lock['name']}.md").exists()]
    if missing:
        sys.exit(f"docs/locks/ has no page of {', '.join(missing)}")
    page = DOCS / "locks.md"
    before, rest = page.read_text().split(BEGIN)
    text = before + BEGIN + HEADER + "".join(map(row, locks)) + END + rest.split(END, 1)[1]
    if sys.argv[1:] == ["--check"]:
        if text != page.read_text():
            sys.exit("docs/locks.md is not up to date: ./dev document writes it")
    else:
        page.write_text(text)


main()
