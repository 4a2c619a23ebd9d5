# SPDX-License-Identifier: MIT OR Apache-2.0
"""A load for a Redis server with I/O threads, and the expected content afterwards."""

from client import Wrong, call

CLIENTS = 32


def command(directory):
    return [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        f"{directory}/socket",
        "--dir",
        directory,
        "--save",
        "",
        "--io-threads",
        "2",
        "--io-threads-do-reads",
        "yes",
    ]


def load(path, requests):
    for test in ("set", "get", "incr", "lpush"):
        call(
            "redis-benchmark",
            "-s",
            path,
            "-q",
            "-t",
            test,
            "-n",
            str(requests),
            "-c",
            str(CLIENTS),
            "-P",
            "16",
        )
    for question, due in (
        (("get", "counter:__rand_int__"), requests),
        (("llen", "mylist"), requests),
    ):
        got = call("redis-cli", "-s", path, *question)
        if got != str(due):
            raise Wrong(f"{' '.join(question)} is {got}, {due} was due")
