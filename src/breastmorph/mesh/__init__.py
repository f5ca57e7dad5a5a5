"""Triangle meshes: the value, its topology and geometry, closest points, geodesics, file formats."""
