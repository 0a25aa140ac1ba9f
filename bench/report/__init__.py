"""Reports of a run: one view model, drawn as a self-contained HTML page and as tables of the terminal.

Made of records only. Nothing here measures, and nothing here reads a clock or a file.
"""
