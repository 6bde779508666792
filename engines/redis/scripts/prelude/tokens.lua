-- Takes `count` consecutive tokens, the first not below `least`, and returns the first.
--
-- The counter must not fall behind what was handed out before. One that is missing, was flushed or
-- comes from an old copy is below `floor`, and is moved on to the server's time in microseconds: no
-- server grants a million locks a second, so the time is ahead of every token there ever was.
--
-- To be called before any other write of an acquisition: a server that is out of memory refuses a
-- script's first write, and nothing must have been changed by then.
local function take_tokens(counter, count, floor, least)
    local before = redis.call('INCRBY', counter, count) - count
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
    if tonumber(redis.call('GET', counter) or 0) < last then
        redis.call('SET', counter, string.format('%.0f', last))
    end
end
