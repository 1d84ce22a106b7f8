"""The settings under which recorded answers are asked for: the profiles of the vectors' version, and recorded knobs."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from controlplane.core.bundles.placement.contract import PlacementStrategy
from controlplane.core.bundles.profiles.composition import Composition, compose
from controlplane.core.bundles.profiles.values import PULSAR_4_2_EXTENSIBLE, PULSAR_4_2_MODULAR
from controlplane.core.bundles.shedding.contract import Shedder
from tests.conformance.pulsar.numbers import TEXTS, number

S = TypeVar("S")

MODULAR = PULSAR_4_2_MODULAR
EXTENSIBLE = PULSAR_4_2_EXTENSIBLE


def composed(given: Mapping[str, Any], profile: str = MODULAR, **knobs: object) -> Composition:
    """The profile with the recorded knobs of a case, and with those that follow from the operation.

    A recorded knob that no rule has is refused, and so fails its case.
    """
    return compose(profile, {**{name: _value(each) for name, each in (given.get("conf") or {}).items()}, **knobs})


def settings(kind: type[S], given: Mapping[str, Any], profile: str = MODULAR, **knobs: object) -> S:
    """The settings of one class, likewise."""
    return composed(given, profile, **knobs).settings(kind)


def shedder(name: str, given: Mapping[str, Any], profile: str = MODULAR, **knobs: object) -> Shedder[Any, Any]:
    """The shedder that a cluster gets that asks for it by name."""
    composition = composed(given, profile, loadBalancerLoadSheddingStrategy=name, **knobs)
    return cast("Shedder[Any, Any]", composition.make(composition.shedder_rule))


def placement(name: str, given: Mapping[str, Any], profile: str = MODULAR) -> PlacementStrategy[Any, Any]:
    """The strategy that a cluster gets that asks for it by name."""
    composition = composed(given, profile, loadBalancerLoadPlacementStrategy=name)
    return cast("PlacementStrategy[Any, Any]", composition.make(composition.placement_rule))


def _value(recorded: Any) -> object:  # noqa: ANN401 - anything that JSON holds
    """A recorded value of a knob: a set is a list there, and what JSON lacks is a text."""
    if isinstance(recorded, list):
        return frozenset(recorded)
    return number(recorded) if isinstance(recorded, str) and recorded in TEXTS else recorded
