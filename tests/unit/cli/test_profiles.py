"""``profiles list`` and ``profiles show``: what an operator sees of the settings, without any cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT, PROFILES, UNREAD_KNOBS
from tests.helpers.commands import RunCommand
from tests.helpers.readme import ROOT

EXAMPLE = str(ROOT / "examples" / "bundle_rules" / "busiest_first.py")


def shown(command: RunCommand, *words: str) -> dict[str, Any]:
    """The document of ``profiles show``."""
    ran = command("profiles", "show", *words, "--format", "json")
    assert ran.status == ExitStatus.DONE, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows by their names, each of which is there once."""
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def test_the_list_has_every_profile(command: RunCommand) -> None:
    """With its rules."""
    ran = command("profiles", "list", "--format", "json")
    rows = by_name(json.loads(ran.out))
    assert list(rows) == list(PROFILES)
    assert (rows["pulsar-4.x-avg"]["shedder"], rows["pulsar-4.x-avg"]["placement"]) == ("AvgShedder", "AvgShedder")
    assert "pulsar-4.2-extensible  pulsar-4.2-modular  TransferShedder" in command("profiles", "list").out


@pytest.mark.parametrize("name", PROFILES)
def test_every_knob_and_what_differs_is_shown(command: RunCommand, name: str) -> None:
    """All knobs once, and those that differ are those that differ."""
    found = shown(command, name)
    knobs = by_name(found["knobs"])
    assert knobs.keys() == compose(name).knobs().keys()
    base = PROFILES[name].based_on
    if base is not None:
        before = compose(base).knobs()
        differing = {knob for knob, value in compose(name).knobs().items() if value != before[knob]}
        assert {knob for knob, row in knobs.items() if row["differs"]} == differing
    idle = {knob for knob, row in knobs.items() if "no effect here" in row["notes"]}
    assert idle == KNOBS_WITHOUT_EFFECT.keys() | UNREAD_KNOBS
    assert {knob for knob, row in knobs.items() if "assumed" in row["notes"]} == {*PROFILES[name].assumed}
    changed = shown(command, name, "--changed")
    for each in ("knobs", "switches"):
        assert changed[each] == [row for row in found[each] if row["differs"] or "assumed" in row["notes"]]


def test_switches_are_named_by_class_and_field(command: RunCommand) -> None:
    """The quirks of 4.2 are on there and off in our own policy."""
    switch = "ThresholdSettings.smooths_again_for_lower_boundary"
    assert by_name(shown(command, "pulsar-4.2-modular")["switches"])[switch]["value"] is True
    assert by_name(shown(command, "controlplane")["switches"])[switch] == {
        "name": switch,
        "value": False,
        "base_value": False,
        "differs": False,
        "notes": [],
    }
    near_ties = by_name(shown(command, "pulsar-4.0-modular")["switches"])["FoldSettings.near_ties"]
    assert (near_ties["differs"], near_ties["value"] != near_ties["base_value"]) == (True, True)


def test_knobs_of_rules_that_are_not_chosen_are_marked(command: RunCommand) -> None:
    """Those that a chosen rule reads as well are not."""
    modular = by_name(shown(command, "pulsar-4.2-modular")["knobs"])
    unread = {knob for knob, row in modular.items() if "of a rule that is not chosen" in row["notes"]}
    assert {"maxUnloadPercentage", "loadBalancerTransferEnabled"} <= unread
    assert not unread & {
        "loadBalancerBrokerThresholdShedderPercentage",
        "loadBalancerBrokerOverloadedThresholdPercentage",
        "loadBalancerCPUResourceWeight",
        "flowOrQpsDifferenceThresholdPercentage",
    }
    uniform = shown(command, "pulsar-4.2-modular", "--set", "loadBalancerLoadSheddingStrategy=UniformLoadShedder")
    knobs = by_name(uniform["knobs"])
    assert knobs["maxUnloadPercentage"]["notes"] == []
    assert knobs["loadBalancerBrokerThresholdShedderPercentage"]["notes"] == ["of a rule that is not chosen"]


def test_a_knob_that_more_than_the_rules_read_is_never_marked(command: RunCommand) -> None:
    """The selection of nodes compares with the threshold of overload, whichever rules are chosen."""
    shedder = "loadBalancerLoadSheddingStrategy=UniformLoadShedder"
    placement = "loadBalancerLoadPlacementStrategy=RoundRobinBrokerSelector"
    knobs = by_name(shown(command, "pulsar-4.2-modular", "--set", shedder, "--set", placement)["knobs"])
    assert knobs["loadBalancerBrokerOverloadedThresholdPercentage"]["notes"] == []


def test_a_knob_that_is_set_to_the_value_of_the_base_does_not_differ(command: RunCommand) -> None:
    """It is still shown as set."""
    given = ("pulsar-4.0-modular", "--set", "loadBalancerHistoryResourcePercentage=0.9")
    assert shown(command, *given, "--changed")["knobs"] == []
    assert by_name(shown(command, *given)["knobs"])["loadBalancerHistoryResourcePercentage"]["notes"] == ["set"]


