"""``python -m controlplane.cli``: the same command where the script is not on the PATH, as for child processes."""

from controlplane.cli.main import main

if __name__ == "__main__":
    main()
