"""The kernel, basis and method of ``test_extension``, as a module that a service imports."""

from tests.contract.test_extension import register_all

register_all()
