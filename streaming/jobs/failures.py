"""What a failed stream says, in one line: Spark's own text is a page, and stands in its log."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from controlplane.config import KafkaConfig
from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
    NotAllowedError,
    PrerequisiteError,
    UnsupportedFeatureLevelError,
)
from streaming.config import PipelineConfig
from streaming.error_texts import HOW_TO_MEND, LONGEST_LINE, NO_SPACE, full_disk

_NO_ANSWER: Final = re.compile(
    r"(?:org\.apache\.kafka\.common\.errors\.\w*(?:Timeout|Disconnect)\w*Exception|LogUnavailableError): (.+)"
)
_AFTER_A_CRASH: Final = 'because the return value of "scala.Option.get()" is null'
_LOST: Final = "not available in Kafka any more"
_PYTHON: Final = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_TRACE: Final = "Traceback (most recent call last)"
_SPARK: Final = re.compile(r"terminated with exception: (.+?)(?: SQLSTATE|$)", re.MULTILINE)
_PLACE: Final = r"/(?=\S)(?:(?!: )[^\n'\"])+?"
_FULL_AT: Final = re.compile(
    rf"(?<!\S)(?P<rust_or_java>{_PLACE})(?:#\d+)?(?:: | \(|\n[^/\n]*){NO_SPACE}"
    rf"|'(?P<arrow>{_PLACE})'\. Detail: \[errno 28\] {NO_SPACE}"
    rf"|{NO_SPACE}: '(?P<python>{_PLACE})'"
)
"""The file that found no room, where the error names one: it does when the file is made, and not when it is written."""
_STOPPING_ERRORS: Final[Mapping[str, type[ControlPlaneError]]] = {
    kind.__name__: kind for kind in (UnsupportedFeatureLevelError, LogContinuityError, InvariantViolationError)
}
"""Errors that another start would meet again. Spark reports them as text."""


def words_of(failure: str, config: PipelineConfig) -> str:
    """A failure in one line.

    Args:
        failure: the text of the exception, as Spark or Python gives it.
        config: the pipeline's settings, which name servers and folders.
    """
    if NO_SPACE in failure:
        return _no_space(failure, config)
    if _AFTER_A_CRASH in failure:
        repeated = "the batch that it repeats after a stop or a crash"
        return f"Spark fails once behind {repeated} (SPARK-55271); nothing is lost"
    if _LOST in failure:
        return "Kafka no longer has records that were not read"
    no_answer = _NO_ANSWER.search(failure)
    if no_answer:
        return f"Kafka at {config.kafka.bootstrap_servers} does not answer: {no_answer[1]:.{LONGEST_LINE}}"
    _, _, trace = failure.partition(_TRACE)
    raised = _PYTHON.findall(trace)
    ended = _SPARK.search(failure)
    sentence = raised[-1] if raised else ended[1] if ended else failure.partition("\n")[0]
    return f"{sentence:.{LONGEST_LINE}}"


def _no_space(failure: str, config: PipelineConfig) -> str:
    """Whose disk is full: that of the file that the error names, or else one of all that the pipeline writes to."""
    found = _FULL_AT.search(failure)
    if found:
        (place,) = filter(None, found.groups())
        return full_disk(Path(place).parent)
    written = {
        "the tables": config.tables_dir,
        "the checkpoints": config.checkpoints_dir,
        "Spark's log": config.spark.log_file,
    }
    folders = [f"{what} ({place})" for what, place in written.items() if isinstance(place, Path)]
    work = "Spark's work files (spark.local.dir and java.io.tmpdir, by default /tmp, of driver and executors)"
    places = ", ".join([*folders, work])
    return f"a disk is full, and the error does not say which: make room where these are: {places}; {HOW_TO_MEND}"


def final_error(message: str, failure: str) -> ControlPlaneError:
    """The error with which the pipeline ends after a failure that came again and again."""
    return PrerequisiteError(message) if NO_SPACE in failure else LogUnavailableError(message)


def stopping_error(failure: str, kafka: KafkaConfig, read: str = "a topic") -> ControlPlaneError | None:
    """The error in the text of a failed stream after which it must not be started again; None if there is none.

    ``read`` describes what the stream reads, because Kafka's admin client does not name the topic that it was refused.
    """
    code = "TopicAuthorizationException"
    if code in failure:
        named = re.search(rf"{code}: .*topics?: \[(?P<topics>[^\]]+)\]", failure)
        what = f"topic {named['topics']}" if named else read
        return NotAllowedError(kafka.principal, "use", what, code)
    refused = re.search(r"(?:Sasl|Ssl)AuthenticationException: (?P<message>[^\n]+)", failure)
    if refused:
        return ConfigurationError(
            f"Kafka refuses the login of {kafka.principal}: {refused['message']}; check user, password, mechanism and "
            "certificates in the security settings"
        )
    unknown = re.search(r"ModuleNotFoundError: No module named '(?P<package>\w+)(?P<inner>[\w.]*)'", failure)
    if unknown and find_spec(unknown["package"]) is not None:  # the driver has it
        if unknown["inner"]:
            return PrerequisiteError(
                f"Spark's executors have another build of {unknown['package']} than the driver, without "
                f"{unknown['package']}{unknown['inner']}: give both the same one "
                "(docs/how-to/run-the-pipeline-on-spark.md has the steps)"
            )
        return PrerequisiteError(
            f"Spark's executors do not find the Python package {unknown['package']}: give spark-submit "
            "--archives pipeline-env.zip#pipeline-env --conf spark.executorEnv.PYTHONPATH=pipeline-env, or install the "
            "package on every worker (docs/how-to/run-the-pipeline-on-spark.md has the steps)"
        )
    for name, kind in _STOPPING_ERRORS.items():
        found = re.search(rf"{name}: (?P<message>[^\n]+)", failure)
        if found:
            return kind(found["message"])
    return None
