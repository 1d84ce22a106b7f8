"""``controlplane demo``: runs and measures the steps. The exit status is 0 only if every step passed its checks."""

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import (
    DEFAULT_CLUSTER,
    DEFAULT_DATA_DIR,
    DEMO_FOLDER,
    Invocation,
    pass_invocation,
)
from controlplane.errors import ControlPlaneError, MissingExtraError

if TYPE_CHECKING:
    from controlplane.cli.demo.stage import Stage
    from controlplane.cli.demo.summary import QueryResult

REPORT = "report.json"


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave everything running at the end.")
@click.option("--stop", "stop_kept", is_flag=True, help="Only end what an earlier --keep left running.")
@pass_invocation
def demo(invocation: Invocation, *, keep: bool, stop_kept: bool) -> ExitStatus:
    """Run a whole cluster on this machine: start it, cause failures, and measure it.

    Kafka, Valkey, two controllers, seven nodes that serve keys and topics, the pipeline and traffic run as processes of
    their own, in demo below --data-dir. The exit status is 0 only if every step had the expected result.
    """
    with _needs_embedded():
        from controlplane.cli.demo.processes import stop_held
        from controlplane.cli.demo.stage import Stage

    if stop_kept:
        home = invocation.data_dir / DEMO_FOLDER
        stopped = stop_held(home)
        click.echo(f"everything in {home} is stopped" if stopped else f"nothing runs in {home}")
        return ExitStatus.DONE
    stage = Stage(invocation)
    with _interrupted_by_signals():
        try:
            status = _play(stage)
            if keep and status is ExitStatus.DONE:
                stage.keep()
                _say_how_to_look(invocation, stage)
                return status
        finally:
            if not stage.kept:
                click.echo("stopping every process ...", err=True)
                stage.stop()
    click.echo(f"logs, Kafka's data and the Delta tables are in {stage.home}")
    return status


def _play(stage: "Stage") -> ExitStatus:
    """Run all steps and the closing SQL. Print what was measured, also after a failure."""
    from controlplane.cli.demo.cast import Cast
    from controlplane.cli.demo.play import Play
    from controlplane.cli.demo.screen import open_screen
    from controlplane.cli.demo.summary import print_summary, write_report

    queries: list[QueryResult] = []
    failure: str | None = None
    play = Play(Cast(stage))
    try:
        with open_screen(play.picture) as screen:
            play.say = screen.say
            try:
                play.run()
                queries = play.ask_delta()
            except ControlPlaneError as error:
                failure = str(error)
    finally:
        play.close()
    print_summary(play.steps, queries, play.elapsed_s)
    write_report(stage.home / REPORT, play.steps, queries, failure)
    if failure is None:
        click.echo("Every step did what it should.")
        return ExitStatus.DONE
    click.echo(f"controlplane demo: {failure}", err=True)
    return ExitStatus.FAILED


def _say_how_to_look(invocation: Invocation, stage: "Stage") -> None:
    """The commands to inspect what is left running, as they have to be typed here."""
    options = ""
    if stage.home.parent != DEFAULT_DATA_DIR.absolute():
        options += f" --data-dir {invocation.data_dir}"
    if invocation.cluster.name != DEFAULT_CLUSTER:
        options += f" --cluster {invocation.cluster.name}"
    command = command_here()
    click.echo(f"Everything keeps running in {stage.home}.")
    click.echo(f"Kafka: {stage.kafka.bootstrap_servers}, cluster: {invocation.cluster.name}. Look at it:")
    for words in ("table show --by node", "nodes list", "log show --last 20", 'sql "select * from broker_load"'):
        click.echo(f"  {command}{options} {words}")
    click.echo(f"Stop it:\n  {command}{options} demo --stop")


def command_here() -> str:
    """The call of this command from the present folder, whether its environment is activated or not.

    The search path cannot be used for that, because ``make demo`` has its own.
    """
    script = Path(sys.executable).parent / "controlplane"
    if not script.exists():
        return f"{sys.executable} -m controlplane.cli"
    with suppress(ValueError):
        return str(script.relative_to(Path.cwd()))
    return "controlplane" if shutil.which("controlplane") == str(script) else str(script)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Make SIGTERM and a closed terminal end the demo like Ctrl-C: every process is stopped."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextmanager
def _needs_embedded() -> Iterator[None]:
    """Name the extra to install if an import inside the block does not find psutil."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psutil":
            raise
        raise MissingExtraError("embedded", "the demo") from error
