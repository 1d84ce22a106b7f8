"""Follows the table ``load_reports`` and writes ``bundle_load_history``: what nodes reported, by windows of time."""
