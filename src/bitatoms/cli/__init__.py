"""The command line: parsing and printing only. `app.py` has the commands."""
