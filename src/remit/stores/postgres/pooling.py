"""Connection poolers between us and the server: one that keeps sessions together is fine, any other is refused.

Workers listen, and what is set for a session must hold: a pooler that lends a session of the server for one transaction
at a time gives us somebody else's settings, and ours to somebody else.
"""

from typing import Final

from remit.errors import StoreError
from remit.stores.postgres.address import STATEMENTS, Address, Connection

_SHARED: Final = (
    "{where}: a connection pooler there lends a session of the server for one transaction at a time, and remit needs "
    "one for as long as it is connected. Set pool_mode = session for this database in the pooler, or give the address "
    "of the server itself"
)


def refuse_shared_sessions(connection: Connection, address: Address) -> None:
    """Refuse a pooler that does not keep sessions together; raises what psycopg raises.

    Whether there is a pooler at all shows at once: it makes up the number of the server's process. If there is, a
    second connection begins a transaction. Then either it was lent our session, or we are lent another one meanwhile.
    """
    own = _backend(connection)
    if own == connection.info.backend_pid:
        return
    with address.connect() as other, other.transaction():
        shared = _backend(other) == own or _backend(connection) != own
    if shared:
        raise StoreError(_SHARED.format(where=address.where))


def _backend(connection: Connection) -> int:
    # Not prepared: where sessions are lent, its name may be taken by somebody else's statement.
    row = connection.execute(STATEMENTS["backend"], prepare=False).fetchone()
    assert row is not None
    return row[0]
