"""What everybody uses and nothing of which knows a mesh: errors, arrays, files, processes, the machine."""
