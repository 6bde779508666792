"""All mutants, room by room. `scripts/mutants` plants them one at a time.

Mistakes that the simulator and the model checker switch on at run time are in tests/planted.
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
