-- The queue of a fair lock: a list of owners, and for each the time until which it counts as alive.

-- Drops waiters at the head whose time is over, or that have none: nobody would ever drop them.
-- Returns the first that is alive.
local function first_alive(queue, timeouts, now)
    local head = redis.call('LINDEX', queue, 0)
    while head do
        local alive_until = tonumber(redis.call('ZSCORE', timeouts, head) or 0)
        if alive_until > now then
            return head, alive_until
        end
        redis.call('LPOP', queue)
        redis.call('ZREM', timeouts, head)
        head = redis.call('LINDEX', queue, 0)
    end
    return nil
end

-- Everybody behind one that left counted on waiting for it, too.
local function move_up(timeouts, waiters, wait)
    for _, waiter in ipairs(waiters) do
        if redis.call('ZSCORE', timeouts, waiter) then
            redis.call('ZINCRBY', timeouts, -wait, waiter)
        end
    end
end

local function tell(publish, channel_base, waiter)
    if waiter then
        redis.call(publish, channel_base .. ':' .. waiter, '0')
    end
end
