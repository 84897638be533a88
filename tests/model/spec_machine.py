"""What the machines of both specs have in common: rules of actions, calls of several steps, their checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from hypothesis import currently_in_test_context, event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

State = TypeVar("State")
Call = Callable[[], Awaitable[object]]
ModelStep = tuple[str, tuple[object, ...]]


def rule_of(action: str) -> Any:
    """Make the rule of one action: wherever the model enables it, with any arguments that it enables."""

    def perform(self: SpecMachine[Any], data: st.DataObject) -> None:
        self.perform_drawn(action, *data.draw(st.sampled_from(self.enabled[action])))

    def possible(self: SpecMachine[Any]) -> bool:
        return action in self.enabled and (action in self.free or self.patience > 0)

    perform.__name__ = action
    return precondition(possible)(rule(data=st.data())(perform))


class SpecMachine(RuleBasedStateMachine, Generic[State]):
    """Takes a model through its actions.

    Attributes:
        only: Check this property alone: shows that it catches what is broken by itself.
        free: Actions that need no patience.
        most_patience: How many other steps may follow each other before one of these, or time, has to come.
        enabled: The arguments of each action that the model enables now.
        disabled: All other steps.
    """

    model: ClassVar[Any]
    only: ClassVar[str | None] = None
    free: ClassVar[Container[str]]
    most_patience: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.state: State = self.model.init()
        self.enabled: dict[str, list[tuple[object, ...]]] = {}
        self.disabled: list[ModelStep] = []
        self.patience = self.most_patience
        self._look()

    def open(self) -> None:
        """Get ready for the first step."""

    def check(self, before: State, step: ModelStep, then: State) -> None:
        """Check the properties of the spec on a step and the state that it has reached."""
        raise NotImplementedError

    def call(self, action: str, *arguments: object, **how: object) -> Call | None:  # noqa: ARG002
        """Return what performs an action; None where there is only the model."""
        return None

    def perform(self, action: str, *arguments: object, **how: object) -> None:
        """Take one step and check it; ``how`` is of no concern to the model."""
        self.take([(action, arguments)], self.call(action, *arguments, **how))

    def perform_drawn(self, action: str, *arguments: object) -> None:
        """Take one step that a rule of its own has drawn."""
        self.perform(action, *arguments)

    def take(self, steps: Sequence[ModelStep], call: Call | None) -> None:
        """Take steps that one call makes together, and check each; the last leads to what the call has reached."""
        then = self.state
        for number, step in enumerate(steps, 1):
            before = then
            then = self.next(before, *step)
            reached = then if number < len(steps) else self.reach(then, call)
            self.check(before, step, reached)
            if self.only in {None, "SameAsModel"}:
                assert then == reached, "SameAsModel: the database and the model have parted"
        if not steps:
            assert then == self.reach(then, call), "SameAsModel: something happened where nothing could"
        self.state = then
        self._look()

    def next(self, before: State, action: str, arguments: tuple[object, ...]) -> State:
        """Return what one step of the model leads to."""
        if currently_in_test_context():
            event(action)
        then: State | None = getattr(self.model, action)(before, *arguments)
        assert then is not None, f"SameAsModel: {action}{arguments} is not enabled"
        return then

    def reach(self, then: State, call: Call | None) -> State:  # noqa: ARG002
        """Perform the call, and return the state it really led to."""
        return then

    def _look(self) -> None:
        self.enabled, self.disabled = {}, []
        for action, arguments, then in self.model.attempts(self.state):
            if then is None:
                self.disabled.append((action, arguments))
            else:
                self.enabled.setdefault(action, []).append(arguments)


async def awaited(call: Call) -> None:
    """Await what a call returns: a runner wants a coroutine."""
    await call()
