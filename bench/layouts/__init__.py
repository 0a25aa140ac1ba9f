"""Layouts: the same rows arranged on disk in different ways."""
