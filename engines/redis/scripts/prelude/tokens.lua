-- Takes `count` consecutive tokens, the first not below `least`, and returns the first.
--
-- The counter must not fall behind what was handed out before. One that is missing, was flushed or
-- comes from an old copy is below `floor`, and is moved on to the server's time in microseconds: no
-- server grants a million locks a second, so the time is ahead of every token there ever was.
--
-- To be called before any other write of an acquisition: a server that is out of memory refuses a
-- script's first write, and nothing must have been changed by then.
--
-- A counter that somebody else has written to ends the script, and is left as it is. So does one whose
-- numbers are too large for scripts to count on.
local function take_tokens(counter, count, floor, least)
    local after = redis.pcall('INCRBY', counter, count)
    local reason = type(after) == 'table' and after.err
    if not reason and after > 9007199254740991 then
        redis.call('DECRBY', counter, count)
        reason = 'overflow'
    end
    if reason then
        if not (string.find(reason, 'overflow', 1, true) or string.find(reason, 'WRONGTYPE', 1, true)
            or string.find(reason, 'not an integer', 1, true)) then
            redis.call('INCRBY', counter, count)  -- refused again: the script ends with the reason
        end
        error('WRONGKIND the key ' .. counter .. ' holds something else than the number of the last ' ..
            'token; remove it: DEL ' .. counter, 0)
    end
    local before = after - count
    if before < floor then
        local time = redis.call('TIME')
        before = math.max(before, floor, time[1] * 1000000 + time[2])
        redis.call('SET', counter, string.format('%.0f', before + count))
    end
    if before + 1 < least then
        before = least - 1
        redis.call('SET', counter, string.format('%.0f', before + count))
    end
    return before + 1
end

-- Sees to it that tokens up to `last` are never handed out again.
local function skip_tokens(counter, last)
    take_tokens(counter, 0, 0, last + 1)
end
