"""Queries of the Delta tables, in SQL: two engines that read them and cannot change them."""
