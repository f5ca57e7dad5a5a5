"""Pictures and pages for people: rendered meshes, contact sheets."""
