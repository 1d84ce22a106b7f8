"""``controlplane sql``: whose tables it asks, by which engine, and what it says when something is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import streaming.session
import streaming.sql.spark
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.root import run
from controlplane.embedded.services import addresses_path
from controlplane.errors import PrerequisiteError
from streaming.sql.answers import QueryResult
from streaming.tables.tables_folder import name_cluster
from tests.helpers.commands import RunCommand


class Echo:
    """An engine that answers each statement with its own words."""

    def __init__(self, _session: object, _folder: Path) -> None:
        """Of any tables."""

    def newest_seq(self) -> int:
        """Any."""
        return 8

    def run(self, statement: str) -> QueryResult:
        """The statement."""
        return QueryResult(("statement",), ((statement,),))

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark, without its half minute."""
    monkeypatch.setattr("controlplane.cli.pipeline.sql.spark_config", lambda *_: None)
    monkeypatch.setattr(streaming.session, "build_session", lambda *_: None)
    monkeypatch.setattr(streaming.sql.spark, "SparkEngine", Echo)


def create_tables(folder: Path, cluster: str | None = "local") -> None:
    """The table of decisions, with the first seven of them."""
    write_deltalake(folder / "decisions", pa.table({"seq": list(range(1, 8))}))
    if cluster is not None:
        name_cluster(folder, cluster)


def leave_addresses(folder: Path, servers: str) -> None:
    """What ``controlplane up`` leaves while it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses = {"bootstrap_servers": servers, "redis_url": "redis://127.0.0.1:1/0"}
    addresses_path(folder).write_text(json.dumps(addresses), encoding="utf-8")


def test_it_asks_the_tables_of_the_cluster(command: RunCommand, tmp_path: Path) -> None:
    """Without options the tables of the data folder are meant; each statement has an object."""
    create_tables(tmp_path / "delta")
    ran = command(
        "sql", "--data-dir", str(tmp_path), "select 1 one", "select max(seq) m from decisions", "--format", "json"
    )
    assert [document["rows"] for document in json.loads(ran.out)] == [[{"one": 1}], [{"m": 7}]]
    assert f"answered from {tmp_path / 'delta'}: cluster local, newest seq 7" in ran.err


def test_it_loads_what_it_uses(tmp_path: Path) -> None:
    """An answer within two seconds has no time for libraries that only Spark or Kafka needs, nor for pandas."""
    create_tables(tmp_path)
    program = """
import sys
from controlplane.cli.root import run

run(["sql", "--tables-dir", sys.argv[1], "select max(seq) from decisions"])
print({"pandas", "pyspark", "confluent_kafka", "controlplane.bootstrap"} & sys.modules.keys())
import pandas, pyarrow

print(pyarrow.table({"load": [1.0]}).to_pandas().load.sum())
"""
    ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.splitlines()[1:]) == (0, ["7", "set()", "1.0"]), ran.stderr


def test_it_only_reads(command: RunCommand, tmp_path: Path) -> None:
    """A history that a slip of the hand deletes is gone."""
    create_tables(tmp_path)
    ran = command("sql", "--tables-dir", str(tmp_path), "delete from decisions")
    assert ran.status == ExitStatus.FAILED
    assert "controlplane: DELETE is refused: SELECT, VALUES, SHOW TABLES and DESCRIBE are carried out" in ran.err


def test_columns_of_one_name_are_refused(command: RunCommand, tmp_path: Path) -> None:
    """A row with names would show the last of them for each."""
    create_tables(tmp_path)
    ran = command("sql", "--tables-dir", str(tmp_path), "select 1 a, 2 a, 3 b")
    assert (ran.status, "several columns are named a: give each a name" in ran.err) == (ExitStatus.FAILED, True)


def test_a_damaged_table_keeps_no_other_one_from_being_read(command: RunCommand, tmp_path: Path) -> None:
    """It is named, with what is wrong with it."""
    create_tables(tmp_path)
    write_deltalake(tmp_path / "heartbeats", pa.table({"offset": [1, 2]}))
    for entry in (tmp_path / "decisions" / "_delta_log").glob("*.json"):
        entry.write_text("junk", encoding="utf-8")
    ran = command("sql", "--tables-dir", str(tmp_path), "select count(*) as n from heartbeats", "--format", "json")
    assert json.loads(ran.out)[0]["rows"] == [{"n": 2}]
    assert "newest seq unknown: the table decisions cannot be read: " in ran.err


def test_it_prints_json_whatever_the_figures_are(command: RunCommand, tmp_path: Path) -> None:
    """JSON has no word for infinity."""
    create_tables(tmp_path)
    question = "select 'nan'::double as a, 'inf'::double as b"
    ran = command("sql", "--tables-dir", str(tmp_path), question, "--format", "json")
    assert json.loads(ran.out, parse_constant=pytest.fail)[0]["rows"] == [{"a": "nan", "b": "inf"}]


def test_it_finds_the_tables_that_the_demo_left(command: RunCommand, tmp_path: Path) -> None:
    """Also after the demo's Kafka is gone."""
    create_tables(tmp_path / "demo" / "delta")
    ran = command("sql", "--data-dir", str(tmp_path), "select 1")
    assert f"answered from {tmp_path / 'demo' / 'delta'}: " in ran.err


