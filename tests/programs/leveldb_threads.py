# SPDX-License-Identifier: MIT OR Apache-2.0
"""LevelDB with threads: they store, fetch, remove and iterate during compaction. argv[1]: the
percentage of the work."""

import random
import sys
import tempfile
import threading

import plyvel

THREADS = 8
ROUNDS = 40 * int(sys.argv[1])
KEYS = 500  # per thread


def value(index, round):
    return b"%d of %d " % (round, index) * 20


def change(base, index, held):
    """Each thread checks keys of its own, and a key that all write, which must never be torn."""
    order = random.Random(index)
    for round in range(ROUNDS):
        key = b"%d/%04d" % (index, order.randrange(KEYS))
        if base.get(key) != held.get(key):
            wrong.append(f"{key} held something else than was stored")
            return
        if order.randrange(5):
            held[key] = value(index, round)
            with base.write_batch() as batch:
                batch.put(key, held[key])
                batch.put(b"all/one", held[key])
                batch.put(b"all/two", held[key])
        else:
            held.pop(key, None)
            base.delete(key)
        if round % 16 == 0:
            one, two = (part for _, part in base.iterator(prefix=b"all/"))
            if one != two:
                wrong.append("half a batch was seen")
                return


wrong = []
held = [{} for _ in range(THREADS)]
with tempfile.TemporaryDirectory(prefix="poundlock-") as directory:
    options = {"write_buffer_size": 1 << 18, "lru_cache_size": 1 << 16, "compression": None}
    base = plyvel.DB(directory, create_if_missing=True, **options)
    base.put(b"all/one", b"")
    base.put(b"all/two", b"")
    threads = [threading.Thread(target=change, args=(base, i, held[i])) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    base.close()
    base = plyvel.DB(directory, paranoid_checks=True, **options)
    kept = {
        key: value
        for key, value in base.iterator(verify_checksums=True)
        if not key.startswith(b"all/")
    }
    base.close()
due = {key: value for own in held for key, value in own.items()}
if kept != due:
    wrong.append(f"{len(kept)} keys are there, {len(due)} were due, or what they hold differs")
if wrong:
    sys.exit(wrong[0])
print(f"checked: {THREADS * ROUNDS} changes, {len(due)} keys")
