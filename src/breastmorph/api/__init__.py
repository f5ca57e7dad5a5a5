"""The functions that `breastmorph` offers in Python: what a command does with files, done with values.

What one of them returns, the next one takes. Nothing is computed here: every function finds out what it was given,
says so where it cannot use it, and calls what the command of the same name calls.
"""
