"""Catalogs and tables as users open them."""
