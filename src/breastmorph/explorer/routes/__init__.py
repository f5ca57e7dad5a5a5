"""What each endpoint does: thin functions that call the modules that know."""
