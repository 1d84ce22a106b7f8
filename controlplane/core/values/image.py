"""Images: the parts of the state, one for each subject, as in Kafka's KRaft."""

from dataclasses import dataclass, fields
from functools import cached_property

from controlplane.core.values.canonical import canonical_bytes, later_defaults
from controlplane.core.values.digests import format_digest
from controlplane.core.values.entries import Entries


@dataclass(frozen=True)
class Image:
    """Base class of a subject's part of the state. Each one is a frozen dataclass without ``slots``.

    A decision changes few images. An unchanged image is the same object before and after it, so what is derived from an
    image is computed once for many decisions.
    """

    @cached_property
    def summary(self) -> bytes:
        """Canonical bytes of the fields by name, with the number and the digest of entries in their place.

        A field marked ``later`` is left out while it has its default, so that digests of older logs stay valid. The
        cost does not depend on the number of entries.
        """
        later = later_defaults(type(self))  # type: ignore[arg-type]  # classes are hashable
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return canonical_bytes(
            {
                name: [len(value), format_digest(value.digest)] if isinstance(value, Entries) else value
                for name, value in named.items()
                if name not in later or value != later[name]
            }
        )
