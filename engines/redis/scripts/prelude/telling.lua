-- Tells those who listen to a channel, and returns how many they are. A user who may not publish gives
-- back all the same: those who wait ask once a second. The reason goes to the client as `untold`.
local untold
local function tell(publish, channel, message)
    local told = redis.pcall(publish, channel, message)
    if type(told) == 'table' then
        untold = told.err
        return 0
    end
    return told
end
