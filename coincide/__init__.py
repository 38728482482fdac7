"""Packages for programs that use Coincide's topics; they need only the standard library."""
