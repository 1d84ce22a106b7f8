"""The reader in Java, which shares no code with ours, passes every vector: so the page and the vectors are enough."""

import json
import shutil
from pathlib import Path

import pytest

from controlplane.resources import resource_path
from tests.helpers.java_reader import JavaReader
from tests.vectors import rewrite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WITHIN_S = 120


@pytest.fixture(scope="module")
def java_reader(tmp_path_factory: pytest.TempPathFactory) -> JavaReader:
    """The example, compiled once."""
    return JavaReader(tmp_path_factory.mktemp("classes"))


def test_java_passes_every_vector(java_reader: JavaReader) -> None:
    """Hashes, records, digests, decision logs and reader scripts, each file with all of its cases."""
    done = java_reader.run("VectorCheck", [str(resource_path("schemas"))], WITHIN_S)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
    assert done.stdout.splitlines() == [f"{name}: {len(rewrite.read(name))} cases" for name in rewrite.MAKERS]


def test_java_names_what_differs(java_reader: JavaReader, tmp_path: Path) -> None:
    """A check that passed wrong vectors would show nothing: one case of each file is changed, and each is named."""
    schemas = Path(shutil.copytree(resource_path("schemas"), tmp_path / "schemas"))
    for name in rewrite.MAKERS:
        path = schemas / "vectors" / f"{name}.json"
        cases = json.loads(path.read_text("utf-8"))
        match name:
            case "hashes":
                cases[0]["slots"]["crc32c"]["256"] = 1
            case "bundles":
                cases[0]["bundles"]["4"] = "kv/0x40000000_0x80000000"
            case "records":
                cases[0]["json"]["namespace"] = "other"
            case "decision_logs":
                cases[0]["expected"]["decisions"][0]["digest"] = "00" * 32
            case "reader_scripts":
                cases[0]["steps"][0]["expected"]["lookups"][0]["leader"] = "n9"
            case _:
                cases[0]["digest"] = "0123456789abcdef"
        path.write_text(json.dumps(cases), encoding="utf-8")
    done = java_reader.run("VectorCheck", [str(schemas)], WITHIN_S)
    assert done.returncode == 1
    first_names = {name: rewrite.read(name)[0]["name"] for name in rewrite.MAKERS}
    differing = done.stdout.splitlines()[len(rewrite.MAKERS) :]
    assert [line.split(": ")[:2] for line in differing] == [list(pair) for pair in first_names.items()]
