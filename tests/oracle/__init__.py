"""An independent calculation of the books, and random small companies to try it on."""
