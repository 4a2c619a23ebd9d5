# SPDX-License-Identifier: MIT OR Apache-2.0
"""The descendants of a process."""

from pathlib import Path


def parents():
    """The parent of each process that lives during the whole call."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            found[int(process.name)] = int(fields[1])
    return found


def descendants(ancestor):
    """The processes that @ancestor or a descendant of it has started, as far as they and those in
    between live during the whole call.

    The kernel's lists of the children of each thread are not used: while threads and children end,
    a reader of these lists misses others.
    """
    parent = parents()

    def descends(process):
        while process in parent:
            process = parent[process]
            if process == ancestor:
                return True
        return False

    return [process for process in parent if descends(process)]
