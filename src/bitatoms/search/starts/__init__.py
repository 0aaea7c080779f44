"""The states that searches start from."""
