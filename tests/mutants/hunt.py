"""Looks for a mutant with the recorded answers of its rule, then with the tests that it names."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final, NamedTuple

import pytest

from tests.conformance.recorded import recorded
from tests.mutants.mutant import ROOT, Mutant

_OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", "pyproject.toml")


class Catch(NamedTuple):
    """How a mutant was found.

    Attributes:
        mutant: which one.
        found_by: operation and id of the first case that fails, or the name of the first test; empty if it survived.
    """

    mutant: Mutant
    found_by: str


def hunt_all(mutants: Sequence[Mutant], jobs: int) -> Iterator[Catch]:
    """The catches as they come, each from a process of its own: a module is loaded once in a process."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        hunts: list[Future[Catch]] = [pool.submit(hunt, mutant) for mutant in mutants]
        for done in as_completed(hunts):
            yield done.result()


def hunt(mutant: Mutant) -> Catch:
    """Compare all recorded answers of the rule, then run the tests; stop at the first that shows the bug.

    Raises:
        RuntimeError: the module has been loaded in this process, or the tests do not run.
    """
    mutant.put_in()
    return Catch(mutant, _by_answers(mutant) or _by_tests(mutant))


def _by_answers(mutant: Mutant) -> str:
    if not mutant.bug.operations:
        return ""
    from tests.conformance.__main__ import RUNNERS, difference  # noqa: PLC0415 - it loads the rules

    for operation in mutant.bug.operations:
        for case in recorded(mutant.system)[operation]:
            if difference(RUNNERS[mutant.system], case) is not None:
                return f"{operation} {case['id']}"
    return ""


def _by_tests(mutant: Mutant) -> str:
    if not mutant.bug.tests:
        return ""
    first = _FirstFailure()
    arguments = (*_OPTIONS, *(f"tests/{each}" for each in mutant.bug.tests))
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as printed:
        status = pytest.main(list(arguments), plugins=[first])
    if status != pytest.ExitCode.OK and not first.name:
        raise RuntimeError(f"the tests of mutant {mutant.bug.words!r} do not run:\n{printed.getvalue()}")
    return first.name


class _FirstFailure:
    """A plugin that keeps the name of the first test that fails, or of the file that cannot be collected."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._keep(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(report)

    def _keep(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.removeprefix("tests/")
