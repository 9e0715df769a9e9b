"""Licences in use."""
