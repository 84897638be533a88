"""From a job's JSON arguments to the type that its handler takes: a dataclass, or a pydantic model if there is one.

pydantic is not asked for; a class that has ``model_validate`` is one. A dataclass's fields may be what JSON has,
``Any``, ``Literal``, a union or list or dict of these, or another dataclass. For more, use a pydantic model.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, Union

from awa_cron.errors import InvalidArgs, InvalidSchedule

Reader: TypeAlias = Callable[[Any], Any]
_Reader: TypeAlias = Callable[[Any, str], Any]
PLAIN = (str, int, float, bool, types.NoneType)


def reader(args_type: type, kind: str) -> Reader:
    """Return what turns the arguments of a job into the type.

    What it returns raises ``InvalidArgs`` where they do not fit.

    Raises:
        InvalidSchedule: The type is neither a dataclass nor a pydantic model, or has a field that JSON has not.
    """
    validate = getattr(args_type, "model_validate", None) if isinstance(args_type, type) else None
    if validate is not None:
        build: _Reader = _validated(validate)
    elif isinstance(args_type, type) and dataclasses.is_dataclass(args_type):
        try:
            build = _of_dataclass(args_type)
        except _NotJson as trouble:
            raise InvalidSchedule(f"args of {kind!r}: {trouble}: use a pydantic model") from None
        except RecursionError:
            raise InvalidSchedule(
                f"args of {kind!r}: {args_type.__name__} holds itself: use a pydantic model"
            ) from None
    else:
        raise InvalidSchedule(f"args of {kind!r} is {args_type!r}: it must be a dataclass or a pydantic model")

    def read(args: Any) -> Any:
        try:
            return build(args, "args")
        except _Misfit as misfit:
            raise InvalidArgs(f"args of kind {kind!r} are no {args_type.__name__}: {misfit}") from misfit.__cause__

    return read


class _Misfit(Exception):
    """Where and how a value does not fit."""


class _NotJson(Exception):
    """A field that nothing can be read into."""


def _validated(validate: Reader) -> _Reader:
    def read(value: Any, _where: str) -> Any:
        try:
            return validate(value)
        except ValueError as error:  # as pydantic's errors are
            raise _Misfit(" ".join(str(error).split())) from error

    return read


def _of_dataclass(kind: type) -> _Reader:
    try:
        hints = typing.get_type_hints(kind)
    except NameError as error:
        raise _NotJson(f"{kind.__name__} names a type that is not there ({error})") from None
    fields = {each.name: each for each in dataclasses.fields(kind) if each.init}
    readers = {name: _of_type(hints[name], f"{kind.__name__}.{name}") for name in fields}
    needed = {
        name
        for name, each in fields.items()
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    }

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _Misfit(f"{where} is {_shown(value)}, not an object")
        for names, trouble in ((needed - value.keys(), "lacks"), (value.keys() - fields.keys(), "has an unknown")):
            if names:
                raise _Misfit(f"{where} {trouble} {', '.join(map(repr, sorted(names)))}")
        values = {name: readers[name](inner, f"{where}.{name}") for name, inner in value.items()}
        try:
            return kind(**values)
        except (TypeError, ValueError) as error:  # of its __post_init__
            raise _Misfit(f"{where}: {error}") from error

    return read


def _of_type(hint: Any, field: str) -> _Reader:  # noqa: PLR0911 -- one for each kind of type
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value, _: value
    if hint in PLAIN:
        return _plain(hint)
    if hint in (list, dict):
        return _plain(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _of_dataclass(hint)
    if origin is Literal:
        return _one_of(inner)
    if origin in (Union, types.UnionType):
        return _first_of([_of_type(each, field) for each in inner])
    if origin is list:
        return _list_of(_of_type(inner[0], field))
    if origin is dict and inner[0] is str:
        return _dict_of(_of_type(inner[1], field))
    raise _NotJson(f"{field} is {hint!r}, which JSON has not")


def _plain(kind: type) -> _Reader:
    accepted = (int, float) if kind is float else kind

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise _Misfit(f"{where} is {_shown(value)}, not {kind.__name__}")
        return float(value) if isinstance(value, int) and kind is float else value

    return read


def _one_of(values: tuple[Any, ...]) -> _Reader:
    def read(value: Any, where: str) -> Any:
        if not any(value == each and type(value) is type(each) for each in values):
            raise _Misfit(f"{where} is {_shown(value)}, not one of {', '.join(map(repr, values))}")
        return value

    return read


def _first_of(readers: list[_Reader]) -> _Reader:
    def read(value: Any, where: str) -> Any:
        misfits = []
        for each in readers:
            try:
                return each(value, where)
            except _Misfit as misfit:
                misfits.append(str(misfit))
        raise _Misfit("; ".join(misfits))

    return read


def _list_of(inner: _Reader) -> _Reader:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise _Misfit(f"{where} is {_shown(value)}, not a list")
        return [inner(each, f"{where}[{i}]") for i, each in enumerate(value)]

    return read


def _dict_of(inner: _Reader) -> _Reader:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _Misfit(f"{where} is {_shown(value)}, not an object")
        return {key: inner(each, f"{where}[{key!r}]") for key, each in value.items()}

    return read


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
