# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kinds of guests: the options of test.py, the guests of `./dev test`, and the rows of
results/kernel.md (every.py)."""

from dataclasses import dataclass
from typing import Callable

import guests
from own import SERIES
from parts import BPF_SERIES, locks

# Options of test.py, and what they add.
OPTIONS = {
    "own": "a kernel with Poundlock's locks as its own",
    "hook": "the module that orders the spin locks' waiters of an unmodified kernel",
    "distribution": "a preemptible kernel that has hypervisors' spin locks",
    "patched": "a kernel from patched sources (patch.py)",
    "checked": "a kernel that checks how its locks are used",
    "bpf": f"a kernel {BPF_SERIES} that loads policies as BPF programs",
    "kcsan": "a kernel that looks for data races",
    "exact": "guests whose counts are the same in each run",
}

# The guests of `./dev test`.
OF_TEST = [
    "torture",
    "parallel",
    "realtime",
    "order",
    "hook-order",
    "hook-torture",
    "domains",
    "all",
    "all-parallel",
    "stock-parallel",
    "switched",
    "hotplug-shfl",
    f"patched-{SERIES[1]}",
]


@dataclass(frozen=True)
class Kind:
    """Guests that the options @options of test.py choose together; without options, those of
    Debian's kernel."""

    options: tuple
    make: Callable  # the guests, for a series of Linux
    variant: str = ""  # the kernel that is built (own.VARIANTS); default: Debian's
    series: tuple = (SERIES[0],)  # of Linux

    @property
    def name(self):
        return "-".join(self.options) or "module"

    @property
    def exact(self):
        return "exact" in self.options

    @property
    def hook(self):
        return "hook" in self.options

    def guests(self, series):
        """The guests of @series. Those of a kernel that is built of each series have the series in
        their names, except of the first one."""
        made = self.make(series)
        if len(self.series) > 1 and series != SERIES[0]:
            for guest in made:
                guest.name += f"-{series}"
                guest.rival = guest.rival and f"{guest.rival}-{series}"
        return made


BOTH, BPF = tuple(SERIES), (BPF_SERIES,)
KINDS = [
    Kind((), lambda series: guests.module_guests(locks())),
    Kind(("hook",), lambda series: guests.hook_guests()),
    Kind(("exact",), lambda series: guests.exact_guests()),
    Kind(("hook", "exact"), lambda series: guests.hook_exact_guests()),
    Kind(("own",), lambda series: guests.own_guests(), "plain", BOTH),
    Kind(("own", "exact"), lambda series: guests.own_exact_guests(), "plain", BOTH),
    Kind(("distribution",), lambda series: guests.distribution_guests(), "distribution", BOTH),
    Kind(("patched",), lambda series: guests.patched_guests(), "patched", BOTH),
    Kind(("checked",), lambda series: guests.checked_guests(), "checked", BOTH),
    Kind(("kcsan",), lambda series: guests.kcsan_guests(locks(), series), "kcsan", BOTH),
    Kind(("bpf",), lambda series: guests.bpf_guests(), "bpf", BPF),
    Kind(("bpf", "exact"), lambda series: guests.bpf_exact_guests(), "bpf", BPF),
]
