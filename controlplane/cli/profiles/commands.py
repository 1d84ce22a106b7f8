"""``controlplane profiles``: which rules for bundles a profile chooses, and with which values."""

from collections.abc import Sequence
from pathlib import Path

import click

from controlplane.bootstrap.bundle_rules import load_bundle_rules
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_result, print_rows
from controlplane.cli.common.suggestions import suggestion
from controlplane.cli.profiles.knob_options import SkippedLine, given_knobs
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import PROFILES
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import ConfigurationError
from controlplane.inspection import profiles as inspected
from controlplane.inspection.records import Record, Records

_LIST_COLUMNS = ("name", "based_on", "shedder", "placement", "description")
_VALUE_COLUMNS = ("name", "value", "base_value", "notes")
_PROPERTIES = (
    "profile",
    "description",
    "executed_by",
    "based_on",
    "manager",
    "shedder",
    "placement",
    "node_filters",
    "split_algorithm",
)


@click.group()
def profiles() -> None:
    """Named sets of settings of the rules for bundles: like a version of Pulsar, or our own way.

    Nothing that runs today reads a profile.
    """


@profiles.command("list")
@format_option
def list_profiles(output_format: OutputFormat) -> None:
    """Print the profiles with their rules for shedding and for placement."""
    print_result(inspected.profile_rows(), _LIST_COLUMNS, output_format)


@profiles.command("show")
@click.argument("name")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KNOB=VALUE|FILE",
    help="A knob's value, or a file of such lines, such as a whole broker.conf; repeatable. Lines on anything else are "
    "skipped and named. A single value counts before that of a file. Lists are written with commas.",
)
@click.option(
    "--rule-file",
    "rule_files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE.py",
    help="A Python file with rules for bundles of your own, which the knobs may then name; repeatable.",
)
@click.option(
    "--changed",
    is_flag=True,
    help="Only the values that differ from those of the profile's base, and those that are assumed.",
)
@format_option
def show(
    *,
    name: str,
    settings: tuple[str, ...],
    rule_files: tuple[Path, ...],
    changed: bool,
    output_format: OutputFormat,
) -> None:
    """Print the rules of the profile NAME and the value of every knob and switch, beside those of its base.

    Nothing that runs today reads a profile: no controller, agent or pipeline takes one, so no value changes what a
    cluster does. The command shows what the rules would decide by once placement and shedding by load are executed.
    Until then a program reads a profile that calls the rules itself, through controlplane.bundle_rules.

    The base of a profile without one is the defaults of our own policy. Nothing is sent, and no cluster is needed. A
    knob or a rule that is unknown is refused, and so are rules that do not go together and values that a rule refuses.
    Our own policy refuses values with which a rule would act always or never. Under a profile of Pulsar they are
    accepted as in Pulsar, and marked.
    """
    if name not in PROFILES and suggestion(name, PROFILES):
        raise ConfigurationError(f"profile {name!r} is unknown: {suggestion(name, PROFILES)}")
    registry = load_bundle_rules(rule_files)
    given = given_knobs(settings, registry)
    with given.locating():
        composition = compose(name, given.values, registry)
        chosen_rules(composition)
    _say_what_was_skipped(given.skipped)
    found = inspected.profile_record(composition, registry, given.values)
    found["skipped"] = [{"file": each.file, "line": each.number, "name": each.name} for each in given.skipped]
    if changed:
        found |= {each: _changed(found[each]) for each in ("knobs", "switches")}
    if output_format is OutputFormat.JSON:
        print_json(found)
        return
    print_rows([{"property": each, "value": found[each]} for each in _PROPERTIES], ("property", "value"))
    for each in ("knobs", "switches"):
        click.echo()
        rows = _rows(found[each])
        if rows:
            print_rows(rows, _VALUE_COLUMNS, title=f"{each}:")
        else:
            click.echo(f"{each}: none differs")


def _say_what_was_skipped(lines: Sequence[SkippedLine]) -> None:
    """Name the lines of files that were not taken, on standard error: those first that may be mistyped knobs."""
    for line in lines:
        if line.meant:
            click.echo(f"{line.file}, line {line.number}: no knob {line.name!r}; is it {line.meant!r}?", err=True)
    others = [line for line in lines if not line.meant]
    for file in dict.fromkeys(line.file for line in others):
        names = sorted({line.name for line in others if line.file == file})
        click.echo(f"{file}: {len(names):,} settings are no knobs of these rules: {', '.join(names)}", err=True)


def _rows(values: object) -> Records:
    return [_row(each) for each in values] if isinstance(values, list) else []


def _row(record: Record) -> Record:
    """The row without a base value that is the same."""
    return record if record["differs"] else {**record, "base_value": None}


def _changed(values: object) -> list[CanonicalValue]:
    """Those that differ, and those whose values are assumed, which may differ from the original's."""
    rows = values if isinstance(values, list) else []
    return [each for each in rows if each["differs"] or inspected.ASSUMED in each["notes"]]
