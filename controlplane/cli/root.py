"""The root of the command: global options, which may be anywhere in the line, and the handling of errors."""

import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, cast

import click

from controlplane.cli.common.failures import ExitStatus, exit_status_of, sentence_of
from controlplane.cli.common.invocation import DEFAULT_CLUSTER, DEFAULT_DATA_DIR, Invocation
from controlplane.cli.common.logging_setup import LOG_LEVELS, LogFormat, configure_logging
from controlplane.cli.common.pairs_option import pairs_of
from controlplane.cli.common.secrets import refuse_secrets_in_sight
from controlplane.codec.framing import framing_with
from controlplane.config import ClusterConfig
from controlplane.errors import ConfigurationError, ControlPlaneError
from controlplane.version import __version__

_MODULES: Final[Mapping[str, str]] = {
    "acls": "cluster.acls",
    "audit": "log.audit",
    "bundles": "cluster.bundles",
    "controller": "controller.commands",
    "demo": "demo.command",
    "feature-level": "cluster.feature_level",
    "intents": "cluster.intents",
    "leader": "leader.commands",
    "log": "log.commands",
    "namespaces": "cluster.namespaces",
    "node": "nodes.node",
    "nodes": "nodes.commands",
    "pipeline": "pipeline.commands",
    "policy": "policy.commands",
    "profiles": "profiles.commands",
    "ring": "cluster.ring",
    "snapshot": "log.snapshots",
    "sql": "pipeline.sql",
    "table": "table.commands",
    "tenants": "cluster.tenants",
    "topics": "cluster.topics",
    "up": "cluster.up",
}
"""Each command's module below ``controlplane.cli``, where it is an attribute of its name. It is imported when the
command is called: all of them together take a second, of which ``controlplane sql`` needs a third."""
_SERVICES: Final = frozenset({"controller", "node", "pipeline", "up"})
"""The commands that run until they are stopped. Their log lines are their output."""
_CLICK_WORDS: Final = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}
"""Replacements for messages of click that name its types."""


class RootGroup(click.Group):
    """A group whose own options may also be written after the command's name, and whose commands are imported late."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands, sorted."""
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command of a name; None if there is none."""
        if cmd_name not in _MODULES:
            return None
        found = getattr(import_module(f"{__package__}.{_MODULES[cmd_name]}"), cmd_name.replace("-", "_"))
        return cast("click.Command", found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a mistyped one click would suggest only what was imported."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the global options to the front, then parse as usual."""
        return super().parse_args(ctx, self._with_global_options_first(args))

    def _with_global_options_first(self, args: Sequence[str]) -> list[str]:
        takes_value = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        flags = {"--verbose"}
        front: list[str] = []
        rest: list[str] = []
        remaining = iter(args)
        for argument in remaining:
            if argument == "--":
                rest.extend([argument, *remaining])
                break
            name, equals, _ = argument.partition("=")
            if argument in flags:
                front.append(argument)
                continue
            if name not in takes_value:
                rest.append(argument)
                continue
            front.append(argument)
            if not equals:
                front.extend([value for value in [next(remaining, None)] if value is not None])
        return [*front, *rest]


def _schema_ids(texts: Sequence[str]) -> dict[int, str]:
    """``--schema-id`` values, checked here so that a wrong one is an error at the start and not for each record."""
    named = dict(pairs_of("--schema-id", texts))
    wrong = [text for text in named if not (text.isascii() and text.isdigit())]
    if wrong:
        raise ConfigurationError(f"--schema-id {wrong[0]}={named[wrong[0]]}: an id is a whole number, as in 17=Tick.v1")
    schema_ids = {int(text): name for text, name in named.items()}
    framing_with(schema_ids)
    return schema_ids