def test_knobs_are_set_by_options_and_files(command: RunCommand, tmp_path: Path) -> None:
    """By the type of each; a file has the lines of broker.conf."""
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "# of the old cluster\nloadBalancerSheddingExcludedNamespaces=a/b, c/d\nlowerBoundarySheddingEnabled=true\n"
    )
    found = shown(
        command, "pulsar-4.2-modular", "--set", str(conf), "--set", "loadBalancerCPUResourceWeight=2", "--changed"
    )
    knobs = by_name(found["knobs"])
    assert knobs["loadBalancerSheddingExcludedNamespaces"]["value"] == ["a/b", "c/d"]
    assert knobs["lowerBoundarySheddingEnabled"]["value"] is True
    assert (knobs["loadBalancerCPUResourceWeight"]["value"], knobs["loadBalancerCPUResourceWeight"]["notes"]) == (
        2.0,
        ["set"],
    )


def test_rules_of_a_file_are_shown_with_their_knobs(command: RunCommand) -> None:
    """As tables for people."""
    words = ("loadBalancerLoadSheddingStrategy=BusiestFirst", "messageLimitPerNode=5")
    options = [word for each in words for word in ("--set", each)]
    ran = command("profiles", "show", "controlplane", "--rule-file", EXAMPLE, *options, "--changed")
    assert ran.status == ExitStatus.DONE, ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["shedder", "BusiestFirst"] in lines
    assert ["messageLimitPerNode", "5", "50000", "set"] in lines
    assert "knobs: none differs" in command("profiles", "show", "controlplane", "--changed").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pulsar-4.2-modul"], "profile 'pulsar-4.2-modul' is unknown: did you mean 'pulsar-4.2-modular'"),
        (["kafka"], "profile 'kafka' is unknown; there are controlplane, pulsar-4.2-modular"),
        (["controlplane", "--set", "maxUnloadPercent=1"], "there is no knob 'maxUnloadPercent': did you mean 'maxUnl"),
        (["controlplane", "--set", "zzz=1"], "--set: there is no knob 'zzz'"),
        (["controlplane", "--set", "zzz"], "--set 'zzz' is neither KNOB=VALUE nor a file of such lines"),
        (
            ["controlplane", "--set", "maxUnloadPercentage=1", "--set", "maxUnloadPercentage=0"],
            "--set: maxUnloadPercentage is given twice, also by --set",
        ),
        (["controlplane", "--set", "statsUpdateFrequencyInSecs=1.5"], "is '1.5', allowed is a whole number"),
        (["controlplane", "--set", "loadBalancerCPUResourceWeight=nan"], "is 'nan', allowed is a finite number"),
        (["controlplane", "--set", "loadBalancerEnabled=maybe"], "is 'maybe', allowed is true or false"),
        (["controlplane", "--set", "loadBalancerLoadSheddingStrategy=AvgShedder"], "do not go together: AvgShedder"),
        (["controlplane", "--set", "loadBalancerLoadSheddingStrategy=Mine"], "shedder 'Mine' is unknown"),
        (["controlplane", "--set", "nodeFilters=Mine"], "node filter 'Mine' is unknown"),
        (["controlplane", "--rule-file", "nowhere.py"], "nowhere.py: there is no such Python file"),
        (
            ["controlplane", "--rule-file", EXAMPLE, "--set", "messageLimitPerNode=0"],
            "messageLimitPerNode has to be greater than 0, not 0",
        ),
        (["controlplane", "--rule-file", EXAMPLE, "--rule-file", EXAMPLE], "is that of BusiestFirst in"),
    ],
)
def test_what_is_unknown_is_refused_in_one_sentence(command: RunCommand, words: list[str], sentence: str) -> None:
    """With the status of a wrong setting."""
    ran = command("profiles", "show", *words)
    assert (ran.status, ran.out) == (ExitStatus.CALLED_WRONGLY, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


BROKER_CONF = """\
### --- General broker settings --- ###
! a comment of Java
zookeeperServers=
brokerServicePort=6650
clusterName = local
zooKeeperSessionTimeoutMillis=30000
zooKeeperOperationTimeoutSeconds=30
zookeeperSessionExpiredPolicy=shutdown
loadBalancerEnabled=yes
loadBalancerSheddingEnabled=No
loadBalancerOverrideBrokerNicSpeedGbps=
loadBalancerSheddingExcludedNamespaces=
loadBalancerHostUsageCheckIntervalMinutes=
loadBalancerSheddingIntervalMinute=3
maxUnloadPercentage=0.3
brokerServicePort=6650
"""


def test_a_whole_file_of_pulsar_is_accepted(command: RunCommand, tmp_path: Path) -> None:
    """Lines on anything but the rules are skipped and named, those of ZooKeeper are without effect."""
    conf = tmp_path / "broker.conf"
    conf.write_bytes(BROKER_CONF.encode() + b"ownerOfThisFile=J\xfcrgen\n")
    words = ("pulsar-4.2-modular", "--set", str(conf), "--set", "maxUnloadPercentage=0.4")
    ran = command("profiles", "show", *words)
    assert ran.status == ExitStatus.DONE
    others = "brokerServicePort, clusterName, ownerOfThisFile, zookeeperServers"
    assert ran.err.splitlines() == [
        f"{conf}, line 14: no knob 'loadBalancerSheddingIntervalMinute'; is it 'loadBalancerSheddingIntervalMinutes'?",
        f"{conf}: 4 settings are no knobs of these rules: {others}",
    ]
    found = shown(command, *words)
    assert [each["name"] for each in found["skipped"]][:3] == ["zookeeperServers", "brokerServicePort", "clusterName"]
    knobs = by_name(found["knobs"])
    values = {name: knobs[name]["value"] for name in ("loadBalancerEnabled", "loadBalancerSheddingEnabled")}
    assert values == {"loadBalancerEnabled": True, "loadBalancerSheddingEnabled": False}
    assert knobs["maxUnloadPercentage"]["value"] == 0.4
    assert knobs["loadBalancerHostUsageCheckIntervalMinutes"]["notes"] == []
    assert knobs["zooKeeperSessionTimeoutMillis"]["notes"] == ["no effect here", "set"]
    assert list(knobs) == sorted(knobs, key=str.lower)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("statsUpdateFrequencyInSecs=soon", "is 'soon', allowed is a whole number"),
        ("maxUnloadPercentage=-0.2", "maxUnloadPercentage is -0.2, allowed is 0 to 1"),
        ("loadBalancerBrokerOverloadedThresholdPercentage=850", "is 850.0, allowed is greater than 0, up to 100"),
        ("loadBalancerLoadSheddingStrategy=Mine", "shedder 'Mine' is unknown; ModularLoadManagerImpl has Avg"),
        ("loadManagerClassName=x.SimpleLoadManagerImpl", "loadManagerClassName: load manager 'x.Simple"),
        ("nodeFilters=Mine", "nodeFilters: node filter 'Mine' is unknown"),
        ("defaultNamespaceBundleSplitAlgorithm=halves", "is 'halves', allowed is one of supportedNamespaceBundle"),
        ("topicBundleAssignmentStrategy=x.Y", "is 'x.Y', allowed is ConsistentHashingTopicBundleAssigner"),
        ("minUnloadMessage=2", "minUnloadMessage is given twice, also by "),
    ],
)
def test_a_wrong_value_of_a_file_is_refused_with_its_line(
    command: RunCommand, tmp_path: Path, line: str, sentence: str
) -> None:
    """And with the knob and what is allowed; objects of Python are not printed."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"minUnloadMessage=1\n# a comment\n{line}\n")
    ran = command("profiles", "show", "controlplane", "--set", str(conf))
    assert (ran.status, ran.out) == (ExitStatus.CALLED_WRONGLY, "")
    assert f"{conf}, line 3: " in ran.err
    assert line.partition("=")[0] in ran.err
    assert sentence in ran.err
    assert "Settings(" not in ran.err
    assert ran.err.count("\n") == 1


def test_what_our_own_policy_would_refuse_is_marked_under_a_profile_of_pulsar(command: RunCommand) -> None:
    """There it is accepted, as Pulsar does."""
    found = shown(command, "pulsar-4.2-modular", "--set", "loadBalancerBrokerMaxTopics=-1")
    assert by_name(found["knobs"])["loadBalancerBrokerMaxTopics"]["notes"] == ["set", "outside of 1 or greater"]


def test_it_is_said_that_nothing_reads_a_profile(command: RunCommand) -> None:
    """In the answer and in the help."""
    assert shown(command, "controlplane")["executed_by"] == "nothing that runs today"
    assert "executed_by" in command("profiles", "show", "controlplane").out
    assert "Nothing that runs today reads a profile" in command("profiles", "show", "--help").out
    assert "AvgShedderHighThreshold" in command("profiles", "show", "pulsar-4.x-avg", "--changed").out


def test_a_single_value_counts_before_a_file_in_any_order(command: RunCommand, tmp_path: Path) -> None:
    """And an empty one is a wrong value, where an empty line of a file leaves the knob as it is."""
    conf = tmp_path / "broker.conf"
    conf.write_text("maxUnloadPercentage=0.3\n")
    found = shown(command, "controlplane", "--set", "maxUnloadPercentage=0.4", "--set", str(conf))
    assert by_name(found["knobs"])["maxUnloadPercentage"]["value"] == 0.4
    ran = command("profiles", "show", "controlplane", "--set", "maxUnloadPercentage=")
    assert (ran.status, "--set: maxUnloadPercentage is '', allowed is" in ran.err) == (ExitStatus.CALLED_WRONGLY, True)
