-- Renews permits, or gives them back, while their slot moves to another server of a cluster. The
-- counter of free permits may be on the other server, so permits that are given back only end: whoever
-- acquires next counts them as free.
--
-- KEYS  timeouts
-- ARGV  what to do (renew, release), the owner's hold as it is written beside the semaphore, ms from
--       now until the permits end (for release: 0, or how long they linger), publish command, channel
-- Returns {1, clients told}, or {0, 0} when the owner does not have them
-- include: permits
-- include: looks

local timeouts = KEYS[1]
local task, hold, lasts, publish, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local now = now_ms()
local ids = ids_of('', hold)

local held = #ids > 0 and not lingers(hold)
for _, id in ipairs(ids) do
    local finish = redis.pcall('ZSCORE', timeouts, id)
    local reason = refusal(finish, 'ZSCORE')
    if reason then
        return reason
    end
    held = held and type(finish) == 'string' and tonumber(finish) > now
end
if not held then
    return {0, 0}
end
write_nothing(timeouts)
if task == 'renew' then
    prolong(timeouts, ids, now + lasts)
    return {1, 0}
end
for _, id in ipairs(ids) do
    redis.call('ZADD', timeouts, 'XX', lasts > 0 and now + lasts or 1, id)
end
local told = lasts == 0 and redis.pcall(publish, channel, #ids)
return {1, type(told) == 'number' and told or 0}
