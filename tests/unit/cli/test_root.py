"""Global options, errors and exit statuses of the command."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
import structlog

from controlplane import errors
from controlplane.bootstrap import connections
from controlplane.cli import main, root
from controlplane.cli.common.failures import ExitStatus, exit_status_of
from controlplane.cli.common.invocation import Invocation
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.snapshots import append, points_of, snapshot_records


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Invocation]:
    """The global options as a command got them; it then fails."""
    invocations: list[Invocation] = []

    def note(invocation: Invocation) -> None:
        invocations.append(invocation)
        raise errors.LogUnavailableError("nobody there")

    monkeypatch.setattr("controlplane.cli.table.commands.reading", note)
    return invocations


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cluster", "blue", "--bootstrap-servers=k:9", "table", "show"),
        ("table", "--cluster", "blue", "show", "--bootstrap-servers=k:9"),
        ("table", "show", "--by", "node", "--bootstrap-servers", "k:9", "--cluster=blue"),
    ],
)
def test_global_options_may_stand_anywhere(
    command: RunCommand, seen: list[Invocation], arguments: tuple[str, ...]
) -> None:
    """Nobody remembers whether an address comes before or after the command's name."""
    command(*arguments)
    assert (seen[0].cluster.name, seen[0].kafka.bootstrap_servers) == ("blue", "k:9")


@pytest.mark.parametrize("name", root.root.list_commands(click.Context(root.root)))
def test_each_command_is_where_it_is_looked_for(name: str) -> None:
    """A module that is imported late and was moved would be missed by no import."""
    found = root.root.get_command(click.Context(root.root), name)
    assert isinstance(found, click.Command)
    assert found.name == name


def test_a_command_imports_no_other() -> None:
    """An answer by SQL does not wait for what talks to Kafka."""
    program = "import sys; from controlplane.cli.root import run; run(['sql', '--help']); "
    program += "print([each for each in sys.modules if each.startswith('controlplane.cli.cluster.')])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_words_after_two_dashes_are_left_alone(command: RunCommand) -> None:
    """What a user marks as no option is none."""
    ran = command("namespaces", "create", "--wait", "0", "--", "--cluster")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "namespace '--cluster'" in ran.err


