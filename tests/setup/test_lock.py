"""The pinned lists hold all that pyproject.toml asks for, with hashes, and nothing of the machine that made them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "infra" / "python").glob("*.txt"))
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def _pins(text: str) -> dict[str, Version]:
    return {canonicalize_name(name): Version(version) for name, version in _PIN.findall(text)}


def _asked_for() -> list[Requirement]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *pyproject["dependency-groups"].values(),
    ]
    found = [Requirement(line) for group in groups for line in group]
    return [requirement for requirement in found if requirement.name != project["name"]]


@pytest.mark.parametrize("requirement", _asked_for(), ids=str)
def test_every_requirement_is_pinned_to_an_allowed_version(requirement: Requirement) -> None:
    """A dependency that was added without ``make lock`` would be missing in every fresh checkout."""
    pins = _pins((ROOT / "infra" / "python" / "requirements.txt").read_text(encoding="utf-8"))
    name = canonicalize_name(requirement.name)
    assert name in pins, f"{requirement} is not pinned: run make lock"
    assert requirement.specifier.contains(pins[name]), f"{requirement} is pinned to {pins[name]}: run make lock"


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name)
def test_every_pin_has_a_hash_and_no_list_names_an_address(path: Path) -> None:
    """Hashes say what is installed, and an address would say where one machine got it."""
    text = path.read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert [block for block in blocks if not block.startswith("#") and "--hash=sha256:" not in block] == []
    assert "://" not in text
    assert "--index-url" not in text


def test_the_pipelines_list_is_a_part_of_the_whole_one() -> None:
    """Executors run what was tested; only Spark's own Python, and the engine of ``sql``, are left to others."""
    whole, shipped = (
        _pins((ROOT / "infra" / "python" / f"{name}.txt").read_text(encoding="utf-8"))
        for name in ("requirements", "pipeline")
    )
    assert [name for name in shipped if shipped[name] != whole.get(name)] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = (*project["dependencies"], *extras["cli"], *extras["pipeline"], *extras["sql"])
    missing = {canonicalize_name(Requirement(line).name) for line in lines} - shipped.keys()
    assert missing == {project["name"], "pyspark", "duckdb"}
