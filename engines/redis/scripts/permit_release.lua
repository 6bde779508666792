-- Gives permits back, or keeps them for a while in nobody's name (`linger`).
--
-- KEYS  semaphore, timeouts, channel, holds, turn of the others, if any
-- ARGV  owner, publish command, linger in ms (0: none), 16 bytes for each permit in one string (empty:
--       all that the owner has); if there are turns: zeros ahead of the message, channel of those of
--       ours who listen
-- Returns {1, clients told}, or {0, 0} when the owner does not have them. A third element says why
--         nobody could be told
-- include: permits
-- include: others

local semaphore, timeouts, channel, holds, turn = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, linger, all_ids = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local zeros, listeners = ARGV[5] or '', ARGV[6]
if are_foreign(timeouts) then
    return {0, 0}
end
local now = now_ms()
local hold = redis.call('HGET', holds, owner)
local ids = ids_of(all_ids, hold)
reclaim(semaphore, timeouts, channel, holds, publish, now, ids)
if #ids == 0 or not redis.call('ZSCORE', timeouts, ids[1]) then
    return {0, 0}
end
if lingers(hold) then
    return {linger > 0 and 1 or 0, 0}
end
if linger > 0 then
    write_nothing(timeouts)
    for _, id in ipairs(ids) do
        redis.call('ZADD', timeouts, 'XX', now + linger, id)
    end
    hold = hold or string.format('0 0 0 %.0f ', #ids) .. all_ids
    write_permits(holds, linger, owner, as_lingering(hold))
    return {1, 0}
end
-- What may be refused is tried first.
local counts, removed = takes_back(semaphore, timeouts), 0
redis.call('HDEL', holds, '')
for _, id in ipairs(ids) do
    removed = removed + redis.call('ZREM', timeouts, id)
end
redis.call('HDEL', holds, owner)
local told, length = give_back(semaphore, channel, publish, counts, removed, zeros)
if listeners and told > 0 then
    begin_their_turn(turn, length, publish, channel, listeners)
end
return {1, told, untold}
