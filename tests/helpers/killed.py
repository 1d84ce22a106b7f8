"""The end of a process at a step, for tests that go on as its next start would."""


class KilledError(Exception):
    """The process is killed here: nothing after this step is done."""
