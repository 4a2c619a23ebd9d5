# SPDX-License-Identifier: MIT OR Apache-2.0
"""The questions of the benchmark: their measurements, comparisons and goals."""

import dataclasses
import functools
import pathlib
import re
import statistics

from measure import Case, Contestant, interleave
from ratios import interval

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = "glibc"
RIVALS = [Contestant(name, name) for name in (BASELINE, "absl", "nsync", "parking_lot")]
MILLION = 1_000_000

# The critical section and the mean of the work outside, as the driver takes them.
SECTIONS = {
    "short section, no work outside": ("short", "short"),
    "short section, 100 ns outside": ("short", "100"),
    "1 us section, no work outside": ("long", "short"),
    "1 us section, 2 us outside": ("long", "2000"),
}


@dataclasses.dataclass
class Goal:
    """A bound on the median of a contestant's ratios, judged by their printed decimals: met or
    missed if the median's whole 95 % confidence interval meets or misses it, else undecided."""

    bound: float
    at_least: bool

    def missed_by(self, ratio):
        lack = self.bound - ratio if self.at_least else ratio - self.bound
        return max(0.0, round(lack, 2))

    def verdict(self, ratios):
        ends = interval(ratios)
        missed = [self.missed_by(end) > 0 for end in ends or []]
        if not missed or any(missed) != all(missed):
            return "undecided"
        return "MISSED" if all(missed) else "met"

    def __str__(self):
        return f"{'>=' if self.at_least else '<='} {self.bound:.2f}"


@dataclasses.dataclass
class Table:
    """Rows of figures with a heading."""

    title: str
    header: list
    rows: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Answer:
    title: str
    tables: list
    missed: list
    undecided: list
    met: int
    measurements: dict


def lock_names():
    text = (ROOT / "core" / "locks.def").read_text()
    return re.findall(r"^LOCK\((\w+),", text, re.MULTILINE)


def contestants(spinning=False):
    """All contestants, glibc first: rivals, linked locks, preloaded ones, and pure spinning."""
    names = lock_names()
    found = RIVALS + [Contestant("pound_mutex", "pound_mutex")]
    found += [Contestant(f"linked {name}", f"pound:{name}") for name in names]
    found += [Contestant(f"preloaded {name}", "glibc", preload=name) for name in names]
    if spinning:
        found += [
            Contestant(f"linked {name},wait=spin", f"pound:{name},wait=spin") for name in names
        ]
    return found


def forms(lock):
    """A lock's contestants."""
    return [f"linked {lock}", f"preloaded {lock}"] + (
        ["pound_mutex"] if lock == "shfl_mutex" else []
    )


def goals_for(bounds, at_least):
    return {form: Goal(bound, at_least) for lock, bound in bounds.items() for form in forms(lock)}


class Comparison:
    """The repeats of one figure in one case, and their ratios to another contestant."""

    def __init__(self, results, case, figure):
        self.figures = {}
        for (title, name), repeats in results.items():
            if title == case.title and all(figure in repeat for repeat in repeats):
                self.figures[name] = [repeat[figure] for repeat in repeats]

    def median(self, name):
        return statistics.median(self.figures[name]) if name in self.figures else None

    def best(self, names):
        """The contestant with the highest median; the best of each repeat would be biased."""
        return max((name for name in names if name in self.figures), key=self.median)

    def ratios(self, name, to):
        if name not in self.figures:
            return None
        return [a / b for a, b in zip(self.figures[name], self.figures[to])]


def spread(ratios):
    """Median (its 95 % confidence interval)."""
    if ratios is None:
        return "did not end"
    ends = interval(ratios)
    about = f"{ends[0]:.2f}-{ends[1]:.2f}" if ends else "too few repeats"
    return f"{statistics.median(ratios):.2f} ({about})"


class Verdicts:
    """The goals that are met, missed and undecided."""

    def __init__(self, goals):
        self.goals, self.missed, self.undecided, self.met = goals, [], [], 0

    def judge(self, name, where, ratios):
        """The goal's cell of a table's row."""
        goal = self.goals.get(name)
        if goal is None:
            return ""
        verdict = goal.verdict(ratios) if ratios else "MISSED"
        if verdict == "met":
            self.met += 1
        else:
            found = self.missed if verdict == "MISSED" else self.undecided
            found.append(f"{name}, {where}: goal {goal}: {spread(ratios)}")
        return f"{goal} {verdict}"

    def answer(self, title, tables, measurements):
        return Answer(title, tables, self.missed, self.undecided, self.met, measurements)


def selected(driver, found, options):
    """The contestants that the user named, and the rivals."""
    names = {contestant.name for contestant in found}
    for name in options.locks or []:
        if not any(name in known for known in names):
            options.fail(f"--locks: nothing here is called '{name}'")
    if options.locks:
        found = [
            who for who in found if who in RIVALS or any(name in who.name for name in options.locks)
        ]
    driver.check(found)
    return found


