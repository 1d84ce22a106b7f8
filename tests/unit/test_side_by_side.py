"""Tests with servers that share one which is slow to start are run by one process."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems
from tests.side_by_side import SHARING, SharedServersScheduling, group_of, pytest_xdist_make_scheduler

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", [path for group in SHARING for path in group])
def test_a_path_of_a_group_holds_tests(path: str) -> None:
    """A folder that was renamed would quietly cost a second broker with logins."""
    assert list((ROOT / path).glob("test_*.py"))


def test_files_of_a_group_stay_together_and_others_apart() -> None:
    """Whatever a test is called."""
    together = {group_of(f"tests/security/test_{name}.py::test_it[a::b]") for name in ("tls_on_kafka", "how_to_page")}
    apart = {group_of(f"tests/integration/test_{name}.py::TestIt::test_it") for name in ("audit", "faults")}
    assert (len(together), len(apart)) == (1, 2)


@pytest.mark.parametrize(("dist", "ours"), [("loadfile", True), ("load", False), ("no", False)])
def test_only_whole_files_are_kept_together(dist: str, *, ours: bool) -> None:
    """The tests without servers go to whichever process is free."""
    option = SimpleNamespace(debug=False, loadscopereorder=True)
    config = SimpleNamespace(getvalue={"dist": dist, "tx": ["popen"]}.__getitem__, option=option)
    made = pytest_xdist_make_scheduler(config, None)  # type: ignore[arg-type]  # as much of them as is looked at
    assert isinstance(made, SharedServersScheduling) is ours
    assert option.loadscopereorder is not ours, "files are taken in the order of the tests"


def test_the_longest_tests_come_first() -> None:
    """Whatever a file has many of; of equals, the file with the most tests."""

    def item(file: str, limit_s: int | None) -> SimpleNamespace:
        marker = SimpleNamespace(args=(limit_s,)) if limit_s is not None else None
        return SimpleNamespace(path=Path(file), get_closest_marker={"timeout": marker}.get)

    items = [item("few.py", None), *[item("many.py", None)] * 2, *[item("short.py", 300)] * 3, item("long.py", 900)]
    pytest_collection_modifyitems(items)  # type: ignore[arg-type]  # as much of them as is looked at
    assert list(dict.fromkeys(each.path.name for each in items)) == ["long.py", "short.py", "many.py", "few.py"]
