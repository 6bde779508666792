-- The queue of a fair lock: a list of owners, and for each the time until which it counts as alive.
-- Beside it, ours alone: what those want to be granted when it is their turn, under the owner:
--     <ttl in ms> <token count> <alive until, by itself> <number of the question> <token counter>
-- A `line` is these three keys: queue, timeouts, wishes.

-- Takes one out of the line.
local function strike_out(line, waiter)
    redis.call('LREM', line.queue, '1', waiter)
    redis.call('ZREM', line.timeouts, waiter)
    redis.call('HDEL', line.wishes, waiter)
end

-- Drops waiters at the head whose time is over, or that have none: nobody would ever drop them.
-- Returns the first that is alive.
local function first_alive(line, now)
    local head = redis.call('LINDEX', line.queue, '0')
    while head do
        local alive_until = tonumber(redis.call('ZSCORE', line.timeouts, head) or 0)
        if alive_until > now then
            return head, alive_until
        end
        strike_out(line, head)
        head = redis.call('LINDEX', line.queue, '0')
    end
    return nil
end

-- Everybody behind one that left counted on waiting for it, too.
local function move_up(line, waiters, wait)
    for _, waiter in ipairs(waiters) do
        if redis.call('ZSCORE', line.timeouts, waiter) then
            redis.call('ZINCRBY', line.timeouts, -wait, waiter)
        end
    end
end

local function tell(publish, channel_base, waiter, message)
    redis.call(publish, channel_base .. ':' .. waiter, message)
end
