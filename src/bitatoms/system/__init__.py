"""What the system offers: signals, locks of files, memory, optional libraries, the log."""
