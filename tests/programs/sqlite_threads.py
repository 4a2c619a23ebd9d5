# SPDX-License-Identifier: MIT OR Apache-2.0
"""SQLite in serialized mode: threads share one connection and have one each. argv[1]: the
percentage of the work."""

import sqlite3
import sys
import tempfile
import threading

THREADS = 16
ROUNDS = 2 * int(sys.argv[1])


def change(shared, path, index):
    own = sqlite3.connect(path, timeout=60, isolation_level=None)
    for round in range(ROUNDS):
        # A statement and its count of changes belong together. Nobody reads by this connection: a
        # write during a read does not wait for another connection's lock but fails with "database
        # is locked".
        with guard:
            shared.execute("update counters set value = value + 1 where id = ?", (round % 4,))
        memory.execute("insert into marks values (?, ?)", (index, round))
        seen = memory.execute("select count(*) from marks where owner = ?", (index,)).fetchone()[0]
        if seen != round + 1:
            raise ValueError(f"thread {index} sees {seen} of its {round + 1} marks")
        own.execute("select total(value) from counters").fetchone()
    own.close()


guard = threading.Lock()
errors = []  # that ended a thread
threading.excepthook = lambda error: errors.append(repr(error.exc_value))
with tempfile.TemporaryDirectory(prefix="poundlock-") as directory:
    path = f"{directory}/base"
    shared = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
    shared.execute("pragma journal_mode = wal")  # so that readers do not block writers
    shared.execute("pragma synchronous = off")
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    for base in (shared, memory):
        base.execute("create table counters (id integer primary key, value integer)")
        base.execute("create table marks (owner integer, round integer)")
    shared.executemany("insert into counters values (?, 0)", [(i,) for i in range(4)])
    threads = [threading.Thread(target=change, args=(shared, path, i)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = shared.execute("select sum(value) from counters").fetchone()[0]
    marks = memory.execute(
        "select count(*), count(distinct owner * 100000 + round) from marks"
    ).fetchone()
    sound = [base.execute("pragma integrity_check").fetchone()[0] for base in (shared, memory)]
if errors or total != THREADS * ROUNDS or marks != (total, total) or sound != ["ok", "ok"]:
    sys.exit(
        f"{total} additions and {marks} marks instead of {THREADS * ROUNDS}, {sound}, {errors[:2]}"
    )
print(f"checked: {total} additions, {marks[0]} marks")
