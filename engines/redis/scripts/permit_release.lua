-- Gives permits back, or keeps them for a while in nobody's name (`linger`).
--
-- KEYS  semaphore, timeouts, channel, holds
-- ARGV  owner, publish command, linger in ms (0: none), 16 bytes for each permit in one string (empty:
--       all that the owner has)
-- Returns {1, clients told}, or {0, 0} when the owner does not have them
-- include: permits

local semaphore, timeouts, channel, holds = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, publish, linger, all_ids = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now = now_ms()
reclaim(semaphore, timeouts, channel, holds, publish, now)
local hold = redis.call('HGET', holds, owner)
local ids = ids_of(all_ids, hold)
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
local removed = 0
for _, id in ipairs(ids) do
    removed = removed + redis.call('ZREM', timeouts, id)
end
redis.call('HDEL', holds, owner)
return {1, give_back(semaphore, channel, publish, removed)}
