"""Manifests and manifest lists (spec: "Manifests", "Manifest Lists")."""
