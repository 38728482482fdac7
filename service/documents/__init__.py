"""Documents of the REST API: models, fields, checks across documents."""
