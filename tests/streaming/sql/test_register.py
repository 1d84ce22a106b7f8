"""``pipeline register`` with the metastore that Spark carries, Derby: each session is a process of its own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controlplane.embedded.jars import spark_jars
from controlplane.embedded.java import find_java
from controlplane.errors import PrerequisiteError, UserError
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.views import ALL_VIEWS
from streaming.sql.registration import Registered, register
from streaming.tables.created_tables import create_missing
from tests.helpers.log_tables import busy_world, write_tables
from tests.helpers.readme import ROOT, clean_environment
from tests.helpers.recorded_log import RecordedLog

LATER = ALL_TABLES[-1].name
PLAIN_SESSION = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").enableHiveSupport()
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print(json.dumps([[list(row) for row in spark.sql(statement).collect()] for statement in sys.argv[2:]]))
"""
SHORT_LIVED = "-Dderby.system.durability=test -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A session starts sooner by it: Derby need not survive the machine, nor need code be compiled twice."""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Metastore:
    """A metastore in a folder, and sessions that use it one after the other.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._settings = {
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
            "spark.sql.warehouse.dir": str(folder / "schemas"),
        }

    def register(self, tables_dir: Path) -> str:
        """Enter the tables by our command; the answer is what it prints."""
        settings = [word for name, value in self._settings.items() for word in ("--conf", f"{name}={value}")]
        return self._run("-m", "controlplane.cli", "pipeline", "register", "--tables-dir", str(tables_dir), *settings)

    def ask(self, *statements: str) -> list[list[list[object]]]:
        """The rows that a session answers that has Delta's own settings and nothing of this package."""
        settings = {
            **self._settings,
            "spark.jars": ",".join(map(str, spark_jars())),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        found = json.loads(self._run("-c", PLAIN_SESSION, json.dumps(settings), *statements))
        assert isinstance(found, list)
        return found

    def _run(self, *words: str) -> str:
        """The last line that a Python prints."""
        variables = clean_environment() | {"PYTHONPATH": str(ROOT), "JAVA_HOME": str(find_java().home)}
        variables["JAVA_TOOL_OPTIONS"] = SHORT_LIVED
        command = [sys.executable, *words]
        ended = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()[-1]


@pytest.fixture
def tables_dir(tmp_path: Path) -> Path:
    """Tables in a folder with a name that URIs and statements would have to escape."""
    folder = tmp_path / "the operator's 100% tables"
    create_missing(folder, bucket_count=2)
    return folder


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with a catalog for this test."""
    yield spark.newSession()
    spark.sql("DROP SCHEMA IF EXISTS entered CASCADE")


def test_what_is_new_is_added_and_the_rest_is_kept(session: SparkSession, tables_dir: Path, tmp_path: Path) -> None:
    """A table that a later version makes, and the views; registered again, nothing changes."""
    shutil.move(tables_dir / LATER, tmp_path / LATER)
    others = tuple(sorted(each.name for each in ALL_TABLES if each.name != LATER))
    assert register(session, tables_dir, "entered") == Registered(added=others, kept=())
    shutil.move(tmp_path / LATER, tables_dir / LATER)
    assert register(session, tables_dir, "entered") == Registered(added=(LATER,), kept=others)
    assert register(session, tables_dir, "entered") == Registered(added=(), kept=tuple(sorted((*others, LATER))))
    for each in ALL_TABLES:
        assert session.table(f"entered.{each.name}").columns == list(each.columns), each.name


def test_a_table_that_lies_elsewhere_is_told_and_nothing_is_entered(
    session: SparkSession, tables_dir: Path, tmp_path: Path
) -> None:
    """Whether or not its files are still there."""
    moved = tmp_path / "moved"
    shutil.copytree(tables_dir, moved)
    shutil.move(tables_dir / LATER, tmp_path / LATER)
    register(session, tables_dir, "entered")
    shutil.rmtree(tables_dir)
    with pytest.raises(UserError, match=r"the catalog has entered.* at file:.*, and not at file:.*DROP TABLE entered"):
        register(session, moved, "entered")
    assert not session.catalog.tableExists(f"entered.{LATER}")


def test_a_statement_that_the_catalog_refuses_is_named(session: SparkSession, tables_dir: Path) -> None:
    """With Spark's own first sentence."""
    with pytest.raises(
        PrerequisiteError, match=r"did not carry out 'CREATE SCHEMA IF NOT EXISTS a-b': .*INVALID_IDENTIFIER"
    ):
        register(session, tables_dir, "a-b")


def run_register(
    folder: Path, tables_dir: Path, *settings: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Our command, in a folder."""
    words = ["pipeline", "register", "--tables-dir", str(tables_dir)]
    words += [word for each in settings for word in ("--conf", each)]
    environment = clean_environment() | {"PYTHONPATH": str(ROOT), "JAVA_HOME": str(find_java().home)} | variables
    command = [sys.executable, "-m", "controlplane.cli", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_no_metastore_is_refused_and_none_is_made(tables_dir: Path, tmp_path: Path) -> None:
    """What Hive would make in the working directory, no other session finds."""
    folder = tmp_path / "here"
    folder.mkdir()
    ended = run_register(folder, tables_dir)
    assert ended.returncode == 1, ended.stderr
    assert "no metastore is configured, so no other session would find what is registered: give --conf" in ended.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_in_file", [False, True], ids=["--conf", "hive-site.xml"])
def test_a_metastore_that_does_not_answer_is_named(tables_dir: Path, tmp_path: Path, *, is_in_file: bool) -> None:
    """By its address, as --conf or the file of Hive's settings gives it."""
    address = "thrift://127.0.0.1:1"
    setting = f"<property><name>hive.metastore.uris</name><value>{address}</value></property>"
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{setting}</configuration>", encoding="utf-8")
    if is_in_file:
        ended = run_register(tmp_path, tables_dir, SPARK_CONF_DIR=str(tmp_path))
    else:
        ended = run_register(tmp_path, tables_dir, f"spark.hadoop.hive.metastore.uris={address}")
    assert ended.returncode == 1, ended.stderr
    assert f"the metastore at {address} does not answer: " in ended.stderr
    assert "Connection refused" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_another_session_knows_what_was_registered(tmp_path: Path) -> None:
    """In a metastore of Hive."""
    world = busy_world()
    tables_dir = tmp_path / "the tables"
    write_tables(tables_dir, RecordedLog(world))
    metastore = Metastore(tmp_path)
    assert f"controlplane: {len(ALL_TABLES)} tables added: " in metastore.register(tables_dir)
    counted, listed, owned = metastore.ask(
        "select count(*), max(seq) from controlplane.decisions",
        "show tables in controlplane",
        "select count(*) from controlplane.ownership",
    )
    assert counted == [[len(world.decisions), world.decisions[-1].seq]]
    assert {row[1] for row in listed} == {each.name for each in ALL_TABLES} | {each.name for each in ALL_VIEWS}
    assert owned == [[0]]
