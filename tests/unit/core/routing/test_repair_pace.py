"""How often a damaged table is written again: at once, then ever later, and at once again after a quiet time."""

from controlplane.core.routing.repair import RepairPace


def _repairs(pace: RepairPace, begin_ms: int, end_ms: int) -> list[int]:
    """When it allows a repair of a table that is damaged at every look, each 200 ms."""
    return [now_ms for now_ms in range(begin_ms, end_ms, 200) if pace.allows(now_ms)]


def test_a_flood_of_foreign_records_gives_ever_fewer_repairs() -> None:
    """Seven in the first 64 s, and then one in 64 s."""
    pace = RepairPace()
    assert _repairs(pace, 100_000, 164_000) == [100_000, 101_000, 103_000, 107_000, 115_000, 131_000, 163_000]
    assert _repairs(pace, 164_000, 420_000) == [227_000, 291_000, 355_000, 419_000]


def test_damage_after_a_quiet_time_is_repaired_at_once() -> None:
    """The wait that an old flood has built up is no reason to leave readers without a table."""
    pace = RepairPace()
    _repairs(pace, 100_000, 164_000)
    assert _repairs(pace, 163_800 + 64_000, 163_800 + 66_000) == [227_800, 228_800]
