"""What documentation and docstrings name is there: pages outlive the files that they speak of."""

from tests.architecture import references, tidy


def test_paths_in_backticks_exist() -> None:
    """Whoever follows the map finds the room."""
    texts = {path: path.read_text(encoding="utf-8") for path in tidy.text_files()}
    offenders = {str(path): missing for path, text in texts.items() if (missing := references.missing_paths(text))}
    assert offenders == {}


def test_links_between_pages_lead_somewhere() -> None:
    """In every Markdown page, as whoever reads it in a browser follows them."""
    pages = [path for path in tidy.text_files() if path.suffix == ".md"]
    offenders = {
        str(page): broken
        for page in pages
        if (broken := references.broken_links(page, page.read_text(encoding="utf-8")))
    }
    assert len(pages) > len(list((tidy.ROOT / "docs").glob("*/*.md")))
    assert offenders == {}


def test_names_in_docstrings_exist() -> None:
    """A renamed class leaves its old name behind in prose, where no type checker looks."""
    sources = {path: path.read_text(encoding="utf-8") for path in tidy.python_files()}
    offenders = {str(path): unknown for path, text in sources.items() if (unknown := references.unknown_names(text))}
    assert offenders == {}


def test_what_is_not_there_is_found() -> None:
    """Each check, on what it is for and on its neighbours."""
    gone = "docs/gone.md"
    assert references.missing_paths(f"`docs/how-to/`, `{gone}` and docs/none") == [gone]
    page = tidy.ROOT / "docs" / "reference" / "glossary.md"
    links = "[a](states.md#node) [b](../nothing.md) [c](https://example.org/x) [d](#there)"
    assert references.broken_links(page, links) == ["../nothing.md"]
    source = """
class Here:
    there: int
    def method(self):
        '''{role}'''
"""
    known = ("Here", "Here.there", "method", "threading.Event", "controlplane.ports.LogReader.poll", "tests.simulation")
    unknown = ("Gone", "Here.gone", "controlplane.ports.LogReader.gone", "controlplane.ports.gone", "tests.gone")
    for names, expected in ((known, False), (unknown, True)):
        for name in names:
            found = references.unknown_names(source.replace("{role}", f":class:`{name}`"))
            assert found == [name] * expected, name
