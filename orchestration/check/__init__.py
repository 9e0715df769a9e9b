"""`apportion check`: what is in the files of a workspace, before any of it is loaded."""
