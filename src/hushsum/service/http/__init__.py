"""The HTTP interface: the application, its routes, authentication, limits, and the description in OpenAPI."""
