# SPDX-License-Identifier: MIT OR Apache-2.0
"""A load for a memcached server that detects failures of the server's locks.

Connections pipeline commands in batches, so that the server has more work than its clients. Most
commands use a few keys, so that the server's threads contend. Every answer is checked:

  - a connection's own keys hold exactly its last values;
  - a shared value, which all rewrite, is always one complete stored value;
  - the shared counters end at the number of increments, the shared log at one mark per append.
"""

import functools
import multiprocessing
import os
import re
import socket
import zlib
from concurrent.futures import ProcessPoolExecutor

from client import Wrong

CONNECTIONS = 8
ROUNDS = 600  # by default
INCREMENTS = 60  # per round, over COUNTERS counters
COUNTERS = 2
OWN_KEYS = 20  # per round, each stored and fetched
SHARED_KEYS = 4
SHARED_WRITES = 10  # per round, each stored and fetched
APPENDS = 100  # per connection in total, at most one per round


def difference(due, got):
    at = len(os.path.commonprefix([due, got]))
    return f"{due[at : at + 60]!r} was due, {got[at : at + 60]!r} came"


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.answers = self.socket.makefile("rb", buffering=1 << 16)

    def send(self, *commands):
        self.socket.sendall(b"".join(commands))

    def line(self):
        return self.answers.readline()

    def expect(self, due):
        got = self.answers.read(len(due))
        if got != due:
            raise Wrong(difference(due, got))

    def value(self, key):
        """The next value, requested by get_command(key)."""
        head = self.line()
        match = re.fullmatch(rb"VALUE %s 0 (\d+)\r\n" % key, head)
        if not match:
            raise Wrong(f"the value of {key!r} was due, {head!r} came")
        data = self.answers.read(int(match[1]))
        self.expect(b"\r\nEND\r\n")
        return data

    def close(self):
        self.answers.close()
        self.socket.close()


def get_command(key):
    return b"get %s\r\n" % key


def set_command(key, data):
    return b"set %s 0 0 %d\r\n%s\r\n" % (key, len(data), data)


def whole_value(writer, number):
    """A value with a checksum."""
    body = b"%d-%d," % (writer, number) * 60
    return b"%08x%s" % (zlib.crc32(body), body)


def is_whole(data):
    return data[:8] == b"%08x" % zlib.crc32(data[8:])


def increment(connection):
    connection.send(*(b"incr counter%d 1\r\n" % (i % COUNTERS) for i in range(INCREMENTS)))
    for _ in range(INCREMENTS):
        answer = connection.line()
        if not answer.rstrip().isdigit():
            raise Wrong(f"a counter's value was due, {answer!r} came")


def use_own_keys(connection, index, number):
    values = [
        (b"own%d-%d" % (index, i), b"%d:%d:%d;" % (index, number, i) * 20) for i in range(OWN_KEYS)
    ]
    connection.send(*(set_command(key, data) + get_command(key) for key, data in values))
    due = (
        b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(data), data) for key, data in values
    )
    connection.expect(b"".join(due))


def use_shared_keys(connection, index, number):
    keys = [b"shared%d" % (i % SHARED_KEYS) for i in range(SHARED_WRITES)]
    data = whole_value(index, number)
    connection.send(*(set_command(key, data) + get_command(key) for key in keys))
    for key in keys:
        connection.expect(b"STORED\r\n")
        if not is_whole(connection.value(key)):
            raise Wrong(f"the value of {key!r} is not one that was stored")


def append(connection, index):
    connection.send(b"append log 0 0 1\r\n%c\r\n" % (ord("a") + index))
    connection.expect(b"STORED\r\n")


def use(path, rounds, index):
    connection = Connection(path)
    try:
        for number in range(rounds):
            increment(connection)
            use_own_keys(connection, index, number)
            use_shared_keys(connection, index, number)
            if number < APPENDS:
                append(connection, index)
    except (Wrong, OSError) as failure:
        raise Wrong(f"connection {index}: {failure}") from failure
    finally:
        connection.close()


def prepare(connection):
    for key, data in [(b"counter%d" % i, b"0") for i in range(COUNTERS)] + [(b"log", b"-")]:
        connection.send(set_command(key, data))
        connection.expect(b"STORED\r\n")


def check_totals(connection, rounds):
    total, due = 0, CONNECTIONS * rounds * INCREMENTS
    for i in range(COUNTERS):
        connection.send(get_command(b"counter%d" % i))
        total += int(connection.value(b"counter%d" % i))
    if total != due:
        raise Wrong(f"the counters add up to {total} instead of {due}")
    connection.send(get_command(b"log"))
    log = connection.value(b"log")
    if sorted(log) != sorted(
        b"-" + bytes(range(ord("a"), ord("a") + CONNECTIONS)) * min(APPENDS, rounds)
    ):
        raise Wrong("the log has lost or repeated marks")


def load(path, rounds=ROUNDS):
    """Loads the server at the socket @path with @rounds rounds per connection. Raises Wrong after
    an unexpected answer."""
    first = Connection(path)
    prepare(first)
    # Processes, since threads of one interpreter would mostly wait for each other instead of the
    # server.
    with ProcessPoolExecutor(CONNECTIONS, multiprocessing.get_context("fork")) as clients:
        # Re-raises their exceptions.
        list(clients.map(functools.partial(use, path, rounds), range(CONNECTIONS)))
    check_totals(first, rounds)
    first.close()
