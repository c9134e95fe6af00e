"""The model of ``test_new_model``, as a module that a service imports."""

from tests.contract.test_new_model import register_toy

register_toy()
