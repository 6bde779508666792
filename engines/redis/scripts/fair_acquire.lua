-- Acquires a fair lock, or gets in line for it: Redisson's RFairLock. Waiters count as alive for
-- `wait` after they last asked, by the server's clock, plus the time of those before them.
--
-- KEYS  lock, queue, timeouts, holds, token counter
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), wait in ms,
--       whether to get in line (1, 0), smallest token wanted
-- Returns {1, first token, number of tokens}
--         {0, ms until the lease in the way or the time of the first in line ends, 0 = unknown}
--         error WRONGKIND
-- include: exclusive
-- include: clock
-- include: line

local lock, queue, timeouts, holds, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local claim = claim_of(ARGV, ARGV[8])
local owner, wait, gets_in_line = claim.owner, tonumber(ARGV[6]), ARGV[7] == '1'

local kind = redis.call('TYPE', lock).ok
if kind ~= 'none' and kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
if kind == 'hash' then
    local fields = redis.call('HMGET', lock, owner, 'mode')
    if fields[2] then
        return wrong_kind('the name is in use as a read/write lock')
    end
    if fields[1] then
        return grant_again(claim, lock, holds, counter)
    end
end

local now = now_ms()
local head, head_alive_until = first_alive(queue, timeouts, now)
if kind == 'none' and not head then
    local reply = grant_alone(claim, lock, holds, counter, {owner, 1})
    -- Times without a place in the line are nobody's.
    redis.call('DEL', timeouts)
    return reply
end
if kind == 'none' and head == owner then
    local reply = grant_alone(claim, lock, holds, counter, {owner, 1})
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    move_up(timeouts, redis.call('ZRANGE', timeouts, 0, -1), wait)
    return reply
end

if gets_in_line then
    local before, queued, behind = nil, false, {}
    for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
        if waiter == owner then
            queued = true
        elseif queued then
            behind[#behind + 1] = waiter
        else
            before = waiter
        end
    end
    if not queued then
        redis.call('RPUSH', queue, owner)
    end
    local base = before and tonumber(redis.call('ZSCORE', timeouts, before) or 0) or 0
    local alive_until = math.max(base, now) + wait
    local until_now = tonumber(redis.call('ZSCORE', timeouts, owner) or alive_until)
    redis.call('ZADD', timeouts, alive_until, owner)
    -- Those behind count their own time from the end of ours.
    move_up(timeouts, behind, until_now - alive_until)
end

local retry = remaining(lock)
if head and head ~= owner then
    local head_left = math.max(math.ceil(head_alive_until - now), 1)
    retry = retry == 0 and head_left or math.min(retry, head_left)
end
return {0, retry}
