# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of README.md, from the reports in results/ that their commands write, and from
explored.py."""

import pathlib
import re

import explored

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results"
# README.md's name of a program, and the measurements of it in results/default.md.
PROGRAMS = {
    "Kyoto Cabinet, 2 / 8 threads": ("kccachetest-wicked-2", "kccachetest-wicked-8"),
    "RocksDB": ("db_bench",),
    "LevelDB": ("leveldb",),
    "nginx": ("nginx",),
    "PostgreSQL": ("postgresql",),
    "memcached": ("memcached",),
    "MariaDB": ("mariadb",),
    "Redis": ("redis",),
}
IN_ORDER = ("ticket", "mcs", "cna")


class Table(list):
    """Rows of a Markdown table, as dicts by column. `section` is the heading above it."""

    def __init__(self, section, columns):
        super().__init__()
        self.section, self.columns = section, columns

    def of(self, name):
        """The row whose first cell is @name."""
        for row in self:
            if row[self.columns[0]] == name:
                return row
        raise KeyError(f"the table of {self.section} has no row {name}")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text):
    """
    >>> table, = tables("# A\\n\\n| lock | ns |\\n|---|---|\\n| tas | 6.57 |\\n\\nMore.\\n")
    >>> table.section, table.of("tas")["ns"]
    ('A', '6.57')
    """
    found, section, open_table = [], "", None
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if not line.startswith("|"):
            open_table = None
        elif open_table is None:
            open_table = Table(section, cells(line))
            found.append(open_table)
        elif not set(line) <= set("|-: "):
            open_table.append(dict(zip(open_table.columns, cells(line))))
    return found


def stated(report, name):
    """The value of `- NAME: VALUE` at the start of @report."""
    return re.search(rf"^- {name}: (.*)$", report, re.MULTILINE)[1]


def ratio(row):
    """The ratio of @row to the contestant that its column's title names, without the quartiles."""
    return next(value.split()[0] for column, value in row.items() if column.startswith("ratio"))


def listed(names):
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def programs():
    """The table of real programs, what it shows, and which of its differences are noise."""
    report = (RESULTS / "default.md").read_text()
    first, *repeated = tables(report)
    values = [
        " / ".join(first.of(program)["throughput"] for program in measured)
        for measured in PROGRAMS.values()
    ]
    text = (
        "Throughput of unmodified programs with the default locks, glibc's being 1.00; medians of\n"
        f"{stated(report, 'repeats')} runs on {stated(report, 'cores')} cores "
        f"([all {len(first)} programs](results/default.md), `./dev bench programs`). On larger machines\n"
        f"we have simulated, not measured.\n\n"
        f"| {' | '.join(PROGRAMS)} |\n{'|---' * len(PROGRAMS)}|\n| {' | '.join(values)} |\n"
    )
    unsure = {
        name: measured[0]
        for name, measured in PROGRAMS.items()
        if any(first.of(program)["reached"] == "noise" for program in measured)
    }
    if not unsure:
        return text
    text += f"\nWithin the noise: {listed(list(unsure))}."
    if repeated:
        again = [repeated[0].of(program)["throughput"] for program in unsure.values()]
        runs = re.search(r"--repeats (\d+)", report)[1]
        text += f" {runs} runs of each gave {listed(again)}."
    return text + "\n"


def costs():
    """The table of uncontended cost and memory."""
    contended, single, memory = tables((RESULTS / "bench-uncontended-memory.md").read_text())
    rows = {
        "lock and unlock, uncontended, time": contended,
        "the same in a single-threaded process": single,
        "memory of a mutex": memory,
    }
    text = (
        "| cost, glibc's mutex being 1.00 ([measured](results/bench-uncontended-memory.md)) "
        "| preloaded | `pound_mutex_t` |\n|---|---|---|\n"
    )
    for name, table in rows.items():
        preloaded, linked = table.of("preloaded shfl_ron"), table.of("pound_mutex")
        text += f"| {name} | {ratio(preloaded)} | {ratio(linked)} |\n"
    return text


def crowds():
    """The throughput of the default and of locks in order of arrival, with many threads."""
    report = (RESULTS / "bench-pair-crowd.md").read_text()
    cores = int(stated(report, "cores"))
    by_threads = [(int(table.section.split()[0]), table) for table in tables(report)]
    crowded = [table for threads, table in by_threads if threads > cores]
    counts = [threads for threads, _ in by_threads if threads > cores]
    busy = float(
        re.search(r"\(`crowd`\)\n\nCores that other processes kept busy: ([\d.]+)", report)[1]
    )
    spreads = (
        f", with wide spreads: other\n  processes kept {busy:.1f} cores busy" if busy > 0.25 else ""
    )

    def span(names):
        ratios = [float(ratio(table.of(name))) for table in crowded for name in names]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    ordered = ", ".join(f"`{lock}`" for lock in IN_ORDER)
    return (
        f"- With {min(counts)} to {max(counts)} threads on {cores} cores `pound_mutex_t` has "
        f"{span(['pound_mutex'])} of the throughput\n"
        "  of the best of glibc, absl, nsync and parking_lot "
        "([measured](results/bench-pair-crowd.md)"
        f"{spreads}).\n"
        f"- Locks in order of arrival ({ordered}) have "
        f"{span([f'linked {lock}' for lock in IN_ORDER])} of it.\n"
    )


def parts():
    """The generated parts of README.md, in their order."""
    return [programs(), costs(), crowds() + explored.sentence()]
