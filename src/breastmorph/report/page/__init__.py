"""Pages of HTML: one file that holds everything itself; the templates, styles and scripts lie here."""
