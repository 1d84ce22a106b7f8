"""A checkpoint that does not belong to the tables of its stream keeps the pipeline from starting."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from controlplane.config import MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.membership.inputs import Tick
from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity.checkpoints import make_checkpoint
from streaming.continuity.lost_checkpoints import refuse_lost_checkpoints
from streaming.contracts.records import (
    MEMBERSHIP_TABLE,
    TABLE_OF_TOPIC,
    tables_of,
)
from streaming.records.tick_rows import PlacedTick
from streaming.tables.created_tables import create_missing
from streaming.tables.driver_tables import DriverTable
from tests.helpers.local_paths import local
from tests.helpers.log_tables import add_ticks
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.pipeline_world import PipelineWorld


def test_lost_checkpoint_is_refused(world: PipelineWorld) -> None:
    """Without its checkpoint a stream would begin again and add every row a second time, in silence."""
    config = world.config()
    refuse_lost_checkpoints(config)
    add_membership_rows(world.warehouse_dir, 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    checkpoint = local(config.checkpoint_dir(MEMBERSHIP_TABLE.name))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"app"}', encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    made = make_checkpoint(checkpoint, world.cluster.topic(MEMBERSHIP), {0: 1})
    with pytest.raises(PrerequisiteError, match=r"membership .* is not the one with which it was written"):
        refuse_lost_checkpoints(config)
    DriverTable(world.warehouse_dir, MEMBERSHIP_TABLE, made).append_files((), 0)
    refuse_lost_checkpoints(config)
    DriverTable(world.warehouse_dir, MEMBERSHIP_TABLE, made).append_files((), 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* is older than it"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    shutil.rmtree(local(world.warehouse_dir / MEMBERSHIP_TABLE.name))
    create_missing(world.warehouse_dir, bucket_count=2)
    add_ticks(world.warehouse_dir, [PlacedTick(0, 0, 0, Tick("c1", 0))])
    with pytest.raises(PrerequisiteError, match=r"ticks .* its checkpoint .*heartbeats is gone"):
        refuse_lost_checkpoints(config)


def test_checkpoints_are_compared_with_tables_that_are_opened_once(
    warehouse_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an object store each time is several requests."""
    opened: list[str] = []
    init = DeltaTable.__init__

    def noted(table: DeltaTable, place: str, **how: Any) -> None:  # noqa: ANN401 - passed on
        opened.append(Path(place).name)
        init(table, place, **how)

    monkeypatch.setattr(DeltaTable, "__init__", noted)
    config = PipelineConfig(ClusterConfig("test"), KafkaConfig("nowhere:1"), warehouse_dir, SparkConfig(jars=()))
    refuse_lost_checkpoints(config)
    assert sorted(opened) == sorted(table.name for topic in TABLE_OF_TOPIC for table in tables_of(topic))
