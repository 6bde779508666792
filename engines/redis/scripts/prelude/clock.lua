-- Milliseconds since 1970 by the server's clock: one clock for all, whatever the clients' say.
local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end