def uncontended(driver, options):
    """Lock and unlock by one thread, with a second, sleeping thread and without."""
    cases = [
        Case("with a second thread", ("--second-thread",)),
        Case("in a single-threaded process", ()),
    ]
    found = selected(driver, contestants(), options)
    seconds = ("--measure", "uncontended", "--seconds", str(options.seconds / 4))
    results = interleave(
        "uncontended",
        cases,
        found,
        options.repeats,
        lambda who, case: driver.measure(who, seconds + case.arguments),
    )
    counts = interleave(
        "instructions",
        cases,
        found,
        1,
        lambda who, case: {"instructions": instructions(driver, who, case)},
    )
    verdicts = Verdicts(
        goals_for(
            {"shfl_ron": 1.0, "shfl_mutex": 1.0, "ttas": 1.0, "mcs": 1.3, "cna": 1.3},
            at_least=False,
        )
    )
    tables = []
    for case in cases:
        table = Table(case.title, ["lock", "ns", "ratio to glibc", "instructions", "goal"])
        compared = Comparison(results, case, "ns")
        for who in found:
            ratios = compared.ratios(who.name, BASELINE)
            count = counts[case.title, who.name][0]["instructions"]
            verdict = verdicts.judge(who.name, case.title, ratios)
            table.rows.append(
                [
                    who.name,
                    f"{compared.median(who.name):.2f}",
                    spread(ratios),
                    f"{count:.1f}",
                    verdict,
                ]
            )
        tables.append(table)
    measurements = flat(results) + flat(counts)
    return verdicts.answer("Uncontended lock and unlock", tables, measurements)


def instructions(driver, contestant, case):
    """Instructions of a lock and unlock: the difference to the empty loop."""
    return per_operation(driver, contestant, case) - per_operation(
        driver, Contestant("none", "none"), case
    )


@functools.cache
def per_operation(driver, contestant, case):
    counts = []
    for operations in (1_000, 101_000):
        arguments = ("--measure", "operations", "--operations", str(operations))
        counts.append(driver.instructions(contestant, arguments + case.arguments))
    return (counts[1] - counts[0]) / 100_000


def contended(driver, options, title, threads, goals, found, compare):
    """Every section with every number of threads; @compare names the rivals."""
    step = str(driver.ask("--calibrate")["step_ns"])
    cases = [
        Case(
            f"{count} threads, {section}",
            ("--threads", str(count), "--cs", cs, "--outside", outside)
            + ("--seconds", str(options.seconds), "--step-ns", step),
        )
        for count in threads
        for section, (cs, outside) in SECTIONS.items()
    ]
    found = selected(driver, found, options)
    results = interleave(
        title, cases, found, options.repeats, lambda who, case: driver.measure(who, case.arguments)
    )
    verdicts = Verdicts(goals)
    tables = [contended_table(results, case, found, compare, verdicts) for case in cases]
    return verdicts.answer(title, tables, flat(results))


def contended_table(results, case, found, compare, verdicts):
    compared = Comparison(results, case, "per_second")
    to = compared.best([rival for rival in compare])
    header = [
        "lock",
        "million/s",
        f"ratio to {to}",
        "fairness factor",
        "Jain",
        "longest wait ms",
        "CPU s",
        "goal",
    ]
    table = Table(case.title, header)
    others = {
        figure: Comparison(results, case, figure) for figure in ("fairness", "jain", "cpu_seconds")
    }
    waits = Comparison(results, case, "longest_wait_ms")
    for who in found:
        ratios = compared.ratios(who.name, to)
        verdict = verdicts.judge(who.name, case.title, ratios)
        if ratios is None:
            table.rows.append([who.name, "", spread(None), "", "", "", "", verdict])
            continue
        cells = [f"{others[figure].median(who.name):.2f}" for figure in others]
        wait = f"{waits.median(who.name):.0f}"
        table.rows.append(
            [
                who.name,
                f"{compared.median(who.name) / 1e6:.3f}",
                spread(ratios),
                cells[0],
                cells[1],
                wait,
                cells[2],
            ]
            + [verdict]
        )
    return table


def pair(driver, options):
    """Two threads: throughput over glibc's, with pure spinning for reference."""
    goals = goals_for({"shfl_ron": 1.0, "shfl_mutex": 1.0}, at_least=True)
    found = contestants(spinning=True)
    return contended(driver, options, "Two threads", [2], goals, found, [BASELINE])


