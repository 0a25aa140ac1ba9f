"""JSON forms of metadata: tables, views, and bodies of the REST protocol (spec appendix C)."""
