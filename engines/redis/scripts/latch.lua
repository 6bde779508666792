-- Reads, sets or counts down a latch: Redisson's RCountDownLatch. A request that was carried out is
-- remembered, so that it counts once when it is sent again, even in the latch's next life.
--
-- KEYS  latch, channel, request
-- ARGV  what (read, set, count_down), number, lifetime in ms for set (0: none), publish command,
--       ms for which to remember the request (0: not at all)
-- Returns {count afterwards, whether the request was carried out (1, 0)}
--         error WRONGKIND

local latch, channel, request = KEYS[1], KEYS[2], KEYS[3]
local what, number, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local publish, remember_for = ARGV[4], tonumber(ARGV[5])

local kind = redis.call('TYPE', latch).ok
if kind ~= 'none' and kind ~= 'string' then
    return redis.error_reply('WRONGKIND the name is not that of a latch: it holds a ' .. kind)
end
local text = redis.call('GET', latch) or '0'
local count = tonumber(text)
if not string.find(text, '^%d+$') then
    return redis.error_reply('WRONGKIND the name is not that of a latch: it holds no number')
end

if what == 'read' then
    return {count, 0}
end
if redis.call('EXISTS', request) == 1 then
    return {count, 1}
end
if (what == 'set') ~= (count == 0) then
    return {count, 0}
end
if what == 'set' then
    count = number
    if lifetime > 0 then
        redis.call('SET', latch, count, 'PX', lifetime)
    else
        redis.call('SET', latch, count)
    end
    redis.call(publish, channel, '1')
elseif number < count then
    count = redis.call('DECRBY', latch, number)
else
    count = 0
    redis.call('DEL', latch)
    redis.call(publish, channel, '0')
end
if remember_for > 0 then
    redis.call('SET', request, '1', 'PX', remember_for)
end
return {count, 1}
