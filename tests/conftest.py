"""What every test of the project can use."""

pytest_plugins = ["tests.fixtures"]
