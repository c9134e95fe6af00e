"""Jobs and the worker processes that run them. Nothing here imports the HTTP interface or a web framework."""
