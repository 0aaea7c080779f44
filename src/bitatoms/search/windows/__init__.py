"""Wide tables, searched by windows of their columns."""
