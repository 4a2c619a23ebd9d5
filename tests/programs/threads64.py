#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""threads64.py [PERCENT]: 64 threads that use Python's queues, locks and conditions, and check the
results.

Prints one line, `checked: ...`, and exits with 0 if and only if every item arrived once, no update
of a shared counter was lost, and every thread had its turns in order. The contended lock below all
of it is the interpreter's.
"""

import queue
import sys
import threading

PERCENT = int(sys.argv[1]) if len(sys.argv) > 1 else 100
PAIRS = 32
ITEMS = 3000 * PERCENT // 100  # by each producer
ADDITIONS = 600 * PERCENT // 100  # by each thread, of the counter
TURNS = max(1, 12 * PERCENT // 100)  # of each thread


class Counter:
    """Loses updates if two threads are ever inside add() together."""

    def __init__(self):
        self.lock = threading.Lock()
        self.value = 0

    def add(self):
        with self.lock:
            seen = self.value
            for _ in range(20):
                pass
            self.value = seen + 1


class Ring:
    """Threads take turns in the order of their index."""

    def __init__(self, threads):
        self.condition = threading.Condition()
        self.threads = threads
        self.taken = []

    def turn(self, index):
        with self.condition:
            self.condition.wait_for(lambda: len(self.taken) % self.threads == index)
            self.taken.append(index)
            self.condition.notify_all()


def produce(index, items, counter, ring):
    for i in range(ITEMS):
        items.put(index * ITEMS + i)
    work(index, counter, ring)


def consume(index, items, received, counter, ring):
    for _ in range(ITEMS):
        received.append(items.get())
        items.task_done()
    work(index, counter, ring)


def work(index, counter, ring):
    for _ in range(ADDITIONS):
        counter.add()
    for _ in range(TURNS):
        ring.turn(index)


def main():
    items = queue.Queue(maxsize=16)
    counter = Counter()
    ring = Ring(2 * PAIRS)
    received = [[] for _ in range(PAIRS)]
    threads = [
        threading.Thread(target=produce, args=(i, items, counter, ring)) for i in range(PAIRS)
    ]
    threads += [
        threading.Thread(target=consume, args=(PAIRS + i, items, received[i], counter, ring))
        for i in range(PAIRS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    everything = sorted(item for part in received for item in part)
    if everything != list(range(PAIRS * ITEMS)):
        return "items were lost or came twice"
    if counter.value != 2 * PAIRS * ADDITIONS:
        return f"the counter is {counter.value} instead of {2 * PAIRS * ADDITIONS}"
    if ring.taken != list(range(2 * PAIRS)) * TURNS:
        return "turns were taken out of order"
    print(f"checked: {len(everything)} items, {counter.value} additions, {len(ring.taken)} turns")
    return 0


sys.exit(main())
