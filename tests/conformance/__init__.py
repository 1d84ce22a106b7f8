"""Answers of other systems, compared with ours: ``python -m tests.conformance sofa FILE.jsonl.gz...``.

The runners only translate: they call the package's own functions and decide nothing themselves.
"""
