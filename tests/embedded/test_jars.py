"""The jar cache: fetched once, whole or not at all, by one process at a time. No network: a stand-in fetches."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.embedded import jars
from controlplane.embedded.jars import MARKER_NAME, JarCache, JarSet
from controlplane.errors import PrerequisiteError
from controlplane.resources import resource_path

RESOLVED = (
    "kafka-clients-3.9.1.jar",
    "delta-spark_4.1_2.13-4.4.0.jar",
    "jackson-core-2.13.5.jar",
    "scala-library-2.13.17.jar",
    "hadoop-client-runtime-3.4.2.jar",
    "netty-all-4.1.0.jar",
    "RoaringBitmap-0.9.25.jar",
)


class FakeIvy:
    """Writes the resolved set and counts how often; `fails` makes it stop half-way."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = False

    def __call__(
        self, ivy_xml: Path, jar_set: JarSet, into: Path, ivy_cache: Path, report: Callable[[str], None]
    ) -> None:
        """Fill the folder as Ivy does."""
        self.calls.append(jar_set)
        for name in RESOLVED[:2] if self.fails else RESOLVED:
            (into / name).write_bytes(name.encode())
        if self.fails:
            raise PrerequisiteError("the network went away")


@pytest.fixture
def ivy() -> FakeIvy:
    """What stands in for Ivy."""
    return FakeIvy()


@pytest.fixture
def make_cache(tmp_path: Path, ivy: FakeIvy) -> Callable[[], JarCache]:
    """Makes caches on the same folder, as new processes would."""
    ivy_xml = tmp_path / "ivy.xml"
    ivy_xml.write_text("<ivy-module/>", encoding="utf-8")
    return lambda: JarCache(tmp_path / "cache", ivy_xml, fetch=ivy, report=lambda line: None)


def test_jars_are_fetched_once(make_cache: Callable[[], JarCache], ivy: FakeIvy) -> None:
    """A second start must not need the network."""
    first = make_cache().jars("broker")
    assert make_cache().jars("broker") == first
    assert ivy.calls == ["broker"]
    assert [jar.name for jar in first] == sorted(RESOLVED)
    assert all(jar.read_bytes() == jar.name.encode() for jar in first)


def test_spark_set_leaves_out_what_pyspark_carries(make_cache: Callable[[], JarCache]) -> None:
    """Older jackson, scala, hadoop or netty jars beside Spark's own break it at run time, far from the cause."""
    kept = make_cache().jars("spark")
    assert [jar.name for jar in kept] == ["delta-spark_4.1_2.13-4.4.0.jar", "kafka-clients-3.9.1.jar"]
    assert sorted(path.name for path in kept[0].parent.glob("*.jar")) == [jar.name for jar in kept]


def test_interrupted_fetch_is_done_again(make_cache: Callable[[], JarCache], ivy: FakeIvy) -> None:
    """Half a set of jars must never be used: a broker would fail with a missing class."""
    ivy.fails = True
    with pytest.raises(PrerequisiteError, match="network went away"):
        make_cache().jars("broker")
    ivy.fails = False
    assert len(make_cache().jars("broker")) == len(RESOLVED)
    assert ivy.calls == ["broker", "broker"]


@pytest.mark.parametrize("damage", ["marker removed", "marker unreadable", "jar removed", "jar cut"])
def test_damaged_folder_is_fetched_again(make_cache: Callable[[], JarCache], ivy: FakeIvy, damage: str) -> None:
    """People clean caches by hand, and disks fill up: what is not as the marker says does not count."""
    jar = make_cache().jars("broker")[0]
    match damage:
        case "marker removed":
            (jar.parent / MARKER_NAME).unlink()
        case "marker unreadable":
            (jar.parent / MARKER_NAME).write_text("{", encoding="utf-8")
        case "jar removed":
            jar.unlink()
        case _:
            jar.write_bytes(b"")
    assert make_cache().jars("broker")[0].read_bytes() == jar.name.encode()
    assert ivy.calls == ["broker", "broker"]


def test_changed_ivy_file_gets_a_folder_of_its_own(
    make_cache: Callable[[], JarCache], ivy: FakeIvy, tmp_path: Path
) -> None:
    """After an upgrade the old jars must not be taken for the new ones."""
    before = make_cache().jars("broker")
    (tmp_path / "ivy.xml").write_text("<ivy-module version='2.0'/>", encoding="utf-8")
    after = make_cache().jars("broker")
    assert after[0].parent != before[0].parent
    assert len(ivy.calls) == 2


def test_fetch_that_brings_nothing_is_an_error(tmp_path: Path) -> None:
    """An empty class path would fail later and tell nobody why."""
    cache = JarCache(
        tmp_path, resource_path("infra/jvm/ivy.xml"), fetch=lambda *arguments: None, report=lambda line: None
    )
    with pytest.raises(PrerequisiteError, match="brought none"):
        cache.jars("spark")


def _fetch_slowly(folder: Path, ivy_xml: Path, calls: Path) -> None:
    def fetch(ivy_xml: Path, jar_set: JarSet, into: Path, ivy_cache: Path, report: Callable[[str], None]) -> None:
        with calls.open("a", encoding="utf-8") as file:
            file.write("called\n")
        for name in RESOLVED * 20:
            (into / name).write_bytes(b"x" * 200_000)

    assert len(JarCache(folder, ivy_xml, fetch=fetch, report=lambda line: None).jars("broker")) == len(RESOLVED)


def test_two_processes_fetch_once(tmp_path: Path) -> None:
    """Two commands started at once share one download, and neither sees the other's unfinished folder."""
    ivy_xml = tmp_path / "ivy.xml"
    ivy_xml.write_text("<ivy-module/>", encoding="utf-8")
    calls = tmp_path / "calls"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_fetch_slowly, args=(tmp_path / "cache", ivy_xml, calls)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0] * 4
    assert calls.read_text(encoding="utf-8") == "called\n"


def test_unknown_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing mistake must not look like success."""
    assert jars.main(["sparc"]) == 2
    assert "unknown jar set 'sparc': use broker or spark" in capsys.readouterr().err


def test_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Machines with a small or shared home need the cache elsewhere."""
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path))
    assert jars.cache_folder() == tmp_path
    monkeypatch.delenv(jars.CACHE_VARIABLE)
    assert jars.cache_folder() == Path.home() / ".cache" / "controlplane"
