"""The walks go through every order once, where orders that differ by steps that commute are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from tests.model.orders import STRAYS, Orders, Step, until

Order = tuple[Step, ...]
Commute = Callable[[Step, Step], bool]

PROGRAMS = (("look", "act", "commit"), ("read", "lock", "commit"), ("act", "look"))


def all_orders(left: tuple[tuple[str, ...], ...]) -> Iterator[Order]:
    if not any(left):
        yield ()
    for index, steps in enumerate(left):
        if steps:
            for rest in all_orders((*left[:index], steps[1:], *left[index + 1 :])):
                yield ((index, steps[0]), *rest)


def the_same(order: Order, commute: Commute) -> set[Order]:
    """Return every order that swapping neighbours which commute leads to."""
    found, new = {order}, [order]
    while new:
        each = new.pop()
        for i, (one, other) in enumerate(pairwise(each)):
            if one[0] != other[0] and commute(one, other):
                swapped = (*each[:i], other, one, *each[i + 2 :])
                if swapped not in found:
                    found.add(swapped)
                    new.append(swapped)
    return found


def walk(orders: Orders) -> Order:
    left, taken = [list(steps) for steps in PROGRAMS], []
    while any(left):
        index, step = orders.choose([(index, steps[0]) for index, steps in enumerate(left) if steps])
        left[index].pop(0)
        taken.append((index, step))
    return tuple(taken)


@pytest.mark.parametrize("looks", [set(), {"look"}, {"look", "read"}, {"look", "read", "act", "lock", "commit"}])
def test_each_order_is_walked_once(looks: set[str]) -> None:
    def commute(one: Step, other: Step) -> bool:
        return bool(looks & {one[1], other[1]}) and "commit" not in {one[1], other[1]} - looks

    class_of: dict[Order, int] = {}
    for number, order in enumerate(all_orders(PROGRAMS)):
        if order not in class_of:
            class_of |= dict.fromkeys(the_same(order, commute), number)
    orders, walked = Orders(commute), []
    while True:
        walked_order = walk(orders)
        if not orders.repeated:
            walked.append(class_of[walked_order])
        if not orders.advance():
            break
    assert sorted(set(class_of.values())) == sorted(walked)


def test_a_walk_that_strays_is_tried_again() -> None:
    orders = Orders(lambda _, __: False)
    walked: list[Order] = []
    strayed = 0
    while True:
        if len(walked) == 10 and not strayed:
            orders.choose([(9, "aborted")])  # once the first step is none of those that there were
        order = walk(orders)
        if orders.strayed:
            strayed += 1
        else:
            walked.append(order)
        if not orders.advance():
            break
    assert 1 == strayed
    assert sorted(all_orders(PROGRAMS)) == sorted(walked)


def test_a_walk_that_strays_each_time_is_told() -> None:
    orders = Orders(lambda _, __: False)
    walk(orders)
    orders.advance()
    for _ in range(STRAYS - 1):
        orders.choose([(9, "aborted")])
        assert orders.advance()
    orders.choose([(9, "aborted")])
    with pytest.raises(AssertionError, match="lead elsewhere each time"):
        orders.advance()


def test_until_takes_the_steps_that_are_wanted() -> None:
    choose, left, taken = until((1, "lock"), (0, "act")), [list(steps) for steps in PROGRAMS], []
    while any(left):
        index, step = choose([(index, steps[0]) for index, steps in enumerate(left) if steps])
        left[index].pop(0)
        taken.append((index, step))
    assert [(1, "read"), (1, "lock"), (0, "look"), (0, "act")] == taken[:4]
