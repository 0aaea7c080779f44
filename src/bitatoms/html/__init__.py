"""Building blocks of self-contained HTML pages: documents, tables, figures, text."""
