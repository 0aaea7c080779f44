"""Tables, their columns, what these stand for, and how columns of two tables match."""
