"""``controlplane profiles``: which rules for bundles a profile chooses, and with which values."""

from collections.abc import Sequence
from pathlib import Path

import click

from controlplane.bootstrap.bundle_rules import load_bundle_rules
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_result, print_rows
from controlplane.cli.common.pairs_option import pairs_of
from controlplane.cli.common.suggestions import suggestion
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.registry import Registry
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT, PROFILES
from controlplane.core.bundles.settings.knob_texts import knob_kinds, knob_values
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import ConfigurationError
from controlplane.inspection import profiles as inspected
from controlplane.inspection.records import Record, Records

_LIST_COLUMNS = ("name", "based_on", "shedder", "placement", "description")
_VALUE_COLUMNS = ("name", "value", "base_value", "notes")
_PROPERTIES = (
    "profile",
    "description",
    "based_on",
    "manager",
    "shedder",
    "placement",
    "node_filters",
    "split_algorithm",
)


@click.group()
def profiles() -> None:
    """Named sets of settings of the rules for bundles: like a version of Pulsar, or our own way."""


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
    help="A knob's value, or a file of such lines as broker.conf has them; repeatable. Lists are written with commas.",
)
@click.option(
    "--rule-file",
    "rule_files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE.py",
    help="A Python file with rules for bundles of your own, which the knobs may then name; repeatable.",
)
@click.option("--changed", is_flag=True, help="Only the values that differ from those of the profile's base.")
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

    The base of a profile without one is the defaults of our own policy. Nothing is sent, and no cluster is needed. A
    knob or a rule that is unknown is refused, and so are rules that do not go together and values that a rule refuses.
    """
    if name not in PROFILES and suggestion(name, PROFILES):
        raise ConfigurationError(f"profile {name!r} is unknown: {suggestion(name, PROFILES)}")
    registry = load_bundle_rules(rule_files)
    given = _given(settings, registry)
    composition = compose(name, given, registry)
    chosen_rules(composition)
    found = inspected.profile_record(composition, registry, given)
    if changed:
        found |= {each: _differing(found[each]) for each in ("knobs", "switches")}
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


def _given(settings: Sequence[str], registry: Registry) -> dict[str, object]:
    kinds = {knob: kind for part in registry.parts for knob, kind in knob_kinds(part.settings())}
    texts: dict[str, str] = {}
    for knob, text in pairs_of("--set", settings, "KNOB=VALUE"):
        if knob in texts:
            raise ConfigurationError(f"--set: {knob} is given twice")
        similar = suggestion(knob, [*kinds, *KNOBS_WITHOUT_EFFECT])
        if knob not in kinds and knob not in KNOBS_WITHOUT_EFFECT and similar:
            raise ConfigurationError(f"--set: there is no knob {knob!r}: {similar}")
        texts[knob] = text
    return knob_values(texts, kinds)


def _rows(values: object) -> Records:
    return [_row(each) for each in values] if isinstance(values, list) else []


def _row(record: Record) -> Record:
    """The row without a base value that is the same."""
    return record if record["differs"] else {**record, "base_value": None}


def _differing(values: object) -> list[CanonicalValue]:
    return [each for each in values if each["differs"]] if isinstance(values, list) else []
