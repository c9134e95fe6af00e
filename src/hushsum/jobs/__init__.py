"""One module per use case, shared by the command line and the service; none imports either of them."""
