"""Pictures, heat maps and web pages of released functions; everything drawn is public."""

from ._drawing import *
from ._heat_map import *
from ._web_page import *
