"""The explorer of a report: its section, and the data that the script of the page explores."""
