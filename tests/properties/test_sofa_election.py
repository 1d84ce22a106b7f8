"""The machine against SOFARegistry's own loop on SQL: any rounds, clocks, failures and orders give the same beliefs."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.config import SofaLeaseConfig, SofaRenewal
from controlplane.core.election.messages import FloorRaised, GiveBackAsked
from controlplane.core.election.sofa_election import JoinElection, QuitElection
from controlplane.core.values.identifiers import Term
from controlplane.testing import VirtualClock
from tests.helpers.lock_worlds import MemoryLockWorld, SqlLockWorld
from tests.helpers.sofa_electors import MachineElector, ReferenceElector

NAMES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Happening:
    """One elector's round, or something that happens to it or to all."""

    kind: str
    name: str
    value: int


happenings = st.lists(
    st.builds(
        Happening,
        kind=st.sampled_from(
            ["elect", "elect", "elect", "elect", "pass", "pass", "fail", "skew", "quit", "join", "restart", "lose"]
        ),
        name=st.sampled_from(NAMES),
        value=st.sampled_from([0, 1, 2, 500, 999, 1_000, 1_001, 2_000, 2_500, 4_000, 5_000, 6_000]),
    ),
    max_size=60,
)
configs = st.builds(
    SofaLeaseConfig,
    duration_ms=st.sampled_from([1_000, 2_000, 4_500]),
    loop_interval_ms=st.just(100),
    renewal=st.sampled_from(SofaRenewal),
    first_term=st.sampled_from([0, 1]),
)


@settings(max_examples=300)
@given(happenings, configs)
def test_the_machine_believes_what_sofaregistry_believes(history: list[Happening], config: SofaLeaseConfig) -> None:
    """Leader, epoch and expiry, who leads, what was announced, and the row: equal after every step."""
    clock = VirtualClock()
    world, oracle = MemoryLockWorld(clock), SqlLockWorld(clock)

    def machine_of(name: str) -> MachineElector:
        return MachineElector(name, world.open_store(), clock, config)

    def reference_of(name: str) -> ReferenceElector:
        return ReferenceElector(name, oracle.open_store(), clock, config)

    machines = {name: machine_of(name) for name in NAMES}
    references = {name: reference_of(name) for name in NAMES}
    for step in history:
        match step.kind:
            case "pass":
                clock.advance(step.value)
            case "restart":
                machines[step.name], references[step.name] = machine_of(step.name), reference_of(step.name)
            case "lose":
                for each in (world, oracle):
                    each.lose_data()
            case _:
                _let_both(step, machines[step.name], references[step.name])
        for name in NAMES:
            assert machines[name].machine.info == references[name].info, step
            assert machines[name].leads == references[name].leads, step
            assert machines[name].announced == references[name].announced, step
        assert world.open_store().read() == oracle.open_store().read(), step
    oracle.close()


def _let_both(step: Happening, machine: MachineElector, reference: ReferenceElector) -> None:
    """The same happens to the machine and to its reference."""
    match step.kind:
        case "elect" | "fail":
            fails_at = step.value % 3 if step.kind == "fail" else None
            machine.elect(fails_at)
            reference.elect(fails_at)
        case "skew":
            machine.skew_ms = reference.skew_ms = step.value - 2_000
        case "quit":
            machine.tell(QuitElection())
            reference.is_observer = True
        case "join":
            machine.tell(JoinElection())
            reference.is_observer = False
        case unknown:
            pytest.fail(f"no step {unknown}")


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["elect", "elect", "elect", "pass", "give back", "floor", "lose", "skew"]),
            st.integers(0, 6_000),
        ),
        max_size=60,
    ),
    configs,
)
def test_the_terms_of_one_controller_only_grow(history: list[tuple[str, int]], config: SofaLeaseConfig) -> None:
    """Whatever becomes of the row: each leadership has a greater term than the one before, and than every floor."""
    clock = VirtualClock()
    world = MemoryLockWorld(clock)
    elector, other = (MachineElector(name, world.open_store(), clock, config) for name in ("a", "b"))
    greatest = 0
    for kind, value in history:
        match kind:
            case "elect":
                (elector if value % 3 else other).elect()
            case "pass":
                clock.advance(value)
            case "give back":
                elector.tell(GiveBackAsked(value))
                assert elector.machine.term_at(elector.wall_ms()) is None
            case "floor":
                elector.tell(FloorRaised(Term(value % 20)))
                greatest = max(greatest, value % 20)
            case "lose":
                world.lose_data()
            case "skew":
                elector.skew_ms = value - 3_000
            case unknown:
                pytest.fail(f"no step {unknown}")
        term = elector.machine.term_at(elector.wall_ms())
        if term is not None:
            assert term >= max(greatest, 1)
            assert elector.leads
            assert term > value % 20 or kind != "floor"
            greatest = term
