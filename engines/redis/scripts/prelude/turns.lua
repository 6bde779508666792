-- A turn of the others: those who listen for a plain lock without being ours, Redisson's waiters, leave
-- no wish and ask more slowly than ours do. So a free lock is theirs alone for a while, which only ours
-- respect. The key holds the turn's number, the length of the message that announced it, and lives for
-- the time of the turn and `turn_kept_for` more. After that, as long as it lives:
--     seen    they came: a process of ours does not keep the lock among its threads
--     missed  nobody came: there is no other turn
local turn_kept_for = 1000
-- Their place among the wishes.
local others_place = 'others'
