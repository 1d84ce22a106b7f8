"""The wheel in an environment of its own, outside the repository, does what the README says.

Each install has the extras of one user, so that nothing works by an extra that belongs to another. The cluster's own
parts run from this checkout.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers.clean_install import CleanInstall
from tests.helpers.readme import ReadmeCluster, Running, run

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanInstall:
    """The base install: what users embed."""
    return CleanInstall(tmp_path_factory.mktemp("base"), wheel)


@pytest.fixture(scope="module")
def operators(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanInstall:
    """An install as on a machine that runs controllers."""
    return CleanInstall(tmp_path_factory.mktemp("operators"), wheel, "[controller,cli]")


@pytest.fixture(scope="module")
def analysts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanInstall:
    """An install as on a machine that keeps the Delta tables and asks them."""
    return CleanInstall(tmp_path_factory.mktemp("analysts"), wheel, "[pipeline,cli]")


def test_base_install_produces_and_consumes(base: CleanInstall, readme_cluster: ReadmeCluster) -> None:
    """The README's two snippets need nothing but the base install."""
    produce = [base.python, str(readme_cluster.snippet("produce", base.folder))]
    with Running(produce, base.folder, {}) as node:
        node.wait_until(lambda: "slots ready" in node.output)
        printed = run([base.python, str(readme_cluster.snippet("consume", base.folder))], base.folder)
        assert re.fullmatch(r"user-17: slot \d+, node-1 at 10\.0\.0\.7:8080, epoch \d+", printed.splitlines()[-1])
        assert node.end() == 0, node.output


def test_resources_are_read_from_the_wheel(base: CleanInstall) -> None:
    """An install that finds its schemas only beside a checkout works for us and for nobody else."""
    program = """if True:
        import json
        from controlplane.bootstrap.topics import topic_specs
        from controlplane.resources import resource_path
        names = "schemas", "infra/kafka/topics.toml", "infra/redis/users.conf", "infra/jvm/ivy.xml"
        paths = [str(resource_path(name)) for name in names]
        print(json.dumps({"paths": paths, "topics": len(topic_specs())}))
    """
    read = json.loads(run([base.python, "-c", program], base.folder))
    inside = f"{base.folder}/environment/lib/"
    assert [path for path in read["paths"] if not path.startswith(inside)] == []
    assert read["topics"] > 0


def test_command_without_its_extra_is_one_sentence(base: CleanInstall) -> None:
    """The command is on the path of a base install, too: there it says what to install."""
    said = run([base.command, "--help"], base.folder, status=1)
    assert said == "the controlplane command needs an optional part: pip install 'controlplane[cli]'\n"


def test_lease_without_its_extra_names_it(base: CleanInstall) -> None:
    """Who builds a controller of the base install learns which extra is missing, not which module of ours failed."""
    said = run([base.python, "-c", "import controlplane.adapters.redis_lease"], base.folder, status=1)
    assert said.splitlines()[-1].startswith("controlplane.errors.MissingExtraError: ")
    assert "pip install 'controlplane[controller]'" in said


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up"], "embedded"),
        (["demo"], "embedded"),
        (["sql", "SELECT 1"], "sql"),
        (["sql", "--engine", "spark", "SELECT 1"], "pipeline"),
        (["pipeline", "run"], "pipeline"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_commands_name_their_extras(operators: CleanInstall, words: list[str], extra: str) -> None:
    """A command whose extra is missing says so in one sentence, before it touches anything."""
    said = run([operators.command, "--bootstrap-servers", "localhost:1", *words], operators.folder, status=1)
    assert f"pip install 'controlplane[{extra}]'" in said
    assert "Traceback" not in said


def test_extras_bring_the_controller(operators: CleanInstall, readme_cluster: ReadmeCluster) -> None:
    """Topics from the wheel's file, a controller and the reading commands run from an install with two extras."""
    addresses = json.loads((readme_cluster.folder / ".controlplane" / "addresses.json").read_text(encoding="utf-8"))
    there = ["--cluster", "installed", "--bootstrap-servers", readme_cluster.bootstrap_servers]
    applied = json.loads(
        run([operators.command, *there, "topics", "apply", "--least-copies", "1", "--format", "json"], operators.folder)
    )
    assert applied
    lead = [operators.command, *there, "--redis-url", addresses["redis_url"], "controller", "run"]
    with Running(lead, operators.folder, {}) as controller:
        controller.wait_until(lambda: _shown(operators, there))
        assert controller.end() == 0, controller.output


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_pipeline_runs_until_ctrl_c_and_its_tables_are_asked(
    analysts: CleanInstall, readme_cluster: ReadmeCluster
) -> None:
    """Spark, its jars and its Python workers find everything in the wheel, and Ctrl-C is no error."""
    there = [analysts.command, "--bootstrap-servers", readme_cluster.bootstrap_servers]
    tables = analysts.folder / "delta"
    with Running([*there, "pipeline", "run", "--tables-dir", str(tables)], analysts.folder, {}) as pipeline:
        # It starts Spark and makes its tables first, beside the other tests.
        pipeline.wait_until((tables / "decisions" / "_delta_log" / f"{1:020}.json").exists, within_s=300)
        assert pipeline.interrupt() == 0, pipeline.output
        assert "Traceback" not in pipeline.output
    statement = "select epoch from decisions where seq = 1"
    said = run([*there, "sql", statement, "--tables-dir", str(tables), "--format", "json"], analysts.folder)
    assert json.loads(said)[0]["rows"] == [{"epoch": 1}]


def _shown(operators: CleanInstall, there: list[str]) -> bool:
    words = [operators.command, *there, "table", "show", "--format", "json"]
    result = subprocess.run(words, cwd=operators.folder, capture_output=True, text=True, check=False)
    return result.returncode == 0 and len(json.loads(result.stdout)["slots"]) > 0
