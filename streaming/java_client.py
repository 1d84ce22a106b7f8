"""Settings of librdkafka, with which the control plane is configured, as settings of the Java client inside Spark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controlplane.config import KafkaConfig
from controlplane.errors import ConfigurationError

_SAME_IN_JAVA: Final = frozenset(
    {
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "security.protocol",
        "ssl.cipher.suites",
        "ssl.key.password",
    }
)
_NAMES_CHECKED: Final = "ssl.endpoint.identification.algorithm"
_RENAMED_IN_JAVA: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
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
        elif name == _NAMES_CHECKED:
            settings[name] = "" if value == "none" else value  # librdkafka's word for it; Java wants no word
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
