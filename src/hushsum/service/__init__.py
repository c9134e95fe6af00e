"""``hushsum serve``: datasets in, public functions out, over HTTP.

:func:`hushsum.service.http.create_app` makes the application from ``hushsum.service.settings.Settings``;
nothing is read from the environment when a module is imported.

- ``http``: the application, its routes, authentication, limits and OpenAPI description
- ``jobs``: the worker processes and the jobs they run; imports no web framework
- ``queries``: points in JSON or Arrow, and their answers
- ``store``: the database
- ``schemas``: the bodies of requests and responses, used by ``http`` and ``jobs``
- ``web``: the page
"""
