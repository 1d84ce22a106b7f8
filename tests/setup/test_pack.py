"""pack.py: the same content gives the same archive, and nothing of the machine that made it is in there."""

import os
import zipfile
from pathlib import Path

import pytest

from controlplane.embedded import jars
from infra.spark import pack


def content(folder: Path, names: tuple[str, ...], changed_s: float) -> Path:
    """A folder with these files, written in this order, all of one time."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.name}\n", encoding="utf-8")
        os.utime(path, (changed_s, changed_s))
    return folder


def test_archives_of_the_same_files_are_alike(tmp_path: Path) -> None:
    """So a checksum tells whether two clusters run the same."""
    names = ("a/one.py", "jars/two.jar", "three.so")
    for number, ordered in enumerate((names, names[::-1])):
        written = content(tmp_path / str(number), ordered, 1e9 * (number + 1))
        pack.write_archive(written, tmp_path / f"{number}.zip")
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "0.zip") as archive:
        assert archive.namelist() == ["a/one.py", "jars/two.jar", "three.so"]
    assert not list(tmp_path.glob("*.partial"))


def test_no_archive_names_the_path_of_the_machine(tmp_path: Path) -> None:
    """What pip notes of a wheel that was built a moment ago is left out."""
    written = content(tmp_path / "content", ("a-1.dist-info/direct_url.json", "a.py"), 1e9)
    pack.write_archive(written, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == ["a.py"]


def test_what_cannot_be_fetched_ends_it_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library whose hash is not the list's, for example; a former archive stays."""
    wrong = tmp_path / "pipeline.txt"
    wrong.write_text(f"./wrong-1-py3-none-any.whl --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    (tmp_path / "wrong-1-py3-none-any.whl").write_bytes(b"")
    monkeypatch.setattr(pack, "_LIBRARIES", wrong)
    monkeypatch.setattr(jars, "spark_jars", lambda: (tmp_path / "a.jar",))
    archive = tmp_path / "former.zip"
    archive.write_bytes(b"former")
    monkeypatch.chdir(tmp_path)
    assert pack.main([str(archive)]) == 1
    assert "wrong-1-py3-none-any.whl" in capsys.readouterr().err
    assert archive.read_bytes() == b"former"
    assert pack.main([]) == 2
