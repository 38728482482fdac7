"""Resources that users register, and their stored form: streams, templates, records."""
