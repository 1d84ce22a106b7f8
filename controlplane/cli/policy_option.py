"""The ``--policy`` option: single settings of the logged policy by name."""

import dataclasses
import json
from collections.abc import Sequence

from controlplane.core.plain import Plain, from_plain, to_plain
from controlplane.core.policy import Policy
from controlplane.errors import ConfigurationError, InvalidInputError


def parse_policy(settings: Sequence[str]) -> Policy:
    """The default policy with some settings replaced, each given as ``name=value``.

    Raises:
        ConfigurationError: an unknown name, a value of another type, or a policy that contradicts itself.
    """
    known = [field.name for field in dataclasses.fields(Policy)]
    chosen: dict[str, Plain] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in known:
            raise ConfigurationError(f"--policy {setting!r}: write NAME=VALUE with a name of {', '.join(known)}")
        chosen[name] = _value(text)
    defaults = to_plain(Policy())
    if not isinstance(defaults, dict):
        raise TypeError("a policy's plain form is a map")
    try:
        return from_plain(Policy, {**defaults, **chosen})
    except InvalidInputError as error:
        raise ConfigurationError(f"--policy: {error.detail}") from error


def _value(text: str) -> Plain:
    """A number where the text is one, else the text."""
    try:
        number: object = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text
