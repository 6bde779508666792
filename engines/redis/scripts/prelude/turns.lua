-- A turn of the others: Redisson's waiters, the listeners that are not ours. They leave no request, and
-- they ask more slowly than ours do. So a free lock or permit is theirs alone for a while. Only our
-- clients respect that. The key holds the turn's number, the length of the message that announced it,
-- and lives for the time of the turn and `turn_kept_for` more. After that, as long as it lives:
--     seen    they came: a process of ours does not keep the lock among its threads
--     missed  nobody came: there is no other turn
-- A zero ahead of the number: they were seen to come just before. Without it whoever listens may wait
-- for something else, a lock of the same name in another database: if nobody comes to a plain lock
-- then, there is no other turn for `missed_for`, unless one of ours finds that others have the lock.
local turn_kept_for = 1000
-- Long enough for a Java program to wake up and ask. One that has longer is from before the server's
-- clock was set back, and counts no more.
local turn_lasts = 200
local missed_for = 8000
-- Their place among the requests.
local others_place = 'others'
