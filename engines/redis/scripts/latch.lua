-- Reads, sets or counts down a latch: Redisson's RCountDownLatch. A request that was carried out is
-- remembered, so that it counts once when it is sent again, even in the latch's next life.
--
-- Semaphores are numbers, too. What was set here is marked as a latch, and what holdfast knows as a
-- semaphore is refused. Of what others made nobody can tell.
--
-- The mark is `1 <openings> <line>` while the latch counts and begins with `0` for a while after it was
-- opened here; Java leaves it as it is. The line is a number that the first `set` brought. A `set` that
-- finds the mark of one that opened goes on in its line, so that waiters know that theirs opened.
-- A latch without a mark that had one before did not open: its lifetime ended, or the
-- server lost it. For that the mark must not outlive a latch whose lifetime ends.
--
-- KEYS  latch, channel, request, mark, holds (a semaphore's)
-- ARGV  what (read, set, count_down), number, lifetime in ms for set (0: none), publish command,
--       ms for which to remember the request (0: not at all), ms for which to mark it as opened, line
-- Returns {count afterwards, whether the request was carried out (1, 0), whether the latch is known:
--         it counts and was set here, or it opened (1, 0), openings in its line, line}
--         error WRONGKIND
-- include: numbers

local latch, channel, request, mark, holds = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local operation, number, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local publish, remember_for, opened_for, new_line = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]

local kind = redis.call('TYPE', latch).ok
if kind ~= 'none' and kind ~= 'string' then
    return redis.error_reply('WRONGKIND the name is not that of a latch: it holds a ' .. kind)
end
local count = kind == 'none' and 0 or number_at(latch)
if not count or count < 0 then
    return redis.error_reply('WRONGKIND the name is not that of a latch: it holds no number')
end
local was_semaphore = redis.call('HEXISTS', holds, 'limit') == 1
if kind == 'string' and was_semaphore then
    return redis.error_reply('WRONGKIND the name is in use as a semaphore')
end

local marked_as, openings, line =
    string.match(redis.call('GET', mark) or '', '^([01]) (%d+) (%d+)$')
local known = (marked_as == '1' or marked_as and count == 0) and 1 or 0
openings, line = tonumber(openings or 0), tonumber(line or 0)
if marked_as == '1' and count == 0 then
    openings = openings + 1  -- Java opened it
end

if operation == 'read' then
    return {count, 0, known, openings, line}
end
if redis.call('EXISTS', request) == 1 then
    return {count, 1, known, openings, line}
end
if (operation == 'set') ~= (count == 0) then
    return {count, 0, known, openings, line}
end

-- A server that refuses one of the steps must do so before the first of them, so the order matters: a
-- request that is sent again after a refusal counts once, or not at all.
local function remember()
    if remember_for > 0 then
        redis.call('SET', request, '1', 'PX', remember_for)
    end
end

-- The mark ends with the latch, no later (servers before 7.0 read their clock for each command); of one
-- without an end a month after it was last used.
local function marked_for(left)
    return left > 0 and math.max(left - 5, 1) or 2592000000
end

if operation == 'set' then
    line = known == 1 and line or tonumber(new_line)
    count, known = number, 1
    redis.call(publish, channel, '1')
    redis.call('SET', mark, string.format('1 %d %.0f', openings, line), 'PX', marked_for(lifetime))
    if was_semaphore then
        redis.call('HDEL', holds, 'limit')  -- its counter is gone
    end
    if lifetime > 0 then
        redis.call('SET', latch, count, 'PX', lifetime)
    else
        redis.call('SET', latch, count)
    end
    remember()
elseif number < count then
    redis.call('DECRBY', latch, '0')
    redis.call('PEXPIRE', mark, marked_for(redis.call('PTTL', latch)))
    remember()
    count = redis.call('DECRBY', latch, number)
else
    count = 0
    redis.call('DEL', request)  -- is not there
    redis.call(publish, channel, '0')
    remember()
    openings = openings + 1
    redis.call('SET', mark, string.format('0 %d %.0f', openings, line), 'PX', opened_for)
    redis.call('DEL', latch)
    known = 1
end
return {count, 1, known, openings, line}
