"""Zones by name, and what the walk takes for granted about all of them."""

from __future__ import annotations

import struct
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from awa_cron.cronexpr import fires, next_fires, zone
from awa_cron.cronexpr.zones import clock_change, zone_names
from awa_cron.errors import UnknownTimezone

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400


@pytest.fixture
def no_system_zones() -> Iterator[None]:
    zoneinfo.reset_tzpath(())
    yield
    zoneinfo.reset_tzpath()


@pytest.mark.usefixtures("no_system_zones")
def test_valid_names_are_those_of_the_tzdata_package() -> None:
    names = zoneinfo.available_timezones()

    assert {
        name for name in names if not name.startswith(("posix", "right/")) and name != "Factory"
    } == zone_names()
    assert zone_names() >= {"UTC", "EST", "US/Eastern", "Asia/Calcutta", "Europe/Kiev", "America/Argentina/Ushuaia"}


@pytest.mark.usefixtures("no_system_zones")
def test_rules_do_not_come_from_the_host() -> None:
    assert [datetime(2026, 7, 1, 7, tzinfo=UTC)] == next_fires(
        "0 9 * * *", "Europe/Berlin", after=datetime(2026, 7, 1, tzinfo=UTC), count=1
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("utc", "did you mean 'UTC'"),
        ("Europe/Lodnon", "did you mean 'Europe/London'"),
        (" Europe/London", "did you mean 'Europe/London'"),
        ("America/New York", "did you mean 'America/New_York'"),
        ("UTC+3", "'Etc/GMT-3' (that is UTC+3)"),
        ("+05:30", "'Etc/GMT-3' (that is UTC+3)"),
        ("Mars/Phobos", "write the name of an IANA zone such as 'Europe/Berlin'"),
        ("", "write the name of an IANA zone such as 'Europe/Berlin'"),
        ("\ud800\0", "write the name of an IANA zone such as 'Europe/Berlin'"),
        ("x" * 5000, "(5000 characters) is not known"),
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_unknown_name_is_refused_with_what_was_meant(name: str, remedy: str) -> None:
    with pytest.raises(UnknownTimezone) as refusal:
        zone(name)

    assert str(refusal.value).startswith(f"timezone {name[:60]!a}")
    assert remedy in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("value", [None, 5, b"UTC", ["UTC"], UTC, zoneinfo.ZoneInfo("UTC")], ids=repr)
def test_what_is_no_text_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(UnknownTimezone, match=f"is a {type(value).__name__}; pass the name of a zone"):
        zone(value)


def test_a_zone_is_loaded_once() -> None:
    assert zone("Europe/Berlin") is zone("Europe/Berlin")
    assert zone("Europe/Berlin").key == "Europe/Berlin"


def offset_changes(name: str) -> list[tuple[int, int]]:
    """When the zone's UTC offset changes and by how much, in seconds, read from its file (RFC 8536) itself."""
    data = files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes()

    def header(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    utc, std, leaps, times, kinds, letters = header(0)
    second = 44 + 4 * times + times + 6 * kinds + letters + 8 * leaps + std + utc  # the part with 64-bit times
    *_, times, kinds, _ = header(second)
    body = second + 44
    instants = struct.unpack(f">{times}q", data[body : body + 8 * times])
    used = data[body + 8 * times : body + 9 * times]
    offsets = [struct.unpack(">l", data[body + 9 * times + 6 * kind :][:4])[0] for kind in range(kinds)]
    before = [offsets[0], *(offsets[kind] for kind in used)]
    return [
        (instant, after - earlier)
        for instant, (earlier, after) in zip(instants, pairwise(before), strict=True)
        if after != earlier
    ]


def test_clock_changes_lie_further_apart_than_a_stride_and_move_the_clock_by_a_day_at_most() -> None:
    every = [offset_changes(name) for name in zone_names()]
    stride = fires._STRIDE.total_seconds()

    assert sum(map(len, every)) > 10_000
    assert min(later - earlier for changes in every for (earlier, _), (later, _) in pairwise(changes)) > stride
    assert max(abs(shift) for changes in every for _, shift in changes) <= DAY
    assert stride >= 2 * DAY


@pytest.mark.parametrize(
    "name", ["Europe/Dublin", "Pacific/Apia", "Africa/Monrovia", "Asia/Gaza", "America/Juneau"]
)
def test_clock_change_is_found_to_the_second(name: str) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    for seconds, _ in offset_changes(name):
        change, day = epoch + timedelta(seconds=seconds), timedelta(days=1)
        assert change == clock_change(zone(name), change - day, change + day)
        assert change == clock_change(zone(name), change - timedelta(seconds=1), change)
        assert change == clock_change(zone(name), change - timedelta(seconds=1), change + timedelta(seconds=1))
        assert clock_change(zone(name), change - day, change - timedelta(seconds=1)) is None
        assert clock_change(zone(name), change, change + day) is None
