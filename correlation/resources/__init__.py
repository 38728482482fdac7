"""What people register, and its stored form: streams, templates, records."""
