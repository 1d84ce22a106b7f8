"""What the loads of bundles and their history both do with columns of Arrow."""

import pyarrow as pa
import pyarrow.compute as pc


def namespaces_of(bundle_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """The namespace in each bundle's id: what stands before the last slash."""
    return pc.replace_substring_regex(bundle_ids, "(^|/)[^/]*$", "")
