"""Files and columns beside a table: names of items, groups and weights of rows, patterns."""
