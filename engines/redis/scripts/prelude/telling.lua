-- Sends a message to the listeners of a channel, and returns their number. A user that may not publish
-- releases all the same: the waiters ask once a second. The reason goes to the client as `untold`.
local untold
local function tell(publish, channel, message)
    local told = redis.pcall(publish, channel, message)
    if type(told) == 'table' then
        untold = told.err
        return 0
    end
    return told
end
