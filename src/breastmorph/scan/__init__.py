"""Scans: landmarks, the scan value, its upright frame and units, checks, landmark file formats."""
