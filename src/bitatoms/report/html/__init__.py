"""Building blocks of HTML pages: the document, figures, tables, text, PNG."""