def test_environment_gives_global_options(
    command: RunCommand, seen: list[Invocation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers are configured by their environment."""
    monkeypatch.setenv("CONTROLPLANE_CLUSTER", "green")
    monkeypatch.setenv("CONTROLPLANE_BOOTSTRAP_SERVERS", "k:1")
    command("table", "show")
    assert (seen[0].cluster.name, seen[0].kafka.bootstrap_servers) == ("green", "k:1")


def test_addresses_come_from_the_data_folder(command: RunCommand, seen: list[Invocation], tmp_path: Path) -> None:
    """What ``controlplane up`` left is found without options, the demo's folder included."""
    demo = tmp_path / "demo"
    demo.mkdir()
    (demo / "addresses.json").write_text('{"bootstrap_servers": "k:7", "redis_url": "redis://r:8/0"}')
    command("table", "show", "--data-dir", str(tmp_path))
    assert (seen[0].kafka.bootstrap_servers, seen[0].redis_url, seen[0].home) == ("k:7", "redis://r:8/0", demo)


def test_own_addresses_come_before_those_of_the_demo(
    seen: list[Invocation], command: RunCommand, tmp_path: Path
) -> None:
    """A cluster started by hand is meant before a demo that was left running."""
    for folder, port in ((tmp_path, 1), (tmp_path / "demo", 2)):
        folder.mkdir(exist_ok=True)
        (folder / "addresses.json").write_text(f'{{"bootstrap_servers": "k:{port}", "redis_url": "redis://r"}}')
    command("table", "show", "--data-dir", str(tmp_path))
    assert seen[0].kafka.bootstrap_servers == "k:1"


def test_no_address_is_one_sentence(command: RunCommand, tmp_path: Path) -> None:
    """The commonest mistake of a newcomer: nothing was started."""
    ran = command("nodes", "list", "--data-dir", str(tmp_path))
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert ran.err.count("\n") == 1
    assert "--bootstrap-servers" in ran.err
    assert "controlplane up" in ran.err


def test_error_of_ours_has_no_traceback(command: RunCommand, seen: list[Invocation]) -> None:
    """A sentence, not a stack, for what is not a defect."""
    ran = command("table", "show")
    assert (ran.status, ran.err) == (ExitStatus.UNREACHABLE, "controlplane: nobody there\n")


def test_defects_keep_their_traceback(command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect that is turned into a sentence is never found."""

    def broken(_invocation: Invocation) -> None:
        raise KeyError("defect")

    monkeypatch.setattr("controlplane.cli.table.commands.reading", broken)
    with pytest.raises(KeyError):
        command("table", "show")


@pytest.mark.parametrize("arguments", [("nonsense",), ("table", "show", "--nonsense"), ("log", "show", "--last", "0")])
def test_wrong_calls_have_status_two(command: RunCommand, arguments: tuple[str, ...]) -> None:
    """Scripts tell a wrong call from a failure."""
    assert command(*arguments).status == ExitStatus.CALLED_WRONGLY


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.LogUnavailableError("x"), 3),
        (errors.LeaseStoreUnavailableError("x"), 3),
        (errors.FencedError("x"), 3),
        (errors.ConfigurationError("x"), 2),
        (errors.MissingExtraError("cli", "x"), 1),
        (errors.PrerequisiteError("x"), 1),
        (errors.LogContinuityError("x"), 1),
        (errors.InvalidInputError("x", "y"), 1),
    ],
)
def test_exit_status_follows_the_kind_of_error(error: errors.ControlPlaneError, status: int) -> None:
    """Supervisors restart on 3 and call somebody on 1 and 2."""
    assert exit_status_of(error) == status


def test_security_is_read_from_pairs_and_files(command: RunCommand, seen: list[Invocation], tmp_path: Path) -> None:
    """Secrets belong in a file, single settings on the command line; later ones win."""
    secrets = tmp_path / "kafka.properties"
    secrets.write_text("# TLS\nsecurity.protocol=SSL\n\nssl.key.password = a=b\n")
    command("table", "show", "--security", str(secrets), "--security", "security.protocol=SASL_SSL")
    assert seen[0].security == {"security.protocol": "SASL_SSL", "ssl.key.password": "a=b"}


def test_security_that_is_neither_is_refused(command: RunCommand) -> None:
    """A mistyped file name must not pass as no security at all."""
    ran = command("table", "show", "--security", "no-such-file")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "no-such-file" in ran.err


def test_schema_ids_are_read_from_pairs_and_files(command: RunCommand, seen: list[Invocation], tmp_path: Path) -> None:
    """A registry has an id for each schema, so a file of them is handed to every reader."""
    ids = tmp_path / "schema-ids"
    ids.write_text("# registry of the test\n17=Heartbeat.v1\n18 = LoadReport.v1\n")
    command("table", "show", "--bootstrap-servers", "k:1", "--schema-id", str(ids), "--schema-id", "18=NodeJoined.v1")
    assert seen[0].kafka.schema_ids == {17: "Heartbeat.v1", 18: "NodeJoined.v1"}


@pytest.mark.parametrize("text", ["x=Heartbeat.v1", "17=Heartbeat.v99", "-1=Heartbeat.v1", "no-such-file"])
def test_a_schema_id_that_cannot_be_meant_is_refused(command: RunCommand, text: str) -> None:
    """Found at the start, it is one sentence; found later, it is a dead letter for each record."""
    ran = command("table", "show", "--schema-id", text)
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert text.rpartition("=")[2] in ran.err


def test_no_command_has_an_option_of_the_root() -> None:
    """Global options are taken from anywhere in the line, so a command's own must not have their names."""
    taken = {name for parameter in root.root.params for name in parameter.opts}
    for path, command in _commands(root.root, ()):
        own = {name for parameter in command.params for name in parameter.opts}
        assert not own & taken, path


def test_every_command_and_option_is_explained() -> None:
    """The reference page is made of these sentences."""
    for path, command in _commands(root.root, ()):
        assert command.help, path
        for parameter in command.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (path, parameter.name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), False),
        (("--log-level", "info"), True),
        (("--verbose",), True),
    ],
)
def test_a_command_that_asks_says_only_what_matters(
    cluster_command: RunCommand, world: PublishedWorld, words: tuple[str, ...], said: bool
) -> None:
    """From where the log is read is nothing that the reader of an answer asked for; whoever looks for it can see it."""
    append(world.cluster, world.broker, snapshot_records(points_of(world.reader())[-1]))
    ran = cluster_command("policy", "show", *words)
    assert ran.status == ExitStatus.DONE
    assert ran.err.startswith("info: beginning from a snapshot (snapshot: ") is said
    assert (ran.err == "") is not said
    assert "{" not in ran.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("nods", "list"), "'nodes'"),
        (("nodes", "drian", "n1"), "'drain'"),
        (("nodes", "list", "--formt"), "'--format'"),
        (("nodes", "list", "--bootstrap-server", "k:1"), "'--bootstrap-servers'"),
        (("policy", "set", "replica_cuont=2"), "'replica_count'"),
        (("controller", "run", "--policy", "slot_cuont=2"), "'slot_count'"),
    ],
)
def test_mistyped_commands_and_options_are_answered_with_what_may_be_meant(
    command: RunCommand, words: tuple[str, ...], meant: str
) -> None:
    """A newcomer types them by heart."""
    ran = command(*words)
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "did you mean" in ran.err.lower()
    assert meant in ran.err


