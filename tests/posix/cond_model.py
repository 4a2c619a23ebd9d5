#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Explores all interleavings of a model of preload/cond_word.h's state, with few threads: each
signal must have unblocked a thread that waited at some moment of the call.

Each step of the model is one atomic operation or one step of the kernel. A wake-up takes any
sleeper, since a signal handler may have moved one to the end of the kernel's queue. Every waiter
waits once, without the loop that POSIX asks for, which is harder. Two faulty variants of the model
must be rejected.
"""

import sys
from typing import NamedTuple

ENTERING, AWAKE, ASLEEP, WOKEN, LEAVING, GONE = range(6)
CALLING, READING, WAKING, RETURNED = range(4)
WOKEN_MOST = 3  # stands for 31, for fewer threads


class Waiter(NamedTuple):
    at: int = ENTERING
    sequence: int = 0
    by_wake: bool = False


class Signaller(NamedTuple):
    at: int = CALLING
    blocked: frozenset = frozenset()  # the threads that waited at some moment of the call


class State(NamedTuple):
    waiters: tuple
    signallers: tuple
    waiting: int = 0
    woken: int = 0
    sequence: int = 0
    interrupts: int = 1  # of sleepers, by signal handlers
    timeouts: int = 1


class Rules(NamedTuple):
    bounded: bool = True  # entering and leaving keep the woken count at most the waiting count
    counted: bool = True  # leaving decrements the woken count


def put(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]


def sleepers(state):
    return [i for i, waiter in enumerate(state.waiters) if waiter.at == ASLEEP]


def woken_one(state, index):
    woken = state.waiters[index]._replace(at=WOKEN, by_wake=True)
    return state._replace(waiters=put(state.waiters, index, woken))


def sure(state, rules):
    return min(state.woken, state.waiting) if rules.bounded else state.woken


def waiter_steps(state, i, rules):
    me = state.waiters[i]

    def become(at, **changes):
        return state._replace(waiters=put(state.waiters, i, me._replace(at=at)), **changes)

    if me.at == ENTERING:
        entered = Waiter(AWAKE, state.sequence)
        woken = sure(state, rules)
        yield state._replace(
            waiters=put(state.waiters, i, entered), waiting=state.waiting + 1, woken=woken
        )
    elif me.at == AWAKE:
        yield become(ASLEEP if me.sequence == state.sequence else LEAVING)
    elif me.at == ASLEEP:
        if state.interrupts:
            yield become(AWAKE, interrupts=state.interrupts - 1)
        if state.timeouts:
            yield become(LEAVING, timeouts=state.timeouts - 1)
    elif me.at == WOKEN:
        others = sleepers(state) if me.sequence == state.sequence else []
        yield from (woken_one(become(LEAVING), other) for other in others)
        if not others:
            yield become(LEAVING)
    elif me.at == LEAVING:
        woken = max(0, sure(state, rules) - rules.counted)
        yield become(GONE, waiting=state.waiting - 1, woken=woken)


def signaller_steps(state, k, broadcasts):
    me = state.signallers[k]

    def become(at, state=state):
        return state._replace(signallers=put(state.signallers, k, me._replace(at=at)))

    if me.at == CALLING:
        yield become(READING)
    elif me.at == READING:
        yield become(RETURNED if state.waiting <= state.woken else WAKING)
    elif me.at == WAKING:
        woken, carry = state.woken + (WOKEN_MOST if broadcasts else 1), 0
        if woken > WOKEN_MOST:
            woken, carry = woken - WOKEN_MOST - 1, 1
        after = become(RETURNED)._replace(woken=woken, sequence=state.sequence + 1 + carry)
        asleep = sleepers(after)
        if broadcasts:
            for sleeper in asleep:
                after = woken_one(after, sleeper)
            asleep = []
        yield from (woken_one(after, sleeper) for sleeper in asleep)
        if not asleep:
            yield after


def with_blocked(before, after):
    """@after, with the threads that each signaller has found blocked during its call; none if there
    was none at its beginning."""
    blocked = frozenset(
        i for i, waiter in enumerate(after.waiters) if waiter.at not in (ENTERING, GONE)
    )
    signallers = tuple(
        now._replace(blocked=now.blocked | blocked)
        if (was.at == CALLING and now.at == READING)
        or (now.blocked and now.at in (READING, WAKING))
        else now
        for was, now in zip(before.signallers, after.signallers)
    )
    return after._replace(signallers=signallers)


def loses(state):
    """Whether the final @state has lost a signal."""
    asleep = frozenset(sleepers(state))
    return any(signaller.blocked and signaller.blocked <= asleep for signaller in state.signallers)


def is_end(state):
    return all(waiter.at in (ASLEEP, GONE) for waiter in state.waiters) and all(
        signaller.at == RETURNED for signaller in state.signallers
    )


def explore(waiters, signallers, broadcasts=0, rules=Rules()):
    """Returns the number of states, and whether one has lost a signal. The first @broadcasts
    signals are broadcasts."""
    first = State((Waiter(),) * waiters, (Signaller(),) * signallers)
    seen, left = {first}, [first]
    while left:
        state = left.pop()
        if is_end(state) and loses(state):
            return len(seen), True
        following = [step for i in range(waiters) for step in waiter_steps(state, i, rules)]
        following += [
            step for k in range(signallers) for step in signaller_steps(state, k, k < broadcasts)
        ]
        for step in following:
            step = with_blocked(state, step)
            if step not in seen:
                seen.add(step)
                left.append(step)
    return len(seen), False


def main():
    right = True
    for threads in [(2, 2), (3, 2), (2, 3), (2, 2, 1), (2, 3, 1)]:
        states, lost = explore(*threads)
        print(
            f"waiters, signals, broadcasts of them {threads}: {states} states, "
            f"{'a signal is lost' if lost else 'holds'}"
        )
        right = right and not lost
    for rules in [Rules(bounded=False), Rules(counted=False)]:
        states, lost = explore(2, 3, rules=rules)
        print(f"{rules}: {'found' if lost else 'not found'} in {states} states")
        right = right and lost
    return 0 if right else 1


sys.exit(main())
