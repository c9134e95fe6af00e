"""``hushsum serve``: datasets in, public functions out, over HTTP.

:func:`hushsum.service.http.create_app` makes the application from ``hushsum.service.settings.Settings``;
nothing is read from the environment when a module is imported.

- ``run``: starts the service and stops it; ``settings``: every setting and where it is read from
- ``http``: the application, its routes, authentication, limits and OpenAPI description
- ``jobs``: the worker processes and the jobs they run; imports no web framework
- ``compute``: processes for calculations that requests wait for
- ``queries``: points in JSON or Arrow, and their answers
- ``store``: the database
- ``schemas``: the bodies of requests and responses, used by ``http`` and ``jobs``
- ``problem_types``: the type, status and text with which each error is reported
- ``logs``: structured logs
- ``trusted_proxies``: the address of a client behind proxies
- ``web``: the page
"""
