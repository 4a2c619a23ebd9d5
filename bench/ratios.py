# SPDX-License-Identifier: MIT OR Apache-2.0
"""The confidence interval of a median."""

import math


def interval(values):
    """The median's 95 % confidence interval, by the ranks of the sign test; None for fewer than
    six values.

    >>> interval([9, 8, 7, 6, 5, 4, 3, 2, 1]), interval(range(1, 16)), interval(range(5))
    ((2, 8), (4, 12), None)
    """
    count, tail, rank = len(values), 0.0, 0
    while (tail := tail + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    return (sorted(values)[rank - 1], sorted(values)[-rank]) if rank else None
