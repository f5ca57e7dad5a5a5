"""Clinical use of registered scans and shape models: measure, edit, predict."""
