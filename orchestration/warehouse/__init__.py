"""Landed days in a warehouse that cannot read the landing's files: typed tables, one partition per UTC day."""
