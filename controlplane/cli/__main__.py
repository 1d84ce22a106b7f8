"""``python -m controlplane.cli``: the command for callers that do not have the script on their PATH."""

from controlplane.cli.main import main

if __name__ == "__main__":
    main()
