"""Roles for people: the report on a set of roles, and the differences of two sets."""
