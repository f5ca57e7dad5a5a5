"""What all layers use and nothing of which knows a mesh: errors, arrays, files, processes, the machine."""
