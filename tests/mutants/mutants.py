"""All mutants, room by room. `scripts/mutants` plants them one at a time.

The core has planted mistakes of its own (src/core/planted.hpp), which the simulator finds.
A mutant whose text has changed is adapted, or removed if its promise is gone.
"""

import api_room
import cli_room
import local_room
import quorum_room
import redis_room
import runtime_room

MUTANTS = (runtime_room.MUTANTS + api_room.MUTANTS + local_room.MUTANTS + quorum_room.MUTANTS
           + redis_room.MUTANTS + cli_room.MUTANTS)
