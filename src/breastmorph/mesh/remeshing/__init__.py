"""Remeshing of open surfaces: even triangles, cuts, filled holes, smoothing, mirror halves."""
