"""What the loads of bundles and their history both do with columns of Arrow."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.sample_fold import Loads


def namespaces_of(bundle_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The namespace in each bundle's id: what stands before the last slash."""
    return pc.replace_substring_regex(bundle_ids, "(^|/)[^/]*$", "")


def loads_of(structs: pa.StructArray) -> Loads:
    """The figures that rules of loads read: a row for each field of :class:`MessageLoad`."""
    return np.stack([pc.struct_field(structs, name).to_numpy(zero_copy_only=False) for name in MessageLoad._fields])