def crowd(driver, options):
    """More threads than cores: throughput over the best rival's, and fairness."""
    goals = goals_for({"shfl_ron": 1.0, "shfl_mutex": 1.0}, at_least=True)
    rivals = [rival.name for rival in RIVALS]
    return contended(
        driver, options, "Threads by the dozen", [4, 16, 64, 256], goals, contestants(), rivals
    )


def memory(driver, options):
    """Resident memory of a million mutexes, each initialised and locked once."""
    case = Case(
        "a million mutexes, each initialised and locked once",
        ("--measure", "memory", "--count", str(MILLION)),
    )
    found = selected(driver, contestants(), options)
    results = interleave(
        "memory",
        [case],
        found,
        options.repeats,
        lambda who, case: driver.measure(who, case.arguments),
    )
    in_place = ["pound_mutex"] + [who.name for who in found if who.preload]
    verdicts = Verdicts({name: Goal(1.0, at_least=False) for name in in_place})
    compared = Comparison(results, case, "resident_bytes")
    table = Table(case.title, ["lock", "resident MB", "bytes each", "ratio to glibc", "goal"])
    for who in found:
        ratios = compared.ratios(who.name, BASELINE)
        resident = compared.median(who.name)
        verdict = verdicts.judge(who.name, case.title, ratios)
        table.rows.append(
            [
                who.name,
                f"{resident / 1e6:.2f}",
                f"{resident / MILLION:.1f}",
                spread(ratios),
                verdict,
            ]
        )
    return verdicts.answer("A million mutexes", [table], flat(results))


# A case of the queue: producers and as many consumers, 0: one thread that puts and takes in turns;
# capacity; items per second of --seconds, so that cases take about the same time; pinned or not.
QUEUES = [
    (0, 64, 3_000_000, False),
    *(
        (threads, capacity, items, pinned)
        for pinned in (True, False)
        for threads in (1, 4)
        for capacity, items in ((1, 40_000), (64, 1_000_000))
    ),
]


def queue_case(threads, capacity, items, pinned):
    arguments = ("--measure", "queue", "--capacity", str(capacity), "--operations", str(items))
    if not threads:
        return Case("one thread", (*arguments, "--second-thread"))
    title = f"producers {threads}, consumers {threads}, capacity {capacity}"
    arguments += ("--producers", str(threads), "--consumers", str(threads))
    return Case(title + ", pinned" * pinned, arguments + ("--pin",) * pinned)


def queue_instructions(driver, who):
    """Instructions of an item that one thread puts and takes, without a wait."""
    few, many = (queue_case(0, 64, items, False) for items in (3_000, 33_000))
    counts = [driver.instructions(who, case.arguments) for case in (few, many)]
    return (counts[1] - counts[0]) / 30_000


def queue(driver, options):
    """The bounded queue of a mutex and two condition variables: items per second, sleeps and CPU
    time."""
    cases = [
        queue_case(threads, capacity, max(1, round(options.seconds * items)), pinned)
        for threads, capacity, items, pinned in QUEUES
    ]
    rivals = [who for who in RIVALS if who.name != "absl"]
    found = rivals + [Contestant("pound_mutex", "pound_mutex")]
    results = interleave(
        "queue",
        cases,
        found,
        options.repeats,
        lambda who, case: driver.measure(who, case.arguments),
    )
    verdicts = Verdicts({"pound_mutex": Goal(1.0, at_least=True)})
    tables = []
    for case in cases:
        compared = Comparison(results, case, "per_second")
        costs = [
            Comparison(results, case, figure) for figure in ("sleeps_per_item", "cpu_us_per_item")
        ]
        to = compared.best([rival.name for rival in rivals])
        header = ["queue of", "million items/s", f"ratio to {to}", "sleeps per item"]
        header += ["CPU us per item", "goal"]
        alone = case == cases[0]
        table = Table(case.title, header + ["instructions per item"] * alone)
        for who in found:
            counted = [f"{queue_instructions(driver, who):.0f}"] * alone
            ratios = compared.ratios(who.name, to)
            verdict = verdicts.judge(who.name, case.title, ratios)
            if ratios is None:
                table.rows.append([who.name, "", spread(None), "", "", verdict, *counted])
                continue
            rate = f"{compared.median(who.name) / 1e6:.3f}"
            cost = [f"{figure.median(who.name):.3f}" for figure in costs]
            table.rows.append([who.name, rate, spread(ratios), *cost, verdict, *counted])
        tables.append(table)
    return verdicts.answer("A bounded queue", tables, flat(results))


def flat(results):
    """Every single measurement, for the raw data."""
    return [
        {"case": case, "contestant": name, "repeat": repeat, **result}
        for (case, name), repeats in results.items()
        for repeat, result in enumerate(repeats)
    ]


QUESTIONS = {
    "uncontended": uncontended,
    "pair": pair,
    "crowd": crowd,
    "queue": queue,
    "memory": memory,
}
