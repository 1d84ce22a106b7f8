"""Both engines: the same values, whatever writes is refused, and wrong statements are answered with a sentence."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controlplane.errors import UserError
from streaming.contracts.records import DEAD_LETTERS_TABLE
from streaming.sql import local
from streaming.sql.answers import SqlEngine
from streaming.sql.local import LocalEngine
from streaming.sql.spark import SparkEngine
from streaming.tables.table_writer import TableWriter
from tests.helpers.membership_rows import add_membership_rows

WRITES = (
    "delete from decisions",
    "update decisions set seq = 1",
    "truncate table decisions",
    "drop table decisions",
    "drop view decisions",
    "insert into decisions select * from decisions",
    "with found as (select * from decisions) insert into decisions select * from found",
    "insert overwrite decisions select * from decisions",
    "merge into decisions using heartbeats on true when matched then delete",
    "from decisions insert into decisions select * insert into heartbeats select *",
    "alter table decisions add columns (more int)",
    "create table copy as select * from decisions",
    "create or replace temporary view decisions as select 1",
    "replace table decisions as select 1",
    "optimize decisions",
    "vacuum decisions",
    "restore table decisions to version as of 0",
    "convert to delta parquet.`{folder}`",
    "copy decisions to '{folder}/copy.csv'",
    "copy into decisions from '{folder}'",
    "export database '{folder}/export'",
    "attach '{folder}/other.db' as other",
    "insert overwrite directory '{folder}/copy' using csv select 1",
    "load data inpath '{folder}' into table decisions",
    "cache table decisions",
    "refresh table decisions",
    "set spark.sql.ansi.enabled = false",
    "set threads = 1",
    "reset",
    "use other",
    "add jar '{folder}/any.jar'",
    "install httpfs",
    "load json",
    "create function f as 'java.lang.String'",
    "declare number int = 1",
    "call any_procedure()",
    "begin transaction",
    "begin delete from decisions; end",
    "execute immediate 'delete from decisions'",
    "prepare question as select 1",
    "explain delete from decisions",
    "explain analyze delete from decisions",
    "select transform(seq) using 'tee {folder}/copy' as (number) from decisions",
    "select reflect('java.lang.System', 'setProperty', 'a', 'b')",
    "select java_method('java.lang.System', 'setProperty', 'a', 'b')",
    "select try_reflect('java.lang.System', 'setProperty', 'a', 'b')",
    "select 1; delete from decisions",
    "select 1; select 2",
    "",
)
WRITES_IN_QUERIES = (
    "with d as (copy (select 1) to '{folder}/copy.csv') select 1",
    "with d as (copy (select 1) to '.tmp/copy.csv') select 1",
    "with d as (insert into decisions select * from decisions returning seq) select * from d",
    "with d as (update decisions set seq = 1 returning seq) select * from d",
    "with d as (delete from decisions returning seq) select * from d",
    "select (with d as (delete from decisions returning seq) select max(seq) from d)",
    "select * from query('with d as (copy (select 1) to ''.tmp/copy.csv'') select 1')",
)
"""For DuckDB these are of the kind SELECT."""

READS = (
    "values (1)",
    "with one as (select 1 n) select n from one where n in (select 1) order by n limit 3",
    "select node_id, count(*) from membership group by node_id having count(*) > 0",
    "select count(*) over (partition by node_id) from membership",
    "select a.node_id from membership a join membership b on a.offset = b.offset union all select 'x'",
    "select 1 except select 2 intersect select 3",
    "show tables",
    "describe membership",
    "select * from (select 1 n, 2 m) pivot (max(m) for n in (1, 2))",
    "select distinct node_id from membership tablesample (50 percent)",
)
NESTED = {
    LocalEngine: "select {'n': [{'m': 1}]}, map {'k': [1, null]}",
    SparkEngine: "select named_struct('n', array(named_struct('m', 1))), map('k', array(1, null))",
}
"""The same values in the words of each engine."""


@pytest.fixture(params=["local", "spark"])
def make_engine(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Callable[[Path], SqlEngine]]:
    """Makes an engine of each kind; that of Spark has a session of its own, in the one Spark of all tests."""
    if request.param == "spark":
        yield lambda folder: SparkEngine(spark.newSession(), folder)
        return
    with ExitStack() as opened:
        yield lambda folder: opened.enter_context(closing(LocalEngine(folder)))


def test_every_kind_of_value_comes_back_plain(make_engine: Callable[[Path], SqlEngine], tables_dir: Path) -> None:
    """In a form that prints and that JSON knows, from either engine."""
    engine = make_engine(tables_dir)
    statement = (
        "select 1 a, 'x' b, date'2026-01-02' c, cast(1.5 as double) d, cast(2.5 as decimal(3, 1)) e, true f, null g, "
        "(select count(*) from heartbeats) h"
    )
    assert engine.run(statement) == (tuple("abcdefgh"), ((1, "x", "2026-01-02", 1.5, "2.5", True, None, 0),))
    assert engine.newest_seq() is None


def test_nested_values_come_back_plain(make_engine: Callable[[Path], SqlEngine], tables_dir: Path) -> None:
    """Structs, arrays of structs, maps and bytes, as they stand in the tables."""
    source = ("reason", "detail", "heartbeats", 3, 4, 5, "c1", b"\x00\xff", 2)
    row = ("dead-letters", 0, 7, 8, date(2026, 1, 2), *source)
    letters = TableWriter(tables_dir, DEAD_LETTERS_TABLE, "app")
    letters.append([dict(zip(DEAD_LETTERS_TABLE.columns, row, strict=True))], 1)
    engine = make_engine(tables_dir)
    assert engine.run("select raw, source_offset, day from dead_letters").rows == (("00ff", 4, "2026-01-02"),)
    assert engine.run(NESTED[type(engine)]).rows == (({"n": [{"m": 1}]}, {"k": [1, None]}),)


def test_what_may_write_is_refused(make_engine: Callable[[Path], SqlEngine], tables_dir: Path, tmp_path: Path) -> None:
    """If the engine knows the words at all. No file is changed, and the next query is answered."""
    engine = make_engine(tables_dir)
    before = contents(tmp_path)
    answers = {statement: refusal(engine, statement.format(folder=tmp_path)) for statement in WRITES}
    refused = re.compile(
        r"the statement failed: \S|[\w$ ]+ is refused: SELECT, |a STATEMENT has to be one statement, not "
    )
    assert {statement: answer for statement, answer in answers.items() if not refused.match(answer)} == {}
    assert contents(tmp_path) == before
    assert engine.run("select count(*) from decisions").rows == ((0,),)


def test_a_query_that_writes_is_refused_by_each_of_two_walls(
    tables_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB takes it for a SELECT: the nodes of its plan tell, and the database reaches no file."""
    (tmp_path / ".tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    with closing(LocalEngine(tables_dir)) as engine:
        first = {statement: refusal(engine, statement.format(folder=tmp_path)) for statement in WRITES_IN_QUERIES[:-1]}
        assert [answer for answer in first.values() if not re.match(r"\w+_QUERY_NODE is refused", answer)] == []
        monkeypatch.setattr(local, "_nodes", lambda _: set())
        second = {statement: refusal(engine, statement.format(folder=tmp_path)) for statement in WRITES_IN_QUERIES}
        assert [answer for answer in second.values() if not answer.startswith("the statement failed: ")] == []
        assert contents(tmp_path) == before


def refusal(engine: SqlEngine, statement: str) -> str:
    """How an engine refuses a statement; empty if it answers it."""
    try:
        engine.run(statement)
    except UserError as error:
        return str(error)
    return ""


def contents(folder: Path) -> dict[Path, str]:
    """A digest of each file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_what_reads_is_answered(make_engine: Callable[[Path], SqlEngine], tables_dir: Path) -> None:
    """The list of what reads leaves nothing usual out."""
    engine = make_engine(tables_dir)
    assert {statement: answer for statement in READS if (answer := refusal(engine, statement))} == {}


def test_a_wrong_name_is_answered_with_a_sentence(make_engine: Callable[[Path], SqlEngine], tables_dir: Path) -> None:
    """With the tables that there are, and without the plan or a picture of the place."""
    engine = make_engine(tables_dir)
    for statement in ("select no_such_column from broker_load", "select * from no_such_table"):
        with pytest.raises(UserError, match=r"^the statement failed: .*no_such_.*broker_load.*\)$"):
            engine.run(statement)


def test_files_beside_the_tables_are_not_read(
    make_engine: Callable[[Path], SqlEngine], tables_dir: Path, tmp_path: Path
) -> None:
    """A statement that comes from elsewhere reaches the tables, and nothing else of the machine or the network."""
    (tmp_path / "secret.csv").write_text("secret\n", encoding="utf-8")
    engine = make_engine(tables_dir)
    for statement in (
        "select * from read_csv('{folder}/secret.csv')",
        "select * from '{folder}/secret.csv'",
        "select * from csv.`{folder}/secret.csv`",
        "select * from text.`http://127.0.0.1:1/secret.csv`",
        "select * from delta.`{folder}/delta/decisions`",
        "select from_xml('<a/>', 'a int', map('rowValidationXSDPath', '{folder}/secret.csv'))",
    ):
        assert refusal(engine, statement.format(folder=tmp_path)).startswith("the statement failed: ")


def test_the_local_engine_sees_rows_as_soon_as_they_are_committed(tables_dir: Path) -> None:
    """Each command opens the tables anew; within one, each table stays as it was when it was first named."""
    with closing(LocalEngine(tables_dir)) as before:
        assert before.run("select count(*) from membership").rows == ((0,),)
        add_membership_rows(tables_dir, 3)
        assert before.run("select count(*) from membership").rows == ((0,),)
    with closing(LocalEngine(tables_dir)) as after:
        assert after.run("select count(*), min(day) = current_date from membership").rows == ((3, True),)
