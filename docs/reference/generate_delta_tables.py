"""Draw ``delta-tables.md`` from the tables' contracts: ``python docs/reference/generate_delta_tables.py``.

A test compares the page with what this script would write.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from streaming.contracts.catalog import ALL_TABLES  # noqa: E402 - the checkout is on the path only now
from streaming.contracts.table import TableContract  # noqa: E402
from streaming.contracts.views import ALL_VIEWS, View  # noqa: E402

PAGE = Path(__file__).with_name("delta-tables.md")
_HEAD = """\
# Delta tables

<!-- Drawn by docs/reference/generate_delta_tables.py from streaming/contracts: change that, not this page. -->

The pipeline (`controlplane pipeline run`) writes these tables. `controlplane sql "SELECT ..."` queries them by these
names, at once and without Java by DuckDB, or with `--engine spark` by Spark SQL; it reads and never writes
([questions](../how-to/ask-the-tables.md)). In DuckDB's dialect lists begin at 1, and `unnest` makes rows of a list. Any
Delta reader can read the tables: each is a folder of its name. Released columns are never renamed, removed
or given another type. The columns `topic`, `partition`, `offset` and `append_time_ms` identify the record of the log
from which a row was written. At the end stand views over them.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(contract) for contract in ALL_TABLES) + "".join(map(_view_section, ALL_VIEWS))


def _section(contract: TableContract) -> str:
    keys = ", ".join(f"`{name}`" for name in contract.key)
    folders = ", ".join(f"`{name}`" for name in contract.partitioned_by) or "nothing"
    head = f"\n## {contract.name}\n\n{contract.row} {contract.written}\n\nKey: {keys}. Partitioned by {folders}.\n\n"
    rows = [
        f"| `{field.name}` | {field.dataType.simpleString()} | {field.metadata.get('comment', '')} |\n"
        for field in contract.fields
    ]
    return head + "| column | type | meaning |\n|---|---|---|\n" + "".join(rows)


def _view_section(view: View) -> str:
    read = ", ".join(f"`{name}`" for name in view.tables)
    head = f"\n## {view.name}\n\n{view.row} A view that `controlplane sql` knows, over {read}.\n\n"
    rows = [f"| `{name}` | {meaning} |\n" for name, meaning in view.columns]
    return head + "| column | meaning |\n|---|---|\n" + "".join(rows) + f"\n```sql\n{view.query}```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
