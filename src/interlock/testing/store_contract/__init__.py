"""What every store promises, as tests: a backend passes by subclassing `StoreContract`.

```python
class TestMyStore(StoreContract):
    @asynccontextmanager
    async def open_store(self):
        yield MyStore(...)
```

A Kubernetes API server can pass it too: nothing here needs more than compare-and-set of one
object, versions are only compared, and events may be merged or repeated.
"""

from interlock.testing.store_contract.creating import CreatingContract
from interlock.testing.store_contract.deleting import DeletingContract
from interlock.testing.store_contract.journal import JournalContract
from interlock.testing.store_contract.leases import LeaseContract
from interlock.testing.store_contract.listing import ListingContract
from interlock.testing.store_contract.namespaces import NamespaceContract
from interlock.testing.store_contract.racing import RacingContract
from interlock.testing.store_contract.updating import UpdatingContract
from interlock.testing.store_contract.watching import WatchingContract

__all__ = ["JournalContract", "StoreContract"]


class StoreContract(
    CreatingContract,
    UpdatingContract,
    DeletingContract,
    ListingContract,
    WatchingContract,
    NamespaceContract,
    LeaseContract,
    RacingContract,
):
    """Everything a store promises."""
