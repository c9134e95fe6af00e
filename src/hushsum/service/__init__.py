"""``hushsum serve``: datasets in, public functions out, over HTTP.

The application is made by :func:`hushsum.service.app.create_app` from ``hushsum.service.settings.Settings``;
nothing is read from the environment when a module is imported.
"""
