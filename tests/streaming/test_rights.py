"""The pipeline under a login and TLS, with exactly the rights of its role."""

from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controlplane.adapters.kafka_acls import apply_acls, binding_of
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter
from controlplane.bootstrap.access_roles import access_roles
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import NotAllowedError
from controlplane.kafka_rules.acls_file import Grant, Operation, Right
from controlplane.ports import OutgoingRecord
from streaming.jobs.failures import stopping_error
from streaming.sinks import produce
from streaming.sources import read_stream
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka

(ROLE,) = (role for role in access_roles() if role.name == "pipeline")
GRANTS = [Grant(ROLE, "User:pipeline")]

Work = Callable[[Right], str]


@pytest.fixture
def cluster(cluster_name: str) -> ClusterConfig:
    """A cluster of this test's own."""
    return ClusterConfig(cluster_name)


@pytest.fixture
def work(spark: SparkSession, secured_kafka: SecuredKafka, cluster: ClusterConfig, tmp_path: Path) -> Work:
    """Does what a right is for; gives what went wrong, empty if nothing did."""
    servers, above = secured_kafka.tls_password_servers, secured_kafka.tls_login(SUPER_USER)
    apply_topics(servers, cluster.name, topic_specs(), above, least_copies=1)
    apply_acls(servers, cluster.name, GRANTS, above)
    writer = KafkaEventWriter(cluster, KafkaConfig(servers, above), 60_000)
    for topic in {right.name for right in ROLE.rights if right.operation is Operation.READ}:
        writer.send(OutgoingRecord(topic, b"key", b"value"))
    assert writer.flush(60_000) == 0
    writer.close()
    kafka = KafkaConfig(servers, secured_kafka.tls_login("pipeline"))
    done: list[int] = []

    def do(right: Right) -> str:
        topic = cluster.topic(right.name)
        done.append(1)
        try:
            if right.operation is Operation.WRITE:
                records = spark.createDataFrame([(b"key", b"value")], "key BINARY, value BINARY")
                produce(records.coalesce(1), kafka, topic)
                return ""
            query = (
                read_stream(spark, kafka, topic, 100)
                .writeStream.format("noop")
                .option("checkpointLocation", str(tmp_path / str(len(done))))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            progress = query.lastProgress
            assert progress is not None
            assert progress["numInputRows"] > 0
        except (PySparkException, Py4JJavaError) as error:  # pyspark leaves what it does not know as it came
            return str(error)
        return ""

    return do


def test_the_pipeline_needs_its_rights_and_no_other(
    work: Work, secured_kafka: SecuredKafka, cluster: ClusterConfig, spark: SparkSession
) -> None:
    """Every stream and every topic that it writes works under TLS with a password; without its right none does."""
    assert {right: work(right) for right in ROLE.rights} == dict.fromkeys(ROLE.rights, "")
    assert spark.streams.active == []
    kafka = KafkaConfig(secured_kafka.tls_password_servers, secured_kafka.tls_login("pipeline"))
    for right in ROLE.rights:
        secured_kafka.take(binding_of(cluster.name, right, "User:pipeline"))
        failure = work(right)
        apply_acls(secured_kafka.tls_password_servers, cluster.name, GRANTS, secured_kafka.tls_login(SUPER_USER))
        topic = cluster.topic(right.name)
        stopping = stopping_error(failure, kafka, f"what the stream of {topic} reads")
        assert type(stopping) is NotAllowedError, (right, failure)
        said = str(stopping)
        assert f"User:pipeline to use topic {topic} " in said or f"to use what the stream of {topic} reads " in said
        assert kafka.security["sasl.password"] not in failure