@click.group(
    cls=RootGroup,
    context_settings={"auto_envvar_prefix": "CONTROLPLANE", "max_content_width": 120, "show_default": True},
)
@click.option("--cluster", default=DEFAULT_CLUSTER, help="The name of the cluster, which is the prefix of its topics.")
@click.option(
    "--bootstrap-servers",
    metavar="HOST:PORT,...",
    help="Kafka's addresses.  [default: those that 'controlplane up' left in --data-dir]",
)
@click.option(
    "--redis-url",
    metavar="URL",
    help="Redis. Without it: what 'controlplane up' left in --data-dir. With a password only in the environment, as "
    "CONTROLPLANE_REDIS_URL.",
)
@click.option(
    "--security",
    multiple=True,
    metavar="KEY=VALUE|FILE",
    help="A librdkafka setting for TLS or SASL, or a file of such lines; repeatable. Passwords only in a file.",
)
@click.option(
    "--as",
    "principal",
    metavar="NAME",
    help="The principal of this command's intents.  [default: sasl.username of --security, or the system's user]",
)
@click.option(
    "--schema-id",
    "schema_ids",
    multiple=True,
    metavar="ID=RECORD.vN|FILE",
    help="The schema of an id of your schema registry, such as 17=Heartbeat.v1, or a file of such lines; repeatable. "
    "Nodes may then write inputs in Confluent's framing.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_DATA_DIR,
    help="The folder of the local services: their addresses, data and logs.",
)
@click.option(
    "--connect-timeout",
    "connect_timeout_s",
    type=click.FloatRange(min=0),
    default=30.0,
    metavar="SECONDS",
    help="How long to try to reach Kafka and Redis at the start.",
)
@click.option("--verbose", is_flag=True, help="Log progress on standard error, as with --log-level info.")
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS),
    show_default="info for controller, node, pipeline and up, warning for the others",
    help="The least level that is logged.",
)
@click.option(
    "--log-format",
    type=click.Choice(LogFormat, case_sensitive=False),
    default=LogFormat.AUTO,
    show_default="auto",
    help="Log lines on standard error: JSON, or text for a console. With auto, controller, node, pipeline and up "
    "choose by whether it is a terminal, and the others write plain sentences.",
)
@click.version_option(__version__, prog_name="controlplane")
@click.pass_context
def root(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    cluster: str,
    bootstrap_servers: str | None,
    redis_url: str | None,
    security: tuple[str, ...],
    principal: str | None,
    schema_ids: tuple[str, ...],
    data_dir: Path,
    connect_timeout_s: float,
    verbose: bool,
    log_level: str | None,
    log_format: LogFormat,
) -> None:
    """An event-sourced control plane over Kafka: it decides which node owns which slot.

    Every option can also be given in the environment: CONTROLPLANE_CLUSTER, CONTROLPLANE_BOOTSTRAP_SERVERS, and for
    a command's own options CONTROLPLANE_<COMMAND>_<OPTION>, such as CONTROLPLANE_CONTROLLER_RUN_METRICS_PORT.

    Exit status: 0 done, 1 failed, 2 usage error, 3 Kafka, Redis or a leader out of reach, or a wait that timed out,
    130 interrupted.
    """
    in_sight = [text for text in security if "=" in text]
    refuse_secrets_in_sight(context, dict(pairs_of("--security", in_sight)), redis_url)
    context.obj = Invocation(
        cluster=ClusterConfig(cluster),
        given_bootstrap_servers=bootstrap_servers,
        given_redis_url=redis_url,
        security=dict(pairs_of("--security", security)),
        schema_ids=_schema_ids(schema_ids),
        data_dir=data_dir,
        connect_timeout_s=connect_timeout_s,
        given_principal=principal,
    )
    of_service = context.invoked_subcommand in _SERVICES
    level = log_level or ("info" if of_service or verbose else "warning")
    configure_logging(cluster, level, log_format, of_service=of_service)


def run(arguments: Sequence[str]) -> ExitStatus:
    """Run one command line. An error of this package becomes one sentence on standard error and an exit status.

    Other exceptions are defects and are raised with their traceback.
    """
    try:
        outcome = root.main(args=list(arguments), prog_name="controlplane", standalone_mode=False)
    except click.exceptions.Exit as end:
        return ExitStatus(end.exit_code)
    except click.ClickException as error:
        shown = io.StringIO()
        (_with_suggestions(error) if isinstance(error, click.NoSuchOption) else error).show(file=shown)
        text = shown.getvalue()
        for theirs, ours in _CLICK_WORDS.items():
            text = text.replace(theirs, ours)
        click.echo(text, err=True, nl=False)
        return ExitStatus(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return ExitStatus.INTERRUPTED
    except ControlPlaneError as error:
        click.echo(f"controlplane: {sentence_of(error)}", err=True)
        return exit_status_of(error)
    return outcome if isinstance(outcome, ExitStatus) else ExitStatus.DONE


def _with_suggestions(error: click.NoSuchOption) -> click.NoSuchOption:
    """The error with similar options: those of the command, and the global ones, which are valid anywhere."""
    commands = [root, *([error.ctx.command] if error.ctx else [])]
    known = {name for command in commands for option in command.params for name in option.opts}
    return click.NoSuchOption(error.option_name, possibilities=sorted(known), ctx=error.ctx)
