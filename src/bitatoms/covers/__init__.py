"""Exact covers: atoms (roles) whose union is every row of a table, with no one missed and none added."""
