"""One use case a file, shared by the command line and the service; nothing here knows either."""
