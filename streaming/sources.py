"""Streams and batches of Kafka records, with every relevant option set explicitly."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.config import KafkaConfig
from controlplane.errors import ConfigurationError

_SAME_IN_JAVA: Final = frozenset(
    {"security.protocol", "sasl.kerberos.service.name", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm"}
)
_RENAMED_IN_JAVA: Final = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.key.password": "ssl.key.password",
}
_PEM_IN_JAVA: Final = {
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
"""librdkafka takes the names of files for certificate and key; Java takes their contents. The key has to be PKCS #8."""
_PASSWORD_LOGINS: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_LOG_APPEND_TIME: Final = 1
"""Spark's ``timestampType`` of a record whose time a broker's clock gave."""


def java_client_settings(security: Mapping[str, str]) -> dict[str, str]:
    """TLS and SASL settings of librdkafka as settings of the Java client inside Spark.

    Raises:
        ConfigurationError: a setting has no counterpart here, or names a file that cannot be read.
    """
    settings: dict[str, str] = {}
    login: dict[str, str] = {}
    for name, value in security.items():
        if name in ("sasl.username", "sasl.password"):
            login[name.removeprefix("sasl.")] = value
        elif name in _SAME_IN_JAVA:
            settings[name] = value
        elif name in _PEM_IN_JAVA:
            settings[_PEM_IN_JAVA[name]] = _content(name, value)
            settings["ssl.keystore.type"] = "PEM"
        elif name in _RENAMED_IN_JAVA:
            settings[_RENAMED_IN_JAVA[name]] = value
        else:
            message = f"the pipeline cannot pass the setting {name!r} on to Spark's Kafka client: leave it out"
            raise ConfigurationError(message)
    if "ssl.truststore.location" in settings:
        settings["ssl.truststore.type"] = "PEM"
    if login:
        mechanism = settings.get("sasl.mechanism", "PLAIN")
        module = _PASSWORD_LOGINS.get(mechanism)
        if module is None or login.keys() != {"username", "password"}:
            message = f"sasl.mechanism {mechanism} with {sorted(login)}: {', '.join(_PASSWORD_LOGINS)} take both a "
            message += "username and a password"
            raise ConfigurationError(message)
        quoted = " ".join(f"{name}={json.dumps(value)}" for name, value in sorted(login.items()))
        settings["sasl.jaas.config"] = f"{module} required {quoted};"
    return settings


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{name}={path} cannot be read: {error.strerror}") from error


def client_options(kafka: KafkaConfig) -> dict[str, str]:
    """The options of every reader and writer: Kafka's addresses and security settings."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, **java_client_settings(kafka.security)}
    return {f"kafka.{name}": value for name, value in settings.items()}


def _reader_options(kafka: KafkaConfig) -> dict[str, str]:
    return {
        **client_options(kafka),
        # The default reads what aborted transactions wrote.
        "kafka.isolation.level": "read_committed",
        # A gap in a history must stop it, not pass for a quiet time.
        "failOnDataLoss": "true",
        "includeHeaders": "false",
    }


def read_stream(session: SparkSession, kafka: KafkaConfig, topic: str, max_records_per_batch: int) -> DataFrame:
    """All committed records of a topic from its beginning, or from the query's checkpoint.

    Args:
        session: the session.
        kafka: where the log is.
        topic: the topic's whole name in Kafka.
        max_records_per_batch: over all partitions.

    Returns:
        Columns ``partition``, ``offset``, ``append_time_ms``, ``key``, ``value`` and ``is_append_time``, which is false
        where the topic keeps the sender's time.
    """
    options = {
        **_reader_options(kafka),
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(max_records_per_batch),
    }
    return _named(session.readStream.format("kafka").options(**options).load())


def read_range(session: SparkSession, kafka: KafkaConfig, topic: str, partition: int, offsets: range) -> DataFrame:
    """The committed records of one partition at these offsets, as far as Kafka still has them.

    The columns are those of :func:`read_stream`.
    """
    options = {
        **_reader_options(kafka),
        "failOnDataLoss": "false",
        "assign": json.dumps({topic: [partition]}),
        "startingOffsets": json.dumps({topic: {str(partition): offsets.start}}),
        "endingOffsets": json.dumps({topic: {str(partition): offsets.stop}}),
    }
    return _named(session.read.format("kafka").options(**options).load())


def _named(records: DataFrame) -> DataFrame:
    return records.select(
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("append_time_ms"),
        "key",
        "value",
        (F.col("timestampType") == _LOG_APPEND_TIME).alias("is_append_time"),
    )
