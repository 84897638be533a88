"""What a quick run of TLC leaves out: nothing that is the only one of its sort."""

from __future__ import annotations

from assurance.manifest import left_out, read_manifest, sample

ALL = read_manifest()
QUICK = sample(ALL)


def test_a_sample_has_every_kind_of_every_module() -> None:
    assert {(e.module, e.kind) for e in ALL} == {(e.module, e.kind) for e in QUICK}


def test_a_sample_breaks_every_property_that_a_variant_breaks() -> None:
    broken, in_sample = ({e.violates for e in each if e.kind == "must-fail"} for each in (ALL, QUICK))
    assert broken == in_sample


def test_a_sample_has_all_that_must_pass_and_is_not_large() -> None:
    small = {e.name for e in ALL if e.kind in {"safety", "liveness"} and (e.distinct_states or 0) <= 12_500}
    assert len(small) > 20
    assert small <= {e.name for e in QUICK}


def test_a_sample_is_smaller_and_says_by_how_much() -> None:
    assert len(QUICK) < len(ALL) / 2
    told = left_out(ALL, QUICK)
    for kind in {e.kind for e in ALL}:
        assert f" of {sum(e.kind == kind for e in ALL)} {kind}" in told
