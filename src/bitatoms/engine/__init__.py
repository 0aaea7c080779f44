"""The engine: rows with their codes, how they are coded, how atoms are updated, and what that costs."""
