"""Which statements of Spark SQL only read: told by the plan that Spark itself parses from them.

The kinds of nodes that read are listed, so that a kind of a later Spark is refused until it has been looked at.
"""

from typing import Any, Final

from pyspark.sql import SparkSession

from streaming.sql.answers import refused

_READS: Final = frozenset(
    {
        # Relations.
        "LocalRelation",
        "OneRowRelation",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        # What is done with them.
        "Aggregate",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "Offset",
        "Pivot",
        "Project",
        "RepartitionByExpression",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Union",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedWith",
        "Unpivot",
        "WithWindowDefinition",
        # What is asked about them.
        "CurrentNamespace$",
        "DescribeRelation",
        "ShowTables",
        "UnresolvedNamespace",
        "UnresolvedTableOrView",
    }
)
_FUNCTIONS_BEYOND_THE_TABLES: Final = (
    # They call any method of any class of Java.
    "java_method",
    "reflect",
    "try_reflect",
    # They read schemas from any address.
    "from_avro",
    "from_protobuf",
    "from_xml",
)
_SETTINGS: Final = {
    # Relations such as csv.`/any/path` would read files beside the tables, and from the network.
    "spark.sql.runSQLOnFiles": "false",
    # ${env:NAME} in a statement would be replaced before it is parsed.
    "spark.sql.variable.substitute": "false",
}


def shut_off(session: SparkSession) -> None:
    """Let statements of this session reach its views, and nothing else of the machine."""
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    jvm: Any = session._jvm  # noqa: SLF001 - Python has no other way to Spark's catalog of functions
    registry = _state(session).functionRegistry()
    for name in _FUNCTIONS_BEYOND_THE_TABLES:
        registry.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


def require_query(session: SparkSession, statement: str) -> None:
    """Refuse a statement that may do more than read.

    Raises:
        UserError: it may; the message names what it would do by Spark's word for it.
        ParseException: it is no statement.
    """
    plans = [_state(session).sqlParser().parsePlan(statement)]
    while plans:
        plan = plans.pop()
        kind = plan.getClass().getSimpleName()
        if kind not in _READS:
            raise refused(kind)
        for found in (plan.children(), plan.innerChildren()):
            plans += [found.apply(index) for index in range(found.size())]


def _state(session: SparkSession) -> Any:  # noqa: ANN401 - an object of Java
    return session._jsparkSession.sessionState()  # noqa: SLF001 - as above
