from forager.library import AsyncForager as AsyncForager
from forager.library import Forager as Forager
from forager.library import open as open
from forager.library import open_async as open_async

__version__: str