def _commands(group: click.Group, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append(((*path, name), command))
        if isinstance(command, click.Group):
            found.extend(_commands(command, (*path, name)))
    return found


def _log_a_warning() -> None:
    structlog.get_logger("test").warning("trouble", topic="t")


@pytest.mark.parametrize(
    ("path", "leaf"),
    [(path, leaf) for path, leaf in _commands(root.root, ()) if not isinstance(leaf, click.Group)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_only_services_write_log_lines_as_json(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], leaf: click.Command
) -> None:
    """Every other command's standard error is read by a person: a warning there is a sentence."""
    monkeypatch.setattr(leaf, "params", [])
    monkeypatch.setattr(leaf, "callback", _log_a_warning)
    ran = command(*path)
    service = path[-1] in {"up", "run"}
    assert ran.status == ExitStatus.DONE
    assert ran.err.startswith("{" if service else "warning: trouble (topic: t)"), ran


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The base install has the command's name and not its libraries."""
    monkeypatch.setattr(main, "NEEDED_PACKAGES", ("click", "no_such_package"))
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 1
    assert "controlplane[cli]" in capsys.readouterr().err


def test_reading_closes_its_reader(cluster_command: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading command leaves no client behind, also when the log does not answer."""
    closed = []

    class Silent:
        def partition_count(self, _topic: str) -> int:
            raise errors.LogUnavailableError("silent")

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr(connections, "open_reader", lambda *_: Silent())
    assert cluster_command("table", "show", "--connect-timeout", "0").status == ExitStatus.UNREACHABLE
    assert closed == [True]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("node", "run", "--node-id", ""), "node_id is empty"),
        (("node", "run", "--address", "http=h:99999"), "cannot join as described: port of address 'http' is 99999"),
        (("node", "run", "--address", "a=h:1", "--address", "a=h:2"), "'a' is given twice"),
        (("controller", "run", "--controller-id", ""), "controller_id is empty"),
        (("controller", "run", "--lease-duration-ms", "-4"), "duration_ms is -4"),
        (("controller", "run", "--policy", "slot_policy=mine"), "--policy: slot policy 'mine' is not known here"),
        (
            ("controller", "run", "--policy", "slot_policy_options.a=1"),
            "slot_policy_options: a: minimal has no options",
        ),
        (("controller", "run", "--slot-policy-file", "no.py"), "no.py: there is no such Python file"),
        (("table", "show", "--bootstrap-servers", "k:99999"), "'99999' is not a port"),
    ],
)
def test_unusable_values_are_one_sentence_and_status_two(
    cluster_command: RunCommand, world: PublishedWorld, arguments: tuple[str, ...], sentence: str
) -> None:
    """An empty name, as an unset variable in a script gives it, must not become the host's name unasked."""
    ran = cluster_command(*arguments)
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert sentence in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("words", ["table show", "topics verify", "leader history"])
def test_a_wrong_security_setting_is_a_wrong_call(command: RunCommand, words: str) -> None:
    """Named at once, without a traceback, and without waiting for Kafka."""
    ran = command("--bootstrap-servers", "127.0.0.1:1", "--security", "security.protocol=SLL", *words.split())
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert ran.err.startswith("controlplane: Kafka's client cannot work with the security settings: Invalid value")
    assert '"security.protocol"' in ran.err