def test_it_never_answers_for_another_cluster(command: RunCommand, tmp_path: Path) -> None:
    """Beside a cluster that runs here the demo's tables are not meant: they have to be named."""
    demo = tmp_path / "demo"
    create_tables(demo / "delta")
    leave_addresses(tmp_path, "127.0.0.1:1")
    ran = command("sql", "--data-dir", str(tmp_path), "select 1")
    assert ran.status == ExitStatus.FAILED
    assert f"no tables of cluster local in {tmp_path / 'delta'}: run 'controlplane pipeline run'" in ran.err
    assert f"the demo's are read with --tables-dir {demo / 'delta'}" in ran.err
    named = command("sql", "--data-dir", str(tmp_path), "--tables-dir", str(demo / "delta"), "select 1")
    assert (named.status, f"answered from {demo / 'delta'}: cluster local" in named.err) == (ExitStatus.DONE, True)


@pytest.mark.parametrize(("servers", "found"), [("127.0.0.1:1", True), ("kafka.example:9092", False)])
def test_it_follows_the_address(command: RunCommand, tmp_path: Path, servers: str, *, found: bool) -> None:
    """While the demo runs its tables are meant, unless another Kafka is named."""
    create_tables(tmp_path / "demo" / "delta")
    leave_addresses(tmp_path / "demo", "127.0.0.1:1")
    assert command("sql", "--data-dir", str(tmp_path), "select 1").status == ExitStatus.DONE
    ran = command("sql", "--data-dir", str(tmp_path), "--bootstrap-servers", servers, "select 1")
    assert (ran.status == ExitStatus.DONE) == found


def test_it_knows_whose_tables_a_folder_holds(command: RunCommand, tmp_path: Path) -> None:
    """Two clusters with one data folder must not be taken for each other."""
    create_tables(tmp_path / "delta", "green")
    ran = command("sql", "--data-dir", str(tmp_path), "--cluster", "blue", "select 1")
    assert (ran.status, "no tables of cluster blue" in ran.err) == (ExitStatus.FAILED, True)
    assert "those in it are of cluster green" in ran.err
    ran = command("sql", "--data-dir", str(tmp_path), "--cluster", "green", "select 1")
    assert (ran.status, "cluster green, newest seq 7" in ran.err) == (ExitStatus.DONE, True)
    with pytest.raises(PrerequisiteError, match="those of cluster green"):
        name_cluster(tmp_path / "delta", "blue")


def test_spark_answers_if_it_is_named(command: RunCommand, fake_spark: None, tmp_path: Path) -> None:
    """Several statements share its start."""
    create_tables(tmp_path)
    ran = command("sql", "--engine", "spark", "--tables-dir", str(tmp_path), "one", "two", "--format", "json")
    assert [document["rows"] for document in json.loads(ran.out)] == [[{"statement": "one"}], [{"statement": "two"}]]
    assert (ran.err.count("starting Spark"), "newest seq 8" in ran.err) == (1, True)


def test_start_of_spark_is_quiet_unless_it_fails(
    fake_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Eight lines of warnings say nothing about the answer; of a failure they are all that is known."""
    create_tables(tmp_path / "delta")

    def start(*_: object) -> None:
        subprocess.run(["sh", "-c", "echo WARN loopback >&2"], check=True)

    def fail(*_: object) -> None:
        start()
        raise PrerequisiteError("Spark does not start")

    words = ("sql", "--engine", "spark", "--data-dir", str(tmp_path), "select 1")
    monkeypatch.setattr(streaming.session, "build_session", start)
    assert run(words) == ExitStatus.DONE
    assert "WARN" not in capfd.readouterr().err
    monkeypatch.setattr(streaming.session, "build_session", fail)
    assert run(words) == ExitStatus.FAILED
    assert "WARN loopback" in capfd.readouterr().err


def test_people_see_a_table(command: RunCommand, tmp_path: Path) -> None:
    """Columns with their names above them."""
    create_tables(tmp_path)
    ran = command(
        "sql", "--tables-dir", str(tmp_path), "select seq as number, 'x' as letter from decisions where seq = 3"
    )
    assert [line.split() for line in ran.out.splitlines()] == [["number", "letter"], ["3", "x"]]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_missing_tables_are_told_at_once(command: RunCommand, tmp_path: Path, engine: str) -> None:
    """Half a minute of waiting for "there is nothing" is too long."""
    ran = command("sql", "--engine", engine, "--tables-dir", str(tmp_path), "select 1")
    assert ran.status == ExitStatus.FAILED
    assert f"no tables of cluster local in {tmp_path}: run 'controlplane pipeline run'" in ran.err
    assert "starting Spark" not in ran.err


@pytest.mark.parametrize(
    ("engine", "module", "missing", "extra"),
    [("local", "streaming.sql.local", "duckdb", "sql"), ("spark", "streaming.sql.spark", "pyspark.errors", "pipeline")],
)
def test_a_missing_engine_is_named(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, engine: str, module: str, missing: str, extra: str
) -> None:
    """An install with the command and without the engine names the extra. A missing module of ours is a defect."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError):
        command("sql", "--engine", engine, "select 1")
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    ran = command("sql", "--engine", engine, "select 1")
    assert ran.status == ExitStatus.FAILED
    assert f"controlplane[{extra}]" in ran.err
