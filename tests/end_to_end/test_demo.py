"""The demo is the end-to-end test: it starts everything as processes of their own, breaks it, and judges by itself.

It is played once with ``--keep``, from an installed wheel, far from the checkout; then every reading command looks at
what it left, in both formats, and it is stopped. The one that is interrupted is played from the checkout.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from controlplane.inspection import decisions, members, tables
from tests.helpers.clean_install import CleanInstall
from tests.helpers.polling import poll_until
from tests.helpers.readme import clean_environment

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.slow,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(1_200),
]

ROOT = Path(__file__).resolve().parents[2]
DEMO_DEADLINE_S = 900
STOP_DEADLINE_S = 120

RunHere = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the demo is played."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanInstall:
    """What ``pip install dist/*.whl[all]`` makes in a new environment."""
    return CleanInstall(tmp_path_factory.mktemp("install"), wheel, "[all]")


@pytest.fixture(scope="module")
def kept_demo(install: CleanInstall, data_dir: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    """What the demo reports of itself; everything it started goes on running until the tests here are done."""
    try:
        status, output = _play(request, [install.command, "--data-dir", str(data_dir), "demo", "--keep"], data_dir)
        assert status == 0, output[-4_000:]
        report = json.loads((data_dir / "demo" / "report.json").read_text(encoding="utf-8"))
        report["output"] = output
        yield report
    finally:
        subprocess.run(
            [install.command, "--data-dir", str(data_dir), "demo", "--stop"],
            cwd=data_dir,
            env=clean_environment(),
            check=True,
            timeout=STOP_DEADLINE_S,
        )


@pytest.fixture
def command(kept_demo: dict[str, object], install: CleanInstall, data_dir: Path) -> RunHere:
    """Runs a command on the cluster that the demo left."""

    def run_command(*words: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [install.command, "--data-dir", str(data_dir), *words],
            cwd=data_dir,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    return run_command


def test_every_step_passed_and_was_measured(kept_demo: dict[str, object]) -> None:
    """Five steps, each with its checks, its epochs and its requests; every plan was least; a death was seen in time."""
    assert kept_demo["passed"] is True
    steps = kept_demo["steps"]
    assert isinstance(steps, list)
    assert len(steps) == 5
    for step in steps:
        assert step["checks"]
        assert all(check["passed"] for check in step["checks"])
        assert step["moved"] == step["least"]
        assert step["answered"] > 0
    started, joined, killed = steps[:3]
    # What a plan leaves to carry out goes into the next one's plan, so that some may be planned twice.
    assert 0 < started["carried_out"] <= started["moved"]
    assert joined["carried_out"] > 0
    assert killed["carried_out"] > 0
    assert 0 < killed["detected_ms"] <= killed["readable_ms"] < 15_000


def test_candidates_came_back_from_delta(kept_demo: dict[str, object]) -> None:
    """The hot namespace is in the rows that SQL gave."""
    queries = kept_demo["queries"]
    assert isinstance(queries, list)
    assert any(row["bundle_id"].startswith("demo/hot/") for row in queries[0]["rows"])
    assert all(query["rows"] for query in queries)


def test_the_output_says_what_happened_and_how_to_go_on(kept_demo: dict[str, object]) -> None:
    """The summary, the queries and the commands to go on with are printed."""
    output = str(kept_demo["output"])
    for words in ("step 5", "Measured in", "SQL: select", "Every step did what it should", "demo --stop"):
        assert words in output


def test_every_decision_is_taken_again_from_the_tables(command: RunHere, data_dir: Path) -> None:
    """Without a word from Kafka: what is in Delta suffices to prove what was decided."""
    words = ("audit", "--tables-dir", str(data_dir / "demo" / "delta"), "--format", "json")
    audited = json.loads(command("--bootstrap-servers", "127.0.0.1:1", *words).stdout)
    assert audited["differences"] == audited["followed"] == []
    assert audited["retaken"] == audited["decisions"] > 10


def test_table_by_slot(command: RunHere) -> None:
    """Every slot is served; text and JSON tell the same."""
    shown = json.loads(command("table", "show", "--format", "json").stdout)
    assert len(shown["slots"]) == shown["settings"]["slot_count"]
    assert all(slot["leader"] and len(slot["followers"]) == 1 for slot in shown["slots"])
    text = command("table", "show", "--limit", "0").stdout
    assert text.startswith("epoch ")
    assert len(text.splitlines()) == 2 + len(shown["slots"]) + 1 + len(shown["bundles"])


def test_table_by_node(command: RunHere) -> None:
    """Seven nodes live, evenly loaded: the killed one is back."""
    rows = json.loads(command("table", "show", "--by", "node", "--format", "json").stdout)["nodes"]
    assert [row["status"] for row in rows] == ["active"] * 7
    held = [row["leads"] + row["follows"] for row in rows]
    assert max(held) - min(held) <= 1
    _expect_columns(command("table", "show", "--by", "node").stdout, tables.NODE_FIELDS)


def test_nodes(command: RunHere) -> None:
    """Each node was heard lately and works with the newest epoch."""
    rows = json.loads(command("nodes", "list", "--format", "json").stdout)
    assert len(rows) == 7
    assert all(row["epoch_lag"] == 0 and row["since_heartbeat_ms"] < 5_000 for row in rows)
    assert all(row["addresses"] for row in rows)
    _expect_columns(command("nodes", "list").stdout, members.MEMBER_FIELDS)


def test_log_verifies(command: RunHere) -> None:
    """Everything that two leaders decided while nodes were killed holds from outside, proof by proof."""
    shown = json.loads(command("log", "verify", "--format", "json").stdout)
    assert shown["complaints"] == []
    assert shown["certificates"] > 0
    assert "every one holds" in command("log", "verify").stdout


def test_every_decision_is_taken_again(command: RunHere) -> None:
    """Also those after the leader was killed: the audit finds no difference, and had all the inputs."""
    shown = json.loads(command("audit", "--format", "json").stdout)
    assert shown["differences"] == []
    assert shown["followed"] == []
    assert shown["retaken"] == shown["decisions"] > 0
    assert "no difference" in command("audit").stdout


def test_log(command: RunHere) -> None:
    """Each decision with its cause, its moves and its certificate; seq without a gap."""
    shown = json.loads(command("log", "show", "--last", "20", "--format", "json").stdout)
    seqs = [decision["seq"] for decision in shown]
    assert seqs == list(range(seqs[0], seqs[-1] + 1))
    assert all(decision["causes"] for decision in shown)
    planned = [decision["certificate"] for decision in shown if decision["certificate"]]
    assert planned
    assert all(certificate["moved"] == certificate["least_moved"] for certificate in planned)
    text = command("log", "show", "--last", "20").stdout
    _expect_columns(text, decisions.DECISION_FIELDS)
    assert "node_expired node-2" in text
    assert "proven least" in text


def test_leader(command: RunHere) -> None:
    """Somebody leads, in the term that the log opened last."""
    row = json.loads(command("leader", "show", "--format", "json").stdout)
    assert row["lease_owner"] == row["opened_by"]
    assert row["lease_term"] == row["opened_term"] >= 2
    assert row["lease_owner"] in command("leader", "show").stdout


def test_namespaces(command: RunHere) -> None:
    """Created by the demo, and one more by hand; the same one again is refused."""
    names = [row["namespace"] for row in json.loads(command("namespaces", "list", "--format", "json").stdout)]
    assert names == ["demo/calm", "demo/hot"]
    assert json.loads(command("namespaces", "create", "more", "--format", "json").stdout)["outcome"] == "done"
    assert "exists already" in command("namespaces", "create", "more", status=1).stdout


def test_topics_keep_their_promises(command: RunHere) -> None:
    """Nine topics as the file wants them."""
    assert len(json.loads(command("topics", "verify", "--format", "json").stdout)["verified"]) == 9


def test_sql(command: RunHere) -> None:
    """A row of averages for each node that reports, with the pipeline still writing."""
    (answer,) = json.loads(command("sql", "select * from broker_load", "--format", "json").stdout)
    assert {row["node_id"] for row in answer["rows"]} >= {f"node-{number}" for number in range(1, 8)}
    text = command("sql", "select node_id, weighted_usage from broker_load order by node_id").stdout
    assert text.splitlines()[0].split() == ["node", "id", "weighted", "usage"]


def test_second_demo_is_refused_while_one_is_kept(command: RunHere) -> None:
    """Two demos in one folder would delete each other's data."""
    assert "demo --stop" in command("demo", status=1).stderr


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """Whoever is started now heeds Ctrl-C; tests that run in the background do not, and that is inherited."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("heeded_interrupts")
def test_interrupt_ends_every_process(tmp_path: Path) -> None:
    """Ctrl-C in the middle leaves nothing behind."""
    arguments = [sys.executable, "-m", "controlplane.cli", "--data-dir", str(tmp_path), "demo"]
    with _playing(arguments, ROOT, start_new_session=True) as playing:
        assert playing.stdout is not None
        for line in playing.stdout:
            if "opens the first term" in line and "ok" in line:
                break
        started = psutil.Process(playing.pid).children(recursive=True)
        assert len(started) >= 8
        os.kill(playing.pid, signal.SIGINT)
        rest = playing.stdout.read()
        assert playing.wait(STOP_DEADLINE_S) == 130, rest
    poll_until(lambda: not any(process.is_running() for process in started), STOP_DEADLINE_S)
    # And none that was started when the interrupt came.
    poll_until(lambda: not _processes_with_files_in(tmp_path), STOP_DEADLINE_S)


def _processes_with_files_in(folder: Path) -> list[psutil.Process]:
    """Each process of the demo writes its log there."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if any(Path(file.path).is_relative_to(folder) for file in process.open_files()):
                found.append(process)
    return found


def _playing(arguments: Sequence[str], folder: Path, *, start_new_session: bool = False) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        arguments,
        cwd=folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=start_new_session,
    )


def _play(request: pytest.FixtureRequest, arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run the demo, and pass its lines on as they come: a test of minutes must not be silent."""
    lines = []
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with _playing(arguments, folder) as playing:
        assert playing.stdout is not None
        for line in playing.stdout:
            lines.append(line)
            with capture.global_and_fixture_disabled():
                sys.stdout.write(line)
        return playing.wait(DEMO_DEADLINE_S), "".join(lines)


def _expect_columns(text: str, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column.replace("_", " ") not in text]
    assert not missing, text
