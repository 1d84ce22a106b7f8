"""Finding the package's own files: the same call works in a checkout and in a wheel."""

from pathlib import Path

import pytest

from controlplane import resources
from controlplane.errors import PrerequisiteError


def _installation(folder: Path, *files: str) -> Path:
    """A package folder as the rule sees it, with these files around or in it."""
    package = folder / "controlplane"
    package.mkdir()
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return package


def test_checkout_has_its_own_files() -> None:
    """In this very checkout the schemas' folder is found; without it nothing can be encoded."""
    assert resources.resource_path("schemas").is_dir()


def test_wheel_carries_its_files_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package finds what the wheel put under ``_resources``."""
    package = _installation(tmp_path, "controlplane/_resources/infra/kafka/topics.toml")
    monkeypatch.setattr("controlplane.resources._PACKAGE_FOLDER", package)
    expected = package / "_resources" / "infra" / "kafka" / "topics.toml"
    assert resources.resource_path("infra/kafka/topics.toml") == expected


def test_checkout_is_known_by_its_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The neighbour folders of a package count only in a checkout."""
    package = _installation(tmp_path, "pyproject.toml", "schemas/Tick.v1.avsc")
    monkeypatch.setattr("controlplane.resources._PACKAGE_FOLDER", package)
    assert resources.resource_path("schemas/Tick.v1.avsc") == tmp_path / "schemas" / "Tick.v1.avsc"


def test_another_packages_folder_is_not_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside an installed package, ``schemas`` may be anybody's: it must not be read as ours."""
    package = _installation(tmp_path, "schemas/Tick.v1.avsc")
    monkeypatch.setattr("controlplane.resources._PACKAGE_FOLDER", package)
    with pytest.raises(PrerequisiteError, match=r"schemas is missing.*installation is incomplete"):
        resources.resource_path("schemas")


@pytest.mark.parametrize(
    "relative", ["", "/etc/passwd", "docs/index.md", "schemas/../pyproject.toml", "schemas/..", "."]
)
def test_only_resources_can_be_named(relative: str) -> None:
    """A path that leaves the resource folders is a mistake of the caller, not a missing file."""
    with pytest.raises(ValueError, match="a path below schemas, infra or examples"):
        resources.resource_path(relative)
