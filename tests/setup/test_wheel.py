"""The wheel holds what users need and nothing else."""

import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "schemas" / "vectors"
"""For people who write readers in other languages: nothing that is installed reads them."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archive(wheel: Path) -> zipfile.ZipFile:
    """The wheel, to be looked into."""
    return zipfile.ZipFile(wheel)


@pytest.mark.parametrize(
    "folder",
    ["schemas", "infra/kafka", "infra/redis", "infra/jvm", "examples/kv", "examples/pubsub", "examples/serving"],
)
def test_wheel_carries_every_resource(archive: zipfile.ZipFile, folder: str) -> None:
    """An installed package encodes records, creates topics, fetches jars and plays the demo without a checkout."""
    files = [path for path in _files(ROOT / folder) if not path.is_relative_to(VECTORS)]
    expected = {f"controlplane/_resources/{path.relative_to(ROOT)}" for path in files}
    assert expected
    assert expected - set(archive.namelist()) == set()


def test_wheel_is_typed_and_holds_both_packages(archive: zipfile.ZipFile) -> None:
    """Users' type checkers read our annotations, and the pipeline is part of the product."""
    names = set(archive.namelist())
    assert {"controlplane/py.typed", "controlplane/__init__.py", "streaming/__init__.py"} - names == set()


def test_wheel_holds_nothing_else(archive: zipfile.ZipFile) -> None:
    """Tests, scripts, and the examples under their own name would land in users' site-packages."""
    roots = {name.partition("/")[0] for name in archive.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"controlplane", "streaming"}


def test_base_install_is_light(archive: zipfile.ZipFile) -> None:
    """Who embeds the agent or the client gets neither Spark nor a server."""
    (metadata_name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    lines = archive.read(metadata_name).decode().splitlines()
    base = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist:")]
    names = {requirement.split("<")[0].split(">")[0] for requirement in base if "extra ==" not in requirement}
    wanted = {"confluent-kafka", "fastavro", "google-crc32c", "immutables", "prometheus-client", "structlog", "xxhash"}
    assert names == wanted


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
